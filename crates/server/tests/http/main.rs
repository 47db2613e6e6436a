//! The server over real sockets: questions, queries, sessions, and everything that clients do wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod bounds;
mod explored;
mod formats;
mod house;
mod page;
mod problems;
mod questions;
mod record;
mod sessions;
mod trouble;
