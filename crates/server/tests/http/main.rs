//! The server over real sockets: questions, queries, sessions, and everything that clients do wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod explored;
mod house;
mod page;
mod problems;
mod questions;
mod sessions;
mod trouble;
