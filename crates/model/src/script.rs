//! A model that says what it was told to: for tests of whatever asks models.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Wait};
use crate::request::{ModelLimits, Reply, Request};
use crate::{Answer, Cancel, Model};

/// What a [`Script`] does when it is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Replies.
    Say(Reply),
    /// Fails.
    Fail(Error),
    /// Says nothing until it is cancelled or the time is up.
    Hang,
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Line::Say(Reply::text(text))
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Line::Say(Reply::text(text))
    }
}

impl From<Reply> for Line {
    fn from(reply: Reply) -> Self {
        Line::Say(reply)
    }
}

impl From<Error> for Line {
    fn from(error: Error) -> Self {
        Line::Fail(error)
    }
}

/// A model that says its lines in order, one for each request, and remembers what it was asked.
#[derive(Debug)]
pub struct Script {
    state: Mutex<State>,
    limits: ModelLimits,
}

#[derive(Debug)]
struct State {
    lines: VecDeque<Line>,
    asked: Vec<Request>,
}

impl Script {
    /// A script of texts, replies, errors or [`Line`]s.
    pub fn new<L: Into<Line>>(lines: impl IntoIterator<Item = L>) -> Self {
        let lines = lines.into_iter().map(Into::into).collect();
        Self { state: Mutex::new(State { lines, asked: Vec::new() }), limits: ModelLimits::default() }
    }

    /// With limits, for tests of what is made to fit them.
    pub fn with_limits(mut self, limits: ModelLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Every request so far, in order.
    pub fn asked(&self) -> Vec<Request> {
        self.state().asked.clone()
    }

    /// How many lines have not been said.
    pub fn left(&self) -> usize {
        self.state().lines.len()
    }

    /// Lines are taken and requests added in one step each, so a panic elsewhere leaves nothing half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a Cancel,
    ) -> Answer<'a, Reply> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let line = {
                let mut state = self.state();
                state.asked.push(request.clone());
                state.lines.pop_front()
            };
            match line {
                Some(Line::Say(reply)) => {
                    speak(&reply.text, watch);
                    Ok(reply)
                }
                Some(Line::Fail(error)) => Err(error),
                Some(Line::Hang) => tokio::select! {
                    () = cancel.cancelled() => Err(Error::Cancelled),
                    () = tokio::time::sleep(request.timeout) => Err(Error::Timeout {
                        model: self.name().to_owned(),
                        after: request.timeout,
                        waiting_for: Wait::FirstByte,
                    }),
                },
                None => Err(Error::configuration(
                    format!("the script has no line for request {}", self.state().asked.len()),
                    "add one, or find out why the model is asked once more",
                )),
            }
        })
    }

    fn limits(&self) -> ModelLimits {
        self.limits
    }
}

/// Hands a text on word by word, as a model would.
pub(crate) fn speak(text: &str, watch: &mut (dyn FnMut(&str) + Send)) {
    for word in text.split_inclusive(char::is_whitespace) {
        watch(word);
    }
}
