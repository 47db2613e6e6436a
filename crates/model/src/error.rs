//! Errors of model requests.

use std::time::Duration;

use querymend_net::format_duration;
use serde::{Deserialize, Serialize};

/// Error of a model request.
///
/// The message states the problem; [`Error::hint`] returns the suggested fix separately. `model` is
/// the name of the requested model, and `message` comes from its server. No error contains an API
/// key: echoes of it are redacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Error {
    /// The rate limit for requests or tokens was exceeded.
    #[error("the rate limit of {model} is exceeded{}", message_suffix(.message))]
    RateLimited {
        /// Name of the model.
        model: String,
        /// Message of the server.
        message: String,
        /// Time to wait before a retry, if the server specified one.
        retry_after: Option<Duration>,
    },
    /// The prompt exceeds the context window.
    #[error("the conversation is too long for {model}{}", message_suffix(.message))]
    ContextTooLong {
        /// Name of the model.
        model: String,
        /// Message of the server.
        message: String,
    },
    /// The key is missing or invalid, or its account has no permission or credit.
    #[error("{model} cannot be used{}", message_suffix(.message))]
    Auth {
        /// Name of the model.
        model: String,
        /// Message of the server, or a description of the missing key.
        message: String,
        /// Suggested fix.
        hint: String,
    },
    /// The provider blocked the conversation, and there is no text.
    ///
    /// A model that declines in its own words returns a completion with
    /// [`crate::FinishReason::Refused`] instead.
    #[error("{model} declines to answer{}", message_suffix(.message))]
    Refused {
        /// Name of the model.
        model: String,
        /// Message of the server.
        message: String,
    },
    /// The deadline expired.
    #[error("{model} did not {} within {}", .waiting_for.describe(), format_duration(*.after))]
    Timeout {
        /// Name of the model.
        model: String,
        /// Time limit that was exceeded.
        after: Duration,
        /// Phase in which it expired.
        waiting_for: TimeoutPhase,
    },
    /// The response is not a valid completion.
    #[error("{model} returned an invalid response{}", message_suffix(.message))]
    BadResponse {
        /// Name of the model.
        model: String,
        /// Description of the problem.
        message: String,
    },
    /// The server is unreachable, or the connection was lost.
    #[error("{model} cannot be reached{}", message_suffix(.message))]
    Unreachable {
        /// Name of the model.
        model: String,
        /// Message of the network stack.
        message: String,
        /// `true` if the problem may be temporary.
        transient: bool,
    },
    /// The server is temporarily unable to respond.
    #[error("{model} is unavailable ({status}){}", message_suffix(.message))]
    Overloaded {
        /// Name of the model.
        model: String,
        /// HTTP status: 408, 409, 425, or 500 and above.
        status: u16,
        /// Message of the server.
        message: String,
        /// Time to wait before a retry, if the server specified one.
        retry_after: Option<Duration>,
    },
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// The configuration is invalid: the model's name, the provider file, the address or the
    /// request.
    #[error("{what}")]
    Configuration {
        /// Description of the problem, as a sentence.
        what: String,
        /// Suggested fix.
        hint: String,
    },
}

/// Phase of a request in which a timeout occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutPhase {
    /// Connecting.
    Connection,
    /// Waiting for the first byte of the response, or for the next one after a pause.
    FirstByte,
    /// Waiting for the end of the reply.
    End,
}

impl TimeoutPhase {
    fn describe(self) -> &'static str {
        match self {
            TimeoutPhase::Connection => "accept the connection",
            TimeoutPhase::FirstByte => "send anything",
            TimeoutPhase::End => "finish its reply",
        }
    }
}

impl Error {
    /// Returns whether the same request may succeed a moment later.
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

    /// Returns the time to wait before a retry, if the server specified one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::RateLimited { retry_after, .. } | Error::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the suggested fix, if there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::RateLimited { .. } => Some("wait a moment, send fewer requests at once, or use another model"),
            Error::ContextTooLong { .. } => {
                Some("show the model less of the schema, or use one with a longer context window")
            }
            Error::Auth { hint, .. } | Error::Configuration { hint, .. } => Some(hint),
            Error::Refused { .. } => Some("rephrase the question, or use another model"),
            Error::Timeout { .. } => Some("allow more time, or use a faster model"),
            Error::BadResponse { .. } => Some("check that the address is that of a model server, down to its /v1"),
            Error::Unreachable { .. } => Some("check that the server is running, its address, and the network"),
            Error::Overloaded { .. } => Some("try again later, or use another model"),
            Error::Cancelled => None,
        }
    }

    /// Creates a configuration error.
    pub fn configuration(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Configuration { what: what.into(), hint: hint.into() }
    }
}

impl From<querymend_net::Error> for Error {
    fn from(error: querymend_net::Error) -> Self {
        Error::configuration(error.message, error.hint)
    }
}

/// Formats a server message as a suffix with a colon; empty if there is none.
fn message_suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sentences() {
        let model = || "openai:m".to_owned();
        let check = |error: Error, words: &str| assert_eq!(error.to_string(), words);
        check(
            Error::Timeout {
                model: model(),
                after: Duration::from_millis(1_540),
                waiting_for: TimeoutPhase::FirstByte,
            },
            "openai:m did not send anything within 1.5 s",
        );
        check(
            Error::RateLimited { model: model(), message: String::new(), retry_after: None },
            "the rate limit of openai:m is exceeded",
        );
        check(
            Error::Overloaded { model: model(), status: 503, message: "loading".into(), retry_after: None },
            "openai:m is unavailable (503): loading",
        );
    }

    #[test]
    fn errors_survive_serialization() {
        let error =
            Error::RateLimited { model: "m".into(), message: "slow".into(), retry_after: Some(Duration::from_secs(2)) };
        let text = serde_json::to_string(&error).unwrap();
        assert_eq!(serde_json::from_str::<Error>(&text).unwrap(), error);
        assert_eq!(serde_json::from_str::<Error>(r#"{"kind":"cancelled"}"#).unwrap(), Error::Cancelled);
    }
}
