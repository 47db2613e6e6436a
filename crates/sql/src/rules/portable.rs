//! Functions and syntax of another dialect.

pub mod function_of_another_dialect;
pub mod limit_syntax;
pub mod string_concat;
pub mod syntax_of_another_dialect;
