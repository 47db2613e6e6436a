//! Scripted model for tests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, TimeoutPhase};
use crate::request::{Completion, CompletionRequest, ModelLimits};
use crate::{BoxFuture, CancelSignal, Model};

/// Reaction of a [`ScriptedModel`] to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedReply {
    /// Returns this completion.
    Reply(Completion),
    /// Returns this error.
    Fail(Error),
    /// Does not respond until the request is cancelled or times out.
    Hang,
}

impl From<&str> for ScriptedReply {
    fn from(text: &str) -> Self {
        ScriptedReply::Reply(Completion::text(text))
    }
}

impl From<String> for ScriptedReply {
    fn from(text: String) -> Self {
        ScriptedReply::Reply(Completion::text(text))
    }
}

impl From<Completion> for ScriptedReply {
    fn from(reply: Completion) -> Self {
        ScriptedReply::Reply(reply)
    }
}

impl From<Error> for ScriptedReply {
    fn from(error: Error) -> Self {
        ScriptedReply::Fail(error)
    }
}

/// Model that returns scripted replies in order, one per request, and records the requests.
#[derive(Debug)]
pub struct ScriptedModel {
    state: Mutex<ScriptState>,
    limits: ModelLimits,
}

#[derive(Debug)]
struct ScriptState {
    replies: VecDeque<ScriptedReply>,
    requests: Vec<CompletionRequest>,
}

impl ScriptedModel {
    /// Creates a model from texts, completions, errors or [`ScriptedReply`]s.
    pub fn new<L: Into<ScriptedReply>>(lines: impl IntoIterator<Item = L>) -> Self {
        let lines = lines.into_iter().map(Into::into).collect();
        Self { state: Mutex::new(ScriptState { replies: lines, requests: Vec::new() }), limits: ModelLimits::default() }
    }

    /// Sets token limits, for tests of code that depends on them.
    pub fn with_limits(mut self, limits: ModelLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<CompletionRequest> {
        self.state().requests.clone()
    }

    /// Returns the number of replies that are left.
    pub fn remaining(&self) -> usize {
        self.state().replies.len()
    }

    /// Locks the state. Poisoning is ignored: replies and requests change in single steps, so a
    /// panic cannot leave them inconsistent.
    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "script"
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let line = {
                let mut state = self.state();
                state.requests.push(request.clone());
                state.replies.pop_front()
            };
            match line {
                Some(ScriptedReply::Reply(reply)) => {
                    stream_words(&reply.text, watch);
                    Ok(reply)
                }
                Some(ScriptedReply::Fail(error)) => Err(error),
                Some(ScriptedReply::Hang) => tokio::select! {
                    () = cancel.cancelled() => Err(Error::Cancelled),
                    () = tokio::time::sleep(request.timeout) => Err(Error::Timeout {
                        model: self.name().to_owned(),
                        after: request.timeout,
                        waiting_for: TimeoutPhase::FirstByte,
                    }),
                },
                None => Err(Error::configuration(
                    format!("the script has no line for request {}", self.state().requests.len()),
                    "add one, or find out why the model is asked once more",
                )),
            }
        })
    }

    fn limits(&self) -> ModelLimits {
        self.limits
    }
}

/// Streams a text word by word, as a model would.
pub(crate) fn stream_words(text: &str, watch: &mut (dyn FnMut(&str) + Send)) {
    for word in text.split_inclusive(char::is_whitespace) {
        watch(word);
    }
}
