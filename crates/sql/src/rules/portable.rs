//! What another dialect would understand.

mod comparisons;
pub mod function_of_another_dialect;
mod limit_fixes;
pub mod limit_syntax;
pub(crate) mod moments;
pub(crate) mod rephrase;
mod respell;
pub mod string_concat;
pub mod syntax_of_another_dialect;
mod trimmings;
