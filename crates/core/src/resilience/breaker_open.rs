//! Rejection by a circuit breaker, and its encoding in engine and model errors.

use std::time::Duration;

use querymend_engine as engine;
use querymend_model as model;
use querymend_sql::EngineError;

use super::clock::millis;
use crate::event::{Problem, ProblemCode};

/// Rejection by an open circuit breaker. The tool was not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tool} failed too often; its circuit breaker is open for {}", format_wait(*.retry_after))]
pub struct BreakerOpen {
    /// Name of the tool.
    pub tool: String,
    /// Time to wait before a retry.
    pub retry_after: Duration,
}

/// Marker of a rejection; equals the problem code that clients receive.
const BREAKER_OPEN_CODE: &str = "circuit_breaker_open";

/// HTTP status of [`ProblemCode::CircuitBreakerOpen`].
const HTTP_STATUS: u16 = 503;

impl BreakerOpen {
    /// Recovers the rejection from an engine error, if it is one.
    pub fn from_engine_error(error: &engine::Error) -> Option<BreakerOpen> {
        match error {
            engine::Error::Unavailable { transient: true, cause: Some(cause), .. }
                if cause.code == BREAKER_OPEN_CODE =>
            {
                BreakerOpen::decode(&cause.message)
            }
            _ => None,
        }
    }

    /// Recovers the rejection from a model error, if it is one.
    pub fn from_model_error(error: &model::Error) -> Option<BreakerOpen> {
        match error {
            model::Error::Overloaded { status: HTTP_STATUS, message, .. } => {
                BreakerOpen::decode(message.strip_prefix(BREAKER_OPEN_CODE)?.strip_prefix(": ")?)
            }
            _ => None,
        }
    }

    /// Encodes both fields as text, because engine and model errors cannot carry this type.
    fn encode(&self) -> String {
        format!("retry after {} ms: {}", millis(self.retry_after), self.tool)
    }

    fn decode(packed: &str) -> Option<BreakerOpen> {
        let (ms, tool) = packed.strip_prefix("retry after ")?.split_once(" ms: ")?;
        Some(BreakerOpen { tool: tool.to_owned(), retry_after: Duration::from_millis(ms.parse().ok()?) })
    }

    fn hint(&self) -> String {
        format!("try again in {}, or fix the cause and reset its circuit breaker", format_wait(self.retry_after))
    }
}

impl From<BreakerOpen> for engine::Error {
    fn from(open: BreakerOpen) -> Self {
        let cause =
            EngineError { code: BREAKER_OPEN_CODE.to_owned(), message: open.encode(), ..EngineError::default() };
        engine::Error::Unavailable {
            what: open.to_string(),
            hint: open.hint(),
            transient: true,
            cause: Some(Box::new(cause)),
        }
    }
}

impl BreakerOpen {
    /// Converts the rejection to an error of the model.
    pub(super) fn into_model_error(self, model: &str) -> model::Error {
        model::Error::Overloaded {
            model: model.to_owned(),
            status: HTTP_STATUS,
            message: format!("{BREAKER_OPEN_CODE}: {}", self.encode()),
            retry_after: Some(self.retry_after),
        }
    }
}

impl From<BreakerOpen> for Problem {
    fn from(open: BreakerOpen) -> Self {
        Problem {
            code: ProblemCode::CircuitBreakerOpen,
            message: open.to_string(),
            hint: Some(open.hint()),
            retry_after_s: Some(millis(open.retry_after).div_ceil(1000)),
        }
    }
}

/// Formats a duration. Seconds are rounded up so that clients do not retry too early.
fn format_wait(time: Duration) -> String {
    let ms = millis(time);
    if ms < 1000 { format!("{ms} ms") } else { format!("{} s", ms.div_ceil(1000)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_open_breaker_error_with_retry_after() {
        for (ms, words, seconds) in [(0, "0 ms", 0), (999, "999 ms", 1), (24_001, "25 s", 25), (60_000, "60 s", 60)] {
            let open = BreakerOpen { tool: "database:a ms: b".into(), retry_after: Duration::from_millis(ms) };
            assert_eq!(
                open.to_string(),
                format!("database:a ms: b failed too often; its circuit breaker is open for {words}")
            );
            let error = engine::Error::from(open.clone());
            assert!(error.is_transient() && error.hint().is_some_and(|hint| hint.contains(words)), "{error:?}");
            assert_eq!(BreakerOpen::from_engine_error(&error), Some(open.clone()));
            let error = open.clone().into_model_error("openai:m");
            assert_eq!(error.retry_after(), Some(open.retry_after));
            assert_eq!(BreakerOpen::from_model_error(&error), Some(open.clone()));
            let problem = Problem::from(open);
            assert_eq!((problem.code, problem.retry_after_s), (ProblemCode::CircuitBreakerOpen, Some(seconds)));
            assert_eq!(problem.code.http_status(), HTTP_STATUS);
            assert_eq!(serde_json::to_value(problem.code).unwrap(), BREAKER_OPEN_CODE);
        }
    }

    #[test]
    fn distinguishes_open_breaker_from_other_errors() {
        let cause = |code: &str| Some(Box::new(EngineError { code: code.into(), ..EngineError::default() }));
        for cause in [None, cause("5"), cause(BREAKER_OPEN_CODE)] {
            let error = engine::Error::Unavailable { what: String::new(), hint: String::new(), transient: true, cause };
            assert_eq!(BreakerOpen::from_engine_error(&error), None);
        }
        assert_eq!(BreakerOpen::from_engine_error(&engine::Error::Cancelled), None);
        let busy = |message: &str| model::Error::Overloaded {
            model: "m".into(),
            status: 503,
            message: message.into(),
            retry_after: Some(Duration::from_secs(1)),
        };
        assert_eq!(BreakerOpen::from_model_error(&busy("loading")), None);
        assert_eq!(BreakerOpen::from_model_error(&busy(BREAKER_OPEN_CODE)), None);
        assert_eq!(BreakerOpen::from_model_error(&model::Error::Cancelled), None);
    }
}
