//! The server over real sockets: questions, queries, sessions, and everything that clients do wrong.

mod bounds;
mod explored;
mod formats;
pub mod house;
mod page;
mod problems;
mod questions;
mod record;
mod sessions;
mod trouble;
