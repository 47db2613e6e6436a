//! Errors of engines.

use std::time::Duration;

use querymend_net::format_duration;
use querymend_sql::{Dialect, EngineError};

/// Error of an engine. The message describes the problem; [`Error::hint`] suggests a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The database rejected the query. The message is the database's own, for
    /// `querymend_sql::classify`.
    #[error("{}", .0.message)]
    Rejected(EngineError),
    /// The query exceeded its time limit.
    #[error("the query was stopped because it ran longer than {}", format_duration(*.after))]
    TimedOut {
        /// Time limit.
        after: Duration,
    },
    /// The query exceeded its step limit. It takes the same number of steps again on the same data.
    #[error("the query was stopped because it took more than {steps} steps")]
    StepLimit {
        /// Step limit.
        steps: u64,
    },
    /// The query was cancelled.
    #[error("the query was cancelled")]
    Cancelled,
    /// The database cannot be reached or read.
    #[error("{what}")]
    Unavailable {
        /// Description of the problem, which names the database.
        what: String,
        /// Suggested remedy.
        hint: String,
        /// `true` if a retry may succeed without any change.
        transient: bool,
        /// Error reported by the database, if any.
        cause: Option<Box<EngineError>>,
    },
    /// The query was approved for another dialect than the engine's.
    #[error("the query was approved for {approved}, but the dialect of this database is {expected}")]
    WrongDialect {
        /// Dialect in which the query was reviewed.
        approved: &'static str,
        /// Dialect of the engine.
        expected: &'static str,
    },
    /// Bug in this program.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// Returns whether the same call may succeed if it is retried.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Unavailable { transient: true, .. })
    }

    /// Returns a suggested remedy.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Rejected(error) => error.hint.as_deref(),
            Error::TimedOut { .. } => Some("ask for less (fewer tables, a narrower filter), or allow more time"),
            Error::StepLimit { .. } => Some("ask for less (fewer tables, a narrower filter)"),
            Error::Cancelled => None,
            Error::Unavailable { hint, .. } => Some(hint),
            Error::WrongDialect { .. } => Some("review the query again with the dialect of this database"),
            Error::Internal(_) => Some("this is a bug in Querymend: please report it with the steps that led to it"),
        }
    }

    /// Returns the database's own error: its code, its message and the position in the query.
    pub fn engine_error(&self) -> Option<&EngineError> {
        match self {
            Error::Rejected(error) => Some(error),
            Error::Unavailable { cause, .. } => cause.as_deref(),
            Error::TimedOut { .. }
            | Error::StepLimit { .. }
            | Error::Cancelled
            | Error::WrongDialect { .. }
            | Error::Internal(_) => None,
        }
    }

    /// Creates a permanent [`Error::Unavailable`] without an underlying database error.
    pub(crate) fn unavailable(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Unavailable { what: what.into(), hint: hint.into(), transient: false, cause: None }
    }

    /// Returns an error unless the query was reviewed in the engine's own dialect.
    ///
    /// The same SQL may mean something else in another dialect.
    pub(crate) fn check_dialect(approved: &'static Dialect, expected: &'static Dialect) -> Result<(), Error> {
        if approved.name == expected.name {
            Ok(())
        } else {
            Err(Error::WrongDialect { approved: approved.name, expected: expected.name })
        }
    }
}

impl From<querymend_net::Error> for Error {
    fn from(error: querymend_net::Error) -> Self {
        Error::unavailable(error.message, error.hint)
    }
}
