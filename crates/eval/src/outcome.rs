//! Outcome of a question.

use querymend::{Answer, AnswerStatus};
use serde::{Deserialize, Serialize};

/// Outcome of a question with respect to the correction loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseOutcome {
    /// No rows.
    #[serde(alias = "final_failure")]
    Failed,
    /// Rows, after the first draft was repaired, regenerated, or replaced by plain rows.
    #[serde(alias = "corrected_success")]
    Corrected,
    /// Rows from the first draft as the model wrote it.
    #[serde(alias = "first_attempt_success")]
    FirstAttempt,
}

impl CaseOutcome {
    /// Returns the serialized name.
    pub fn name(self) -> &'static str {
        match self {
            CaseOutcome::Failed => "failed",
            CaseOutcome::Corrected => "corrected",
            CaseOutcome::FirstAttempt => "first_attempt",
        }
    }

    /// Returns whether the question was answered with rows.
    pub fn is_success(self) -> bool {
        self != CaseOutcome::Failed
    }

    pub(crate) fn from_answer(answer: &Answer) -> CaseOutcome {
        let untouched = matches!(answer.attempts.as_slice(), [only] if only.mended.is_none() && only.error.is_none());
        match answer.status {
            AnswerStatus::Answered if untouched && !answer.fallback => CaseOutcome::FirstAttempt,
            AnswerStatus::Answered => CaseOutcome::Corrected,
            // Text is not rows, and an evaluation has no user to choose an option.
            AnswerStatus::GaveUp
            | AnswerStatus::AskUser
            | AnswerStatus::Chat
            | AnswerStatus::Drafted
            | AnswerStatus::Failed
            | AnswerStatus::Abstained
            | AnswerStatus::Refused => CaseOutcome::Failed,
        }
    }
}
