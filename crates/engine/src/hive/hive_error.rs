//! Errors of the connection to a server, before they are attributed to the query or the server.

use std::io;

use querymend_sql::EngineError;

use super::thrift_value::ThriftValue;
use super::transport::INTERRUPTED_MESSAGE;

/// Error of a call to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HiveError {
    /// The call was abandoned because the query was cancelled or timed out.
    Interrupted,
    /// The server ended the query because it exceeded its time limit.
    TimedOut,
    /// The connection failed or was closed.
    ConnectionLost { reason: String, is_tls: bool },
    /// The server rejected the user or the password.
    AuthenticationFailed(String),
    /// The response is malformed or too large.
    InvalidResponse(String),
    /// The server returned an error status.
    ServerError(ThriftStatus),
    /// The server rejected the query; its message is already parsed.
    Rejected(EngineError),
    /// The database has more tables than can be read.
    CatalogTooLarge,
    /// The database in the address does not exist.
    UnknownDatabase(ThriftStatus),
}

/// Status of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ThriftStatus {
    pub(super) code: i64,
    pub(super) sql_state: String,
    pub(super) message: String,
}

impl ThriftStatus {
    /// Returns whether the server does not know the session or the operation.
    ///
    /// That happens after a restart, or after it closed an idle session.
    pub(super) fn is_unknown_handle(&self) -> bool {
        ["Invalid SessionHandle", "Invalid OperationHandle", "Session does not exist"]
            .iter()
            .any(|words| self.message.contains(words))
    }
}

impl HiveError {
    /// Returns an error if the status of a response is not a success.
    pub(super) fn check_status(answer: &ThriftValue) -> Result<(), HiveError> {
        const SUCCESS: std::ops::RangeInclusive<i64> = 0..=2;
        let status = answer.field(1).ok_or_else(|| HiveError::InvalidResponse("a response without a status".into()))?;
        let code = status.field(1).and_then(ThriftValue::as_i64).unwrap_or(-1);
        if SUCCESS.contains(&code) {
            return Ok(());
        }
        Err(HiveError::ServerError(ThriftStatus {
            code: status.field(4).and_then(ThriftValue::as_i64).unwrap_or_default(),
            sql_state: status.field(3).and_then(ThriftValue::as_string).unwrap_or_default(),
            message: status.field(5).and_then(ThriftValue::as_string).unwrap_or_else(|| "the server refused".into()),
        }))
    }

    /// Returns whether a new session may succeed.
    pub(super) fn is_stale_session(&self) -> bool {
        match self {
            HiveError::ConnectionLost { .. } => true,
            HiveError::ServerError(status) => status.is_unknown_handle(),
            _ => false,
        }
    }
}

impl From<io::Error> for HiveError {
    fn from(error: io::Error) -> Self {
        let why = error.to_string();
        if why == INTERRUPTED_MESSAGE {
            HiveError::Interrupted
        } else if error.kind() == io::ErrorKind::InvalidData && !querymend_net::http::is_tls_error(&error) {
            HiveError::InvalidResponse(why)
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            HiveError::ConnectionLost { reason: "the connection was closed".into(), is_tls: false }
        } else {
            HiveError::ConnectionLost { reason: why, is_tls: querymend_net::http::is_tls_error(&error) }
        }
    }
}

impl From<thrift::Error> for HiveError {
    fn from(error: thrift::Error) -> Self {
        match error {
            // Thrift keeps only the message of the underlying error; this message is our own.
            thrift::Error::Transport(error) if error.message == INTERRUPTED_MESSAGE => HiveError::Interrupted,
            thrift::Error::Transport(error) => match error.kind {
                thrift::TransportErrorKind::EndOfFile => {
                    HiveError::ConnectionLost { reason: "the connection was closed".into(), is_tls: false }
                }
                _ => HiveError::ConnectionLost { reason: error.message, is_tls: false },
            },
            thrift::Error::Protocol(error) => HiveError::InvalidResponse(error.message),
            other => HiveError::InvalidResponse(other.to_string()),
        }
    }
}
