//! Errors of example stores.

/// Error of an example store.
///
/// The message states the problem; [`Error::hint`] returns the suggested fix separately.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file or server cannot be used in its current state.
    #[error("{message}")]
    Unusable {
        /// Description of the problem.
        message: String,
        /// Suggested fix.
        hint: String,
    },
    /// The store is unreachable, full or busy; a later attempt may succeed.
    #[error("{message}")]
    Unavailable {
        /// Description of the problem.
        message: String,
        /// Suggested fix.
        hint: String,
    },
    /// The embedder failed to compute vectors.
    #[error("the questions cannot be compared: {0}")]
    Embedding(querymend_model::Error),
}

impl Error {
    /// Returns the suggested fix, if there is one.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unusable { hint, .. } | Self::Unavailable { hint, .. } => Some(hint),
            Self::Embedding(error) => error.hint(),
        }
    }

    /// Returns whether the same operation may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unusable { .. } => false,
            Self::Unavailable { .. } => true,
            Self::Embedding(error) => error.is_transient(),
        }
    }
}

impl From<querymend_net::Error> for Error {
    fn from(error: querymend_net::Error) -> Self {
        Self::Unusable { message: error.message, hint: error.hint }
    }
}
