//! Whole questions as scripts: what the model says goes in, what happens and what is answered comes out. The database is a real
//! SQLite file.

// A test says what went wrong by panicking.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod scripts;
