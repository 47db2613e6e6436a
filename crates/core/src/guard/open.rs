//! A breaker's refusal, and how it travels through the errors of engines and models.

use std::time::Duration;

use querymend_engine::Error as EngineTrouble;
use querymend_model::Error as ModelTrouble;
use querymend_sql::EngineError;

use super::clock::millis;
use crate::event::{Problem, ProblemCode};

/// The tool is left alone for now. Nothing was asked of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tool} failed too often and is left alone for {}", in_words(*.retry_after))]
pub struct Open {
    /// Which tool.
    pub tool: String,
    /// When to try again.
    pub retry_after: Duration,
}

/// What marks a refusal. The word is the one that clients see as the code of the problem.
const MARK: &str = "circuit_breaker_open";

/// The status that [`ProblemCode::CircuitBreakerOpen`] has over HTTP.
const STATUS: u16 = 503;

impl Open {
    /// The refusal in an engine's error, if that is what it is.
    pub fn in_engine_error(error: &EngineTrouble) -> Option<Open> {
        match error {
            EngineTrouble::Unavailable { transient: true, cause: Some(cause), .. } if cause.code == MARK => {
                Open::unpack(&cause.message)
            }
            _ => None,
        }
    }

    /// The refusal in a model's error, if that is what it is.
    pub fn in_model_error(error: &ModelTrouble) -> Option<Open> {
        match error {
            ModelTrouble::Overloaded { status: STATUS, message, .. } => {
                Open::unpack(message.strip_prefix(MARK)?.strip_prefix(": ")?)
            }
            _ => None,
        }
    }

    /// Errors hold no value of ours, so the two fields travel as words.
    fn pack(&self) -> String {
        format!("retry after {} ms: {}", millis(self.retry_after), self.tool)
    }

    fn unpack(packed: &str) -> Option<Open> {
        let (ms, tool) = packed.strip_prefix("retry after ")?.split_once(" ms: ")?;
        Some(Open { tool: tool.to_owned(), retry_after: Duration::from_millis(ms.parse().ok()?) })
    }

    fn hint(&self) -> String {
        format!("try again in {}, or see to it and reset its circuit breaker", in_words(self.retry_after))
    }
}

impl From<Open> for EngineTrouble {
    fn from(open: Open) -> Self {
        let cause = EngineError { code: MARK.to_owned(), message: open.pack(), ..EngineError::default() };
        EngineTrouble::Unavailable {
            what: open.to_string(),
            hint: open.hint(),
            transient: true,
            cause: Some(Box::new(cause)),
        }
    }
}

impl Open {
    /// The refusal as an error of the model that was to be asked.
    pub(super) fn of_model(self, model: &str) -> ModelTrouble {
        ModelTrouble::Overloaded {
            model: model.to_owned(),
            status: STATUS,
            message: format!("{MARK}: {}", self.pack()),
            retry_after: Some(self.retry_after),
        }
    }
}

impl From<Open> for Problem {
    fn from(open: Open) -> Self {
        Problem {
            code: ProblemCode::CircuitBreakerOpen,
            message: open.to_string(),
            hint: Some(open.hint()),
            retry_after_s: Some(millis(open.retry_after).div_ceil(1000)),
        }
    }
}

/// Seconds are rounded up, so that whoever keeps to them does not come too early.
fn in_words(time: Duration) -> String {
    let ms = millis(time);
    if ms < 1000 { format!("{ms} ms") } else { format!("{} s", ms.div_ceil(1000)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l10_a_refusal_is_known_again_and_says_when_to_retry() {
        for (ms, words, seconds) in [(0, "0 ms", 0), (999, "999 ms", 1), (24_001, "25 s", 25), (60_000, "60 s", 60)] {
            let open = Open { tool: "database:a ms: b".into(), retry_after: Duration::from_millis(ms) };
            assert_eq!(open.to_string(), format!("database:a ms: b failed too often and is left alone for {words}"));
            let error = EngineTrouble::from(open.clone());
            assert!(error.is_transient() && error.hint().is_some_and(|hint| hint.contains(words)), "{error:?}");
            assert_eq!(Open::in_engine_error(&error), Some(open.clone()));
            let error = open.clone().of_model("openai:m");
            assert_eq!(error.retry_after(), Some(open.retry_after));
            assert_eq!(Open::in_model_error(&error), Some(open.clone()));
            let problem = Problem::from(open);
            assert_eq!((problem.code, problem.retry_after_s), (ProblemCode::CircuitBreakerOpen, Some(seconds)));
            assert_eq!(problem.code.http_status(), STATUS);
            assert_eq!(serde_json::to_value(problem.code).unwrap(), MARK);
        }
    }

    #[test]
    fn l10_other_errors_are_no_refusal() {
        let cause = |code: &str| Some(Box::new(EngineError { code: code.into(), ..EngineError::default() }));
        for cause in [None, cause("5"), cause(MARK)] {
            let error = EngineTrouble::Unavailable { what: String::new(), hint: String::new(), transient: true, cause };
            assert_eq!(Open::in_engine_error(&error), None);
        }
        assert_eq!(Open::in_engine_error(&EngineTrouble::Cancelled), None);
        let busy = |message: &str| ModelTrouble::Overloaded {
            model: "m".into(),
            status: 503,
            message: message.into(),
            retry_after: Some(Duration::from_secs(1)),
        };
        assert_eq!(Open::in_model_error(&busy("loading")), None);
        assert_eq!(Open::in_model_error(&busy(MARK)), None);
        assert_eq!(Open::in_model_error(&ModelTrouble::Cancelled), None);
    }
}
