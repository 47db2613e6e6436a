//! Integration tests of models and embedders: on each wire, in this process, from recordings, through damaged networks, and on real
//! servers where there are some.

// A test says what went wrong by panicking, and says on stderr when it has nothing to do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod common;
mod conformance;
mod embed;
mod faults;
mod local;
#[path = "../../../net/tests/proxy/mod.rs"]
mod proxy;
mod real;
mod servers;
