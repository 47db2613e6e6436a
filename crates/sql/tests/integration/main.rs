//! Integration tests of the SQL reviewer.

// A test says what went wrong by panicking, and says on stderr when it has nothing to do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stderr)]

mod attacks;
mod corpora;
mod errors;
mod fuzz;
mod hostile;
mod meant;
mod pages;
mod resolver;
mod untouched;
