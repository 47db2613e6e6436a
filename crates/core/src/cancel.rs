//! Cancellation of questions.

/// Cancels a question from another task. Combines the flag that engines poll with the signal that
/// models await. Clones share both.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken {
    pub(crate) engine: querymend_engine::CancelFlag,
    pub(crate) model: querymend_model::CancelSignal,
}

impl CancellationToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every question that holds a clone of this token.
    pub fn cancel(&self) {
        self.engine.cancel();
        self.model.cancel();
    }

    /// Returns whether [`CancellationToken::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.engine.is_cancelled()
    }
}
