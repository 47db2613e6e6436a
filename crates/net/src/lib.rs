//! What databases, stores of examples and models have in common once they are servers: an address, a secret that is never
//! printed, and a secure connection.

pub mod address;
pub mod http;
pub mod postgres;
mod secret;
pub mod tls;

pub use address::Address;
pub use secret::{Secret, Variables, environment, read_secret};

/// Why a server cannot be asked: something in its address, or a file that belongs to it, is wrong. What can be done about it
/// stands apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// What can be done about it.
    pub hint: String,
}

impl Error {
    /// One that says so.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
