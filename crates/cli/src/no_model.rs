//! Placeholder for commands that also work without a model.

use querymend_model::{BoxFuture, CancelSignal, Completion, CompletionRequest, Error, Model};

/// Model that fails every request with an error and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoModel {
    message: String,
    hint: String,
}

impl NoModel {
    /// Creates a model that fails with this message and hint.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: what.into(), hint: hint.into() }
    }
}

impl Model for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    fn complete<'a>(
        &'a self,
        _: &'a CompletionRequest,
        _: &'a mut (dyn FnMut(&str) + Send),
        _: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move { Err(Error::Configuration { what: self.message.clone(), hint: self.hint.clone() }) })
    }
}
