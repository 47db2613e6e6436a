//! What became of one question: all that scores are made of, and what a line of a results file holds.

use querymend::event::Cost;
use querymend::{Answer, Status, Stop};
use querymend_sql::ErrorType;
use serde::{Deserialize, Serialize};

use crate::judge::Judged;
use crate::{Case, Expect};

/// Every family of failure.
pub(crate) const ERROR_TYPES: [ErrorType; 15] = [
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

/// A family of failure as files and reports write it: `column_not_found`.
pub(crate) fn name_of(error_type: ErrorType) -> String {
    match serde_json::to_value(error_type) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "unknown".to_string(),
    }
}

/// How a question ended, as far as the correction loop goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Without rows.
    #[serde(alias = "final_failure")]
    Failed,
    /// With rows, after the first draft had to be mended, asked for again, or replaced by plain rows.
    #[serde(alias = "corrected_success")]
    Corrected,
    /// With rows, from the first draft as the model wrote it.
    #[serde(alias = "first_attempt_success")]
    FirstAttempt,
}

impl Outcome {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Failed => "failed",
            Outcome::Corrected => "corrected",
            Outcome::FirstAttempt => "first_attempt",
        }
    }

    /// Whether there were rows in the end.
    pub fn is_success(self) -> bool {
        self != Outcome::Failed
    }

    fn of(answer: &Answer) -> Outcome {
        let untouched = matches!(answer.attempts.as_slice(), [only] if only.mended.is_none() && only.error.is_none());
        match answer.status {
            Status::Answered if untouched && !answer.fallback => Outcome::FirstAttempt,
            Status::Answered => Outcome::Corrected,
            // Words are no rows, and a choice that nobody is there to make is no answer.
            Status::GaveUp
            | Status::AskUser
            | Status::Chat
            | Status::Drafted
            | Status::Failed
            | Status::Abstained
            | Status::Refused => Outcome::Failed,
        }
    }
}

/// How an outcome compares with what the dataset expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// As expected.
    AsExpected,
    /// It was to be corrected, and was right away.
    Better,
    /// It was corrected, but of another failure than expected.
    OtherError,
    /// It failed, or had to be corrected where it should not.
    Worse,
}

impl Behaviour {
    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Behaviour::AsExpected => "as expected",
            Behaviour::Better => "better",
            Behaviour::OtherError => "another error",
            Behaviour::Worse => "worse",
        }
    }

    fn of(expect: &Expect, outcome: Outcome, error_type: Option<&str>) -> Behaviour {
        match outcome.cmp(&expect.outcome) {
            std::cmp::Ordering::Greater => Behaviour::Better,
            std::cmp::Ordering::Less => Behaviour::Worse,
            std::cmp::Ordering::Equal => match (&expect.error_type, error_type) {
                (Some(expected), Some(was)) if expected != was => Behaviour::OtherError,
                _ => Behaviour::AsExpected,
            },
        }
    }
}

/// One draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// As the model wrote it.
    pub sql: String,
    /// As it was sent, if it was mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mended: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The family of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// The way in which the model was asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strategy: String,
}

/// What became of one question in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which question.
    pub id: String,
    /// Which run, from 1.
    pub run: u32,
    /// The groups that it belongs to.
    pub tags: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// How it ended, in the words of the loop.
    pub status: Status,
    /// Why it ended.
    pub stop: Option<Stop>,
    /// The query that ran, or the best attempt.
    pub sql: Option<String>,
    /// Every draft.
    pub drafts: Vec<Draft>,
    /// The family of the first failure; `no_query` if there was no draft at all. Absent where nothing failed.
    pub error_type: Option<String>,
    /// The rows came from plain SELECTs.
    pub fallback: bool,
    /// The first draft, as written, gives the rows of a gold query; absent where that cannot be said.
    pub right_first: Option<bool>,
    /// The answer does.
    pub right: Option<bool>,
    /// Why it cannot be said.
    pub unjudged: Option<String>,
    /// How that compares with what was expected.
    pub behaviour: Option<Behaviour>,
    /// Calls of a model.
    pub llm_calls: u32,
    /// What they cost.
    pub cost: Cost,
    /// From the question to the answer.
    pub seconds: f64,
    /// The question could not be put: the world was in the way. It is asked again when the run is taken up again.
    pub trouble: Option<String>,
}

impl Record {
    /// What an answer comes to.
    pub(crate) fn of(case: &Case, run: u32, answer: &Answer, judged: Judged) -> Record {
        let outcome = Outcome::of(answer);
        let error_type = (outcome != Outcome::FirstAttempt).then(|| first_failure(answer));
        let drafts = answer.attempts.iter().map(|attempt| Draft {
            sql: attempt.sql.clone(),
            mended: attempt.mended.clone(),
            error: attempt.error.clone(),
            error_type: attempt.error_type.map(name_of),
            strategy: attempt.strategy.to_string(),
        });
        Record {
            id: case.id.clone(),
            run,
            tags: case.tags.clone(),
            outcome,
            status: answer.status,
            stop: Some(answer.stop),
            sql: answer.sql.clone(),
            drafts: drafts.collect(),
            behaviour: case.expect.as_ref().map(|expect| Behaviour::of(expect, outcome, error_type.as_deref())),
            error_type,
            fallback: answer.fallback,
            right_first: judged.first,
            right: judged.last,
            unjudged: judged.unjudged,
            llm_calls: answer.metadata.llm_calls,
            cost: answer.cost,
            seconds: answer.metadata.total_duration_ms / 1_000.0,
            trouble: None,
        }
    }

    /// What it comes to that a question could not even be put.
    pub(crate) fn of_trouble(case: &Case, run: u32, trouble: String) -> Record {
        let (outcome, error_type) = (Outcome::Failed, NO_QUERY.to_string());
        Record {
            id: case.id.clone(),
            run,
            tags: case.tags.clone(),
            outcome,
            status: Status::Failed,
            stop: None,
            sql: None,
            drafts: Vec::new(),
            behaviour: case.expect.as_ref().map(|expect| Behaviour::of(expect, outcome, Some(&error_type))),
            error_type: Some(error_type),
            fallback: false,
            // A question with a gold query that nobody answered is not right, whatever was in the way.
            right_first: (!case.gold.is_empty()).then_some(false),
            right: (!case.gold.is_empty()).then_some(false),
            unjudged: None,
            llm_calls: 0,
            cost: Cost::default(),
            seconds: 0.0,
            trouble: Some(trouble),
        }
    }
}

const NO_QUERY: &str = "no_query";

/// The family of what was wrong with the first draft: as it was classified, or as the rule that mended it says.
fn first_failure(answer: &Answer) -> String {
    let Some(first) = answer.attempts.first() else { return NO_QUERY.to_string() };
    let rule = first.finding.as_deref().or_else(|| first.fixes.first().map(|fix| fix.code));
    name_of(first.error_type.unwrap_or_else(|| rule.map_or(ErrorType::Unknown, ErrorType::of)))
}
