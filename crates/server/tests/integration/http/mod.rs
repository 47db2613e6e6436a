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

// For the sources of the product that `race` compiles again.
pub use querymend_server::http::{Kind, kinds};
