//! Transpilation of function calls between dialects: parse a call into its canonical form
//! (`parse_call.rs`), render it in the target dialect (`call.rs`).
//!
//! The fixes that apply it to a query are in `fixes/transpile/`; their entry point is
//! `transpile_call`.

pub(crate) mod arguments;
pub(crate) mod call;
pub(crate) mod date_format;
pub(crate) mod function;
pub(crate) mod idioms;
pub(crate) mod parse_call;
pub(crate) mod signatures;
pub(crate) mod unit;
