//! What another dialect would understand.

pub mod function_of_another_dialect;
pub mod limit_syntax;
pub(crate) mod rephrase;
pub mod string_concat;
pub mod syntax_of_another_dialect;
