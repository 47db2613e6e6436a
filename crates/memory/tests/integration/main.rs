//! Integration tests of the stores of examples.

// A test says what went wrong by panicking, and says on stderr when it has nothing to do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod conformance;
mod crash;
mod faults;
mod race;
mod servers;
mod shared;
