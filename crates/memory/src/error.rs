//! What can go wrong with a store.

/// Why a store did not do what it was asked for. The message is for people; what they can do about it stands apart, in
/// [`Error::hint`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file, or the server, cannot be used as it is.
    #[error("{message}")]
    Unusable {
        /// What is wrong.
        message: String,
        /// What can be done about it.
        hint: String,
    },
    /// It cannot be reached, or has no room, or is busy: another time it may work.
    #[error("{message}")]
    Unavailable {
        /// What is wrong.
        message: String,
        /// What can be done about it.
        hint: String,
    },
    /// The embedder made no vectors.
    #[error("the questions cannot be compared: {0}")]
    Embedding(querymend_model::Error),
}

impl Error {
    /// What can be done about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unusable { hint, .. } | Self::Unavailable { hint, .. } => Some(hint),
            Self::Embedding(error) => error.hint(),
        }
    }

    /// Whether the same may work another time.
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
