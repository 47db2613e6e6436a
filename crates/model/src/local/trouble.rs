//! What can be wrong with a model's file.

/// Why a local model cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it is not a whole GGUF model: {0}")]
    NotGguf(String),
    #[error("models of the family `{0}` cannot be run here")]
    OtherFamily(String),
    #[error("{0}")]
    TooLong(String),
    #[error("the adapter does not fit the model: {0}")]
    Misfit(String),
    #[error("{0}")]
    Arithmetic(#[from] candle_core::Error),
}
