//! What can go wrong between a request and its reply.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why there is no reply. The message is for people; what they can do about it stands apart, in [`Error::hint`].
///
/// `model` is the name of the model that was asked, and `message` what its server said. No error holds a key: what a
/// server echoes of it is struck out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Error {
    /// Too many requests, or too many tokens, in a short time.
    #[error("{model} is asked too often{}", because(.message))]
    RateLimited {
        /// Which model.
        model: String,
        /// What the server said.
        message: String,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The conversation is longer than the model can read.
    #[error("the conversation is too long for {model}{}", because(.message))]
    ContextTooLong {
        /// Which model.
        model: String,
        /// What the server said.
        message: String,
    },
    /// The key is missing or wrong, or its account may not do this or has no credit.
    #[error("{model} cannot be used{}", because(.message))]
    Auth {
        /// Which model.
        model: String,
        /// What the server said, or what is missing.
        message: String,
        /// What can be done about it.
        hint: String,
    },
    /// The provider will not have this conversation answered, and there is no text at all. A model that declines in its
    /// own words gives a reply that is [`crate::Stopped::Refused`] instead.
    #[error("{model} declines to answer{}", because(.message))]
    Refused {
        /// Which model.
        model: String,
        /// What the server said.
        message: String,
    },
    /// Nothing came in time.
    #[error("{model} did not {} within {}", .waiting_for.in_words(), in_words(*.after))]
    Timeout {
        /// Which model.
        model: String,
        /// The limit.
        after: Duration,
        /// What did not come.
        waiting_for: Wait,
    },
    /// What the server sent is not a reply.
    #[error("{model} answered with something that is not a reply{}", because(.message))]
    BadResponse {
        /// Which model.
        model: String,
        /// What is wrong with it.
        message: String,
    },
    /// The server cannot be reached, or the connection to it broke.
    #[error("{model} cannot be reached{}", because(.message))]
    Unreachable {
        /// Which model.
        model: String,
        /// What the network said.
        message: String,
        /// It may be gone by itself a moment later.
        transient: bool,
    },
    /// The server is there and cannot answer now.
    #[error("{model} cannot answer now ({status}){}", because(.message))]
    Overloaded {
        /// Which model.
        model: String,
        /// The HTTP status, from 500 up, or 408, 409 or 425.
        status: u16,
        /// What the server said.
        message: String,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// Someone stopped the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// The model is not described rightly: its name, its provider's file, its address, or what is asked of it.
    #[error("{what}")]
    Configuration {
        /// What is wrong, in a sentence.
        what: String,
        /// What can be done about it.
        hint: String,
    },
}

/// What a request waited for in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// A connection.
    Connection,
    /// The first byte of an answer, or the next after a silence.
    FirstByte,
    /// The end of the reply.
    End,
}

impl Wait {
    fn in_words(self) -> &'static str {
        match self {
            Wait::Connection => "take a connection",
            Wait::FirstByte => "send anything",
            Wait::End => "finish its reply",
        }
    }
}

impl Error {
    /// Whether the same request may succeed a moment later, with nothing changed.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::RateLimited { .. } | Error::Timeout { .. } | Error::Overloaded { .. } => true,
            Error::Unreachable { transient, .. } => *transient,
            Error::ContextTooLong { .. }
            | Error::Auth { .. }
            | Error::Refused { .. }
            | Error::BadResponse { .. }
            | Error::Cancelled
            | Error::Configuration { .. } => false,
        }
    }

    /// How long the server wants to be left alone, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::RateLimited { retry_after, .. } | Error::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What can be done about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::RateLimited { .. } => Some("wait a little, ask less at once, or use another model"),
            Error::ContextTooLong { .. } => Some("show the model less of the schema, or use one that reads more"),
            Error::Auth { hint, .. } | Error::Configuration { hint, .. } => Some(hint),
            Error::Refused { .. } => Some("ask in other words, or use another model"),
            Error::Timeout { .. } => Some("allow more time, or use a faster model"),
            Error::BadResponse { .. } => Some("check that the address is that of a model server, down to its /v1"),
            Error::Unreachable { .. } => Some("check that the server runs, its address, and the network"),
            Error::Overloaded { .. } => Some("try again a little later, or use another model"),
            Error::Cancelled => None,
        }
    }

    /// What is wrong with how the model is described.
    pub fn configuration(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Configuration { what: what.into(), hint: hint.into() }
    }
}

impl From<querymend_net::Error> for Error {
    fn from(error: querymend_net::Error) -> Self {
        Error::configuration(error.message, error.hint)
    }
}

/// The server's words after a colon, if there are any.
fn because(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn in_words(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", (time.as_millis() as f64 / 100.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_sentences() {
        let model = || "openai:m".to_owned();
        let check = |error: Error, words: &str| assert_eq!(error.to_string(), words);
        check(
            Error::Timeout { model: model(), after: Duration::from_millis(1_540), waiting_for: Wait::FirstByte },
            "openai:m did not send anything within 1.5 s",
        );
        check(
            Error::RateLimited { model: model(), message: String::new(), retry_after: None },
            "openai:m is asked too often",
        );
        check(
            Error::Overloaded { model: model(), status: 503, message: "loading".into(), retry_after: None },
            "openai:m cannot answer now (503): loading",
        );
    }

    #[test]
    fn errors_survive_a_recording() {
        let error =
            Error::RateLimited { model: "m".into(), message: "slow".into(), retry_after: Some(Duration::from_secs(2)) };
        let text = serde_json::to_string(&error).unwrap();
        assert_eq!(serde_json::from_str::<Error>(&text).unwrap(), error);
        assert_eq!(serde_json::from_str::<Error>(r#"{"kind":"cancelled"}"#).unwrap(), Error::Cancelled);
    }
}
