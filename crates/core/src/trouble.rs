//! The world is in the way: what that means for a run, and what clients are told.

use querymend_engine::Error as EngineTrouble;
use querymend_model::Error as ModelTrouble;

use crate::event::{Problem, ProblemCode};
use crate::guard::Open;
use crate::run::Hindrance;

/// What a database's trouble means for a run.
pub(crate) fn engine_trouble(error: EngineTrouble) -> Hindrance {
    if let Some(open) = Open::in_engine_error(&error) {
        return Hindrance::Gone(open.into());
    }
    match error {
        EngineTrouble::Rejected(said) => Hindrance::Rejected(said),
        EngineTrouble::TimedOut { after } => Hindrance::TimedOut(after),
        EngineTrouble::Cancelled => Hindrance::Cancelled,
        EngineTrouble::StepLimit { .. } => Hindrance::Gone(Problem {
            code: ProblemCode::BudgetExceeded,
            message: error.to_string(),
            hint: error.hint().map(str::to_string),
            retry_after_s: None,
        }),
        EngineTrouble::Unavailable { .. } | EngineTrouble::WrongDialect { .. } | EngineTrouble::Internal(_) => {
            Hindrance::Gone(Problem {
                code: ProblemCode::DatabaseUnavailable,
                message: error.to_string(),
                hint: error.hint().map(str::to_string),
                retry_after_s: None,
            })
        }
    }
}

/// What a model's trouble means for a run.
pub(crate) fn model_trouble(error: &ModelTrouble) -> Hindrance {
    if let Some(open) = Open::in_model_error(error) {
        return Hindrance::Gone(open.into());
    }
    if *error == ModelTrouble::Cancelled {
        return Hindrance::Cancelled;
    }
    let problem = Problem {
        code: ProblemCode::ModelUnavailable,
        message: error.to_string(),
        hint: error.hint().map(str::to_string),
        retry_after_s: error.retry_after().map(|wait| wait.as_secs_f64().ceil() as u64),
    };
    match error {
        ModelTrouble::ContextTooLong { .. } => Hindrance::TooLong(problem),
        _ => Hindrance::Gone(problem),
    }
}
