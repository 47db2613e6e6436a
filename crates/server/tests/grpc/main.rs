//! The gRPC face, asked by real clients over TCP. The database is a real SQLite file, and the model says what it was told to.

// A test says what went wrong by panicking.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod calls;
mod errors;
mod hostile;
mod python;
mod support;
