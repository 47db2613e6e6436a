//! What goes wrong on the way to a server, before it is known what that means for the query.

use std::io;

use querymend_sql::EngineError;

use super::line::GIVEN_UP;
use super::value::Value;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The query was to end, and it was given up.
    Stopped,
    /// The server ended the query because it took too long.
    TimedOut,
    /// There is no line to the server, or no longer.
    Lost { why: String, secret: bool },
    /// The server does not take the name and the password.
    Unknown(String),
    /// What came is no answer, or one that is too large.
    Strange(String),
    /// The server heard and refused.
    Refused(Status),
    /// It refused the query, and what it said has been read.
    Rejected(EngineError),
    /// It has more tables than can be read.
    TooMuch,
    /// It does not have the database of the address.
    NoDatabase(Status),
}

/// What a server says of what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Status {
    pub(super) code: i64,
    pub(super) state: String,
    pub(super) message: String,
}

impl Status {
    /// Whether the server no longer knows the session or the operation that it was asked about: it was restarted, or it has
    /// closed what was idle for too long.
    pub(super) fn is_forgotten(&self) -> bool {
        ["Invalid SessionHandle", "Invalid OperationHandle", "Session does not exist"]
            .iter()
            .any(|words| self.message.contains(words))
    }
}

impl Fault {
    /// Refused, if the status of an answer says so.
    pub(super) fn check(answer: &Value) -> Result<(), Fault> {
        const SUCCESS: std::ops::RangeInclusive<i64> = 0..=2;
        let status = answer.field(1).ok_or_else(|| Fault::Strange("an answer without a status".into()))?;
        let code = status.field(1).and_then(Value::number).unwrap_or(-1);
        if SUCCESS.contains(&code) {
            return Ok(());
        }
        Err(Fault::Refused(Status {
            code: status.field(4).and_then(Value::number).unwrap_or_default(),
            state: status.field(3).and_then(Value::string).unwrap_or_default(),
            message: status.field(5).and_then(Value::string).unwrap_or_else(|| "the server refused".into()),
        }))
    }

    /// Whether a fresh connection may fare better.
    pub(super) fn is_stale(&self) -> bool {
        match self {
            Fault::Lost { .. } => true,
            Fault::Refused(status) => status.is_forgotten(),
            _ => false,
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        let why = error.to_string();
        if why == GIVEN_UP {
            Fault::Stopped
        } else if error.kind() == io::ErrorKind::InvalidData && !querymend_net::http::is_tls(&error) {
            Fault::Strange(why)
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            Fault::Lost { why: "the connection was closed".into(), secret: false }
        } else {
            Fault::Lost { why, secret: querymend_net::http::is_tls(&error) }
        }
    }
}

impl From<thrift::Error> for Fault {
    fn from(error: thrift::Error) -> Self {
        match error {
            // The cause is kept as words only; those of a line that was given up are ours.
            thrift::Error::Transport(error) if error.message == GIVEN_UP => Fault::Stopped,
            thrift::Error::Transport(error) => match error.kind {
                thrift::TransportErrorKind::EndOfFile => {
                    Fault::Lost { why: "the connection was closed".into(), secret: false }
                }
                _ => Fault::Lost { why: error.message, secret: false },
            },
            thrift::Error::Protocol(error) => Fault::Strange(error.message),
            other => Fault::Strange(other.to_string()),
        }
    }
}
