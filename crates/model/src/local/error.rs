//! Errors of local models.

/// Error of loading or running a local model.
#[derive(Debug, thiserror::Error)]
pub(super) enum LocalModelError {
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it is not a whole GGUF model: {0}")]
    InvalidGguf(String),
    #[error("models of the family `{0}` cannot be run here")]
    UnsupportedArchitecture(String),
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("{0}")]
    PromptTooLong(String),
    #[error("the adapter does not fit the model: {0}")]
    AdapterMismatch(String),
    #[error("{0}")]
    Compute(#[from] candle_core::Error),
}
