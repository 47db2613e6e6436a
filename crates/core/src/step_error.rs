//! Converts engine and model errors to step errors and client-facing problems.

use querymend_engine as engine;
use querymend_model as model;

use crate::event::{Problem, ProblemCode};
use crate::resilience::BreakerOpen;
use crate::run::StepError;

/// Converts an engine error to a step error.
pub(crate) fn engine_step_error(error: engine::Error) -> StepError {
    if let Some(open) = BreakerOpen::from_engine_error(&error) {
        return StepError::Unavailable(open.into());
    }
    match error {
        engine::Error::Rejected(error) => StepError::Rejected(error),
        engine::Error::TimedOut { after } => StepError::TimedOut(after),
        engine::Error::Cancelled => StepError::Cancelled,
        engine::Error::StepLimit { .. } => StepError::Unavailable(Problem {
            code: ProblemCode::BudgetExceeded,
            message: error.to_string(),
            hint: error.hint().map(str::to_string),
            retry_after_s: None,
        }),
        engine::Error::Unavailable { .. } | engine::Error::WrongDialect { .. } | engine::Error::Internal(_) => {
            StepError::Unavailable(Problem {
                code: ProblemCode::DatabaseUnavailable,
                message: error.to_string(),
                hint: error.hint().map(str::to_string),
                retry_after_s: None,
            })
        }
    }
}

/// Converts a model error to a step error.
pub(crate) fn model_step_error(error: &model::Error) -> StepError {
    if let Some(open) = BreakerOpen::from_model_error(error) {
        return StepError::Unavailable(open.into());
    }
    if *error == model::Error::Cancelled {
        return StepError::Cancelled;
    }
    let problem = Problem {
        code: ProblemCode::ModelUnavailable,
        message: error.to_string(),
        hint: error.hint().map(str::to_string),
        retry_after_s: error.retry_after().map(|wait| wait.as_secs_f64().ceil() as u64),
    };
    match error {
        model::Error::ContextTooLong { .. } => StepError::ContextTooLong(problem),
        _ => StepError::Unavailable(problem),
    }
}
