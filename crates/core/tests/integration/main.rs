//! Integration tests of the product as a library: whole questions, the state machine, what is known of a database, and files.

// A test says what went wrong by panicking, and says on stderr when it has nothing to do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod fuzz;
mod long_deadline;
mod schema;
mod scripts;
mod state_machine;
mod value_cache;
mod values;
