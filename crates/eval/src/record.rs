//! Record of one question: input of all metrics, and one line of a results file.

use querymend::event::Cost;
use querymend::{Answer, AnswerStatus, StopReason};
use querymend_sql::ErrorType;
use serde::{Deserialize, Serialize};

use crate::eval_case::{EvalCase, Expectation};
use crate::outcome::CaseOutcome;
use crate::scorer::AnswerScore;

/// All error types.
pub(crate) const ALL_ERROR_TYPES: [ErrorType; 15] = [
    ErrorType::SyntaxError,
    ErrorType::TableNotFound,
    ErrorType::ColumnNotFound,
    ErrorType::AmbiguousColumn,
    ErrorType::FunctionNotFound,
    ErrorType::TypeMismatch,
    ErrorType::Aggregation,
    ErrorType::DivisionByZero,
    ErrorType::Cardinality,
    ErrorType::NotReadOnly,
    ErrorType::PermissionDenied,
    ErrorType::Timeout,
    ErrorType::ConnectionError,
    ErrorType::ResourceLimit,
    ErrorType::Unknown,
];

/// Returns the serialized name of an error type: `column_not_found`.
pub(crate) fn error_type_name(error_type: ErrorType) -> String {
    match serde_json::to_value(error_type) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "unknown".to_string(),
    }
}

/// Comparison of an outcome with the expectation of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectationMatch {
    /// The outcome is as expected.
    AsExpected,
    /// The outcome is better than expected, such as a first-attempt success instead of a
    /// correction.
    Better,
    /// The outcome is as expected, but the error type is another one.
    OtherError,
    /// The outcome is worse than expected: a failure, or an unexpected correction.
    Worse,
}

impl ExpectationMatch {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ExpectationMatch::AsExpected => "as expected",
            ExpectationMatch::Better => "better",
            ExpectationMatch::OtherError => "another error",
            ExpectationMatch::Worse => "worse",
        }
    }

    fn from_outcome(expect: &Expectation, outcome: CaseOutcome, error_type: Option<&str>) -> ExpectationMatch {
        match outcome.cmp(&expect.outcome) {
            std::cmp::Ordering::Greater => ExpectationMatch::Better,
            std::cmp::Ordering::Less => ExpectationMatch::Worse,
            std::cmp::Ordering::Equal => match (&expect.error_type, error_type) {
                (Some(expected), Some(was)) if expected != was => ExpectationMatch::OtherError,
                _ => ExpectationMatch::AsExpected,
            },
        }
    }
}

/// Draft of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DraftRecord {
    /// SQL as the model wrote it.
    pub sql: String,
    /// SQL as sent to the database; omitted if it was not repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mended: Option<String>,
    /// Error message; omitted if the draft did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Type of the error; omitted if the draft did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Prompt strategy of the attempt; omitted if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strategy: String,
}

/// Record of one question in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// Id of the question.
    pub id: String,
    /// 1-based number of the run.
    pub run: u32,
    /// Groups that the question belongs to.
    pub tags: Vec<String>,
    /// Outcome with respect to the correction loop.
    pub outcome: CaseOutcome,
    /// Status of the answer.
    pub status: AnswerStatus,
    /// Reason why the loop stopped; null if the question could not be asked.
    pub stop: Option<StopReason>,
    /// Query that ran, or the best attempt; null if there is none.
    pub sql: Option<String>,
    /// All drafts, in order.
    pub drafts: Vec<DraftRecord>,
    /// Error type of the first failure; `no_query` if there was no draft. Null if nothing failed.
    pub error_type: Option<String>,
    /// `true` if the rows come from the plain-rows fallback.
    pub fallback: bool,
    /// `true` if the first draft, as written, returns the rows of a gold query; null if it could
    /// not be judged.
    pub right_first: Option<bool>,
    /// `true` if the answer returns the rows of a gold query; null if it could not be judged.
    pub right: Option<bool>,
    /// Reason why the answer could not be judged; null if it was judged.
    pub unjudged: Option<String>,
    /// Comparison of the outcome with the expectation; null without an expectation.
    pub behaviour: Option<ExpectationMatch>,
    /// Number of model calls.
    pub llm_calls: u32,
    /// Cost of the model calls.
    pub cost: Cost,
    /// Time from question to answer, in seconds.
    pub seconds: f64,
    /// Reason why the question could not be asked, such as an unreachable model or database. The
    /// question is asked again when the run resumes. Null otherwise.
    pub trouble: Option<String>,
}

impl CaseRecord {
    /// Creates a record from an answer.
    pub(crate) fn from_answer(case: &EvalCase, run: u32, answer: &Answer, score: AnswerScore) -> CaseRecord {
        let outcome = CaseOutcome::from_answer(answer);
        let error_type = (outcome != CaseOutcome::FirstAttempt).then(|| first_failure(answer));
        let drafts = answer.attempts.iter().map(|attempt| DraftRecord {
            sql: attempt.sql.clone(),
            mended: attempt.mended.clone(),
            error: attempt.error.clone(),
            error_type: attempt.error_type.map(error_type_name),
            strategy: attempt.strategy.to_string(),
        });
        CaseRecord {
            id: case.id.clone(),
            run,
            tags: case.tags.clone(),
            outcome,
            status: answer.status,
            stop: Some(answer.stop),
            sql: answer.sql.clone(),
            drafts: drafts.collect(),
            behaviour: case
                .expect
                .as_ref()
                .map(|expect| ExpectationMatch::from_outcome(expect, outcome, error_type.as_deref())),
            error_type,
            fallback: answer.fallback,
            right_first: score.first_draft_right,
            right: score.answer_right,
            unjudged: score.unjudged,
            llm_calls: answer.metadata.llm_calls,
            cost: answer.cost,
            seconds: answer.metadata.total_duration_ms / 1_000.0,
            trouble: None,
        }
    }

    /// Creates a record for a question that could not be asked.
    pub(crate) fn from_failure(case: &EvalCase, run: u32, failure: String) -> CaseRecord {
        let (outcome, error_type) = (CaseOutcome::Failed, NO_QUERY.to_string());
        CaseRecord {
            id: case.id.clone(),
            run,
            tags: case.tags.clone(),
            outcome,
            status: AnswerStatus::Failed,
            stop: None,
            sql: None,
            drafts: Vec::new(),
            behaviour: case
                .expect
                .as_ref()
                .map(|expect| ExpectationMatch::from_outcome(expect, outcome, Some(&error_type))),
            error_type: Some(error_type),
            fallback: false,
            // An unanswered question with a gold query is not right, whatever the cause.
            right_first: (!case.gold.is_empty()).then_some(false),
            right: (!case.gold.is_empty()).then_some(false),
            unjudged: None,
            llm_calls: 0,
            cost: Cost::default(),
            seconds: 0.0,
            trouble: Some(failure),
        }
    }
}

const NO_QUERY: &str = "no_query";

/// Returns the error type of the first draft: as classified, or as given by the rule that repaired
/// it.
fn first_failure(answer: &Answer) -> String {
    let Some(first) = answer.attempts.first() else { return NO_QUERY.to_string() };
    let rule = first.finding.as_deref().or_else(|| first.fixes.first().map(|fix| fix.code));
    error_type_name(first.error_type.unwrap_or_else(|| rule.map_or(ErrorType::Unknown, ErrorType::of)))
}
