//! Integration tests of the SQL reviewer.

// A test says what went wrong by panicking, and says on stderr when it has nothing to do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stderr)]

mod attacks;
mod corpora;
mod errors;
mod fix_scope;
mod fuzz;
mod intended_fixes;
mod resolver;
mod robustness;
mod rule_pages;
