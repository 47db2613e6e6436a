//! Network access shared by databases, example stores and models.
//!
//! Parses addresses, keeps secrets from being printed, and sets up TLS. Also holds the helpers that
//! these clients have in common: root causes, durations, hexadecimal, FNV-1a.

pub mod address;
mod fnv1a;
pub mod http;
pub mod postgres;
mod root_cause;
mod secret;
mod text;
pub mod tls;

pub use address::Address;
pub use fnv1a::Fnv1aHasher;
pub use root_cause::root_cause;
pub use secret::{EnvLookup, Secret, read_env, read_secret_file};
pub use text::{format_duration, to_hex};

/// Configuration error of a server: its address, or a file that belongs to it, is invalid. The hint
/// suggests a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Description of the problem.
    pub message: String,
    /// Suggested remedy.
    pub hint: String,
}

impl Error {
    /// Creates an error.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
