//! Fixes for syntax and calls of another dialect; `transpile/` has the canonical calls that they
//! render.

pub(crate) mod calls;
pub(crate) mod dates;
pub(crate) mod hints;
pub(crate) mod quantified;
pub(crate) mod syntax;
