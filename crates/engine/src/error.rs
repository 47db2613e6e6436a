//! What can go wrong between a query and its rows.

use std::time::Duration;

use querymend_sql::{Dialect, EngineError};

/// Why there are no rows. The message is for people; what they can do about it stands apart, in [`Error::hint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The database answered and refused the query. Its words are untouched; `querymend_sql::classify` reads them.
    #[error("{}", .0.message)]
    Rejected(EngineError),
    /// The query ran longer than the limits allow.
    #[error("the query was stopped because it ran longer than {}", in_words(*.after))]
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// The query took more steps than the limits allow. It takes as many again on the same data.
    #[error("the query was stopped because it took more than {steps} steps")]
    StepLimit {
        /// The limit.
        steps: u64,
    },
    /// Someone stopped the query.
    #[error("the query was cancelled")]
    Cancelled,
    /// The database cannot be reached or read.
    #[error("{what}")]
    Unavailable {
        /// What is wrong, in a sentence that names the database.
        what: String,
        /// What can be done about it.
        hint: String,
        /// It may be gone by itself a moment later.
        transient: bool,
        /// What the database said, if it said anything.
        cause: Option<Box<EngineError>>,
    },
    /// The query was approved for a database of another kind.
    #[error("the query was approved for {approved}, but this database speaks {spoken}")]
    WrongDialect {
        /// What the query was reviewed as.
        approved: &'static str,
        /// What the engine speaks.
        spoken: &'static str,
    },
    /// A fault in this program.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// Whether the same call may succeed a moment later, with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Unavailable { transient: true, .. })
    }

    /// What can be done about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Rejected(error) => error.hint.as_deref(),
            Error::TimedOut { .. } => Some("ask for less (fewer tables, a narrower filter), or allow more time"),
            Error::StepLimit { .. } => Some("ask for less (fewer tables, a narrower filter)"),
            Error::Cancelled => None,
            Error::Unavailable { hint, .. } => Some(hint),
            Error::WrongDialect { .. } => Some("review the query again with the dialect of this database"),
            Error::Internal(_) => Some("this is a fault in Querymend: please report it with what led to it"),
        }
    }

    /// What the database itself said: its code, its words and the place in the query.
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

    /// A lasting trouble that no database had a word in.
    pub(crate) fn unavailable(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Unavailable { what: what.into(), hint: hint.into(), transient: false, cause: None }
    }

    /// An engine runs only what was reviewed as its own dialect: the same text may mean something else in another.
    pub(crate) fn unless_same(approved: &'static Dialect, spoken: &'static Dialect) -> Result<(), Error> {
        if approved.name == spoken.name {
            Ok(())
        } else {
            Err(Error::WrongDialect { approved: approved.name, spoken: spoken.name })
        }
    }
}

impl From<querymend_net::Error> for Error {
    fn from(error: querymend_net::Error) -> Self {
        Error::unavailable(error.message, error.hint)
    }
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
    fn times_are_written_as_people_write_them() {
        for (ms, words) in [(5, "5 ms"), (999, "999 ms"), (1_000, "1 s"), (1_540, "1.5 s"), (30_000, "30 s")] {
            assert_eq!(in_words(Duration::from_millis(ms)), words);
        }
    }
}
