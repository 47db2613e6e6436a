//! What happens while a question is answered, and the answer: the one contract that every surface listens to.

use querymend_sql::diff::Change;
use querymend_sql::{Applied, EngineError, ErrorType, Extracted, Finding, Rows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chart::Chart;

/// What is being done just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is decided whether the message asks for data, and which examples fit.
    PatternSelection,
    /// The tables are read and those that matter are chosen.
    SchemaDiscovery,
    /// The model writes.
    Generation,
    /// The critic reads what the model wrote.
    GuardrailCheck,
    /// The database runs the query.
    ToolExecution,
    /// The query is mended.
    SelfCorrection,
    /// There is an answer.
    Completed,
    /// There is none.
    Failed,
    /// A person is asked.
    HumanInTheLoop,
}

/// One thing that happened. Surfaces only listen: nothing is decided by them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A question was taken on.
    Started {
        /// By which the run is found again.
        trace_id: String,
        /// The question.
        question: String,
        /// The database.
        database: String,
        /// The model.
        model: String,
        /// The dialect that is spoken.
        dialect: &'static str,
        /// How many drafts there may be.
        max_attempts: u32,
    },
    /// Something else is being done now.
    Stage {
        /// What.
        stage: Stage,
        /// The attempt that it belongs to, from 1.
        attempt: u32,
    },
    /// The schema was looked at, once for the whole question.
    Linked {
        /// The tables that the model is shown.
        tables: Vec<String>,
        /// How many there are in all.
        of: usize,
    },
    /// Memory was asked.
    Recalled {
        /// The example whose query is tried instead of asking a model.
        #[serde(skip_serializing_if = "Option::is_none")]
        known: Option<String>,
        /// The examples that the model is shown.
        examples: Vec<Shown>,
        /// Examples that do not fit the tables any more.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        stale: Vec<String>,
        /// Why memory could not be asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    /// The model wrote a piece of text.
    Text {
        /// The piece.
        piece: String,
    },
    /// The model is done writing.
    Drafted {
        /// The attempt.
        attempt: u32,
        /// What it wrote, cut where it is very long.
        text: String,
        /// Tokens read and written.
        usage: Cost,
    },
    /// Several drafts were run, and the one whose answer most of them agree on was taken.
    Weighed {
        /// The attempt.
        attempt: u32,
        /// The drafts that differ.
        drafts: Vec<String>,
        /// How many of all drafts agree on the answer that was taken.
        agree: usize,
        /// How many drafts passed the review.
        of: usize,
    },
    /// The critic looked at a query.
    Reviewed {
        /// The attempt.
        attempt: u32,
        /// The query.
        sql: String,
        /// Whether it may be sent.
        approved: bool,
        /// What is wrong with it, or odd.
        findings: Vec<Finding>,
        /// The names it uses.
        extracted: Extracted,
    },
    /// A query was mended without the model.
    Mended {
        /// The attempt.
        attempt: u32,
        /// The query before.
        before: String,
        /// The query now.
        after: String,
        /// What was done.
        applied: Vec<Applied>,
        /// The snippets that changed.
        changes: Vec<Change>,
    },
    /// The database gave rows.
    Executed {
        /// The attempt.
        attempt: u32,
        /// The query.
        sql: String,
        /// How many rows came back.
        rows: usize,
        /// There were more.
        truncated: bool,
        /// How long it took, in milliseconds.
        ms: f64,
    },
    /// The database refused the query.
    Rejected {
        /// The attempt.
        attempt: u32,
        /// The query.
        sql: String,
        /// Its own words.
        error: EngineError,
        /// The rule that they belong to.
        finding: &'static str,
        /// The family of failure.
        error_type: ErrorType,
    },
    /// The model is asked again.
    Retrying {
        /// The attempt that begins.
        attempt: u32,
        /// How many there may be.
        of: u32,
        /// The way in which it is asked.
        strategy: &'static str,
        /// What it is told, and of which kind.
        feedback: Vec<Feedback>,
    },
    /// What the model changed after it was asked again.
    Changed {
        /// The attempt.
        attempt: u32,
        /// The snippets that changed.
        changes: Vec<Change>,
    },
    /// The attempts are spent: plain rows are fetched, and the analysis runs here.
    FellBack {
        /// The tables that are fetched.
        tables: Vec<String>,
    },
    /// It is over.
    Finished {
        /// How it ended.
        answer: Box<Answer>,
    },
}

/// An example that a model is shown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Shown {
    /// By which it is known.
    pub id: String,
    /// Its question.
    pub question: String,
    /// How like that is to the question that is asked: 1 is the same.
    pub similarity: f32,
}

/// One thing that a model is told about its query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Feedback {
    /// The rule that it comes from.
    pub kind: String,
    /// The words.
    pub text: String,
}

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// What that cost, where the price is known.
    pub usd: Option<f64>,
}

impl Cost {
    /// Both together. The price stays unknown only if both are.
    pub fn plus(self, other: Cost) -> Cost {
        Cost {
            input_tokens: self.input_tokens + other.input_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
            usd: match (self.usd, other.usd) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
            },
        }
    }
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With rows.
    Answered,
    /// Without: every way was tried.
    GaveUp,
    /// A person has to choose.
    AskUser,
    /// It was no question about the data, and was answered in words.
    Chat,
    /// The world was in the way: no database, no model, cancelled.
    Failed,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The query ran.
    Answered,
    /// It was answered in words.
    Talked,
    /// The attempts are spent.
    AttemptsSpent,
    /// The model wrote a query that was there before.
    SameSql,
    /// The same fault came twice in a row.
    SameError,
    /// The kind of failure is not worth another try.
    NotRetryable,
    /// Correction is turned off.
    CorrectionOff,
    /// The policy allows no more tries for this kind of failure.
    PolicySpent,
    /// As many tokens were used as were allowed.
    TokensSpent,
    /// As much was spent as was allowed.
    CostSpent,
    /// The time is up.
    TimeSpent,
    /// The model cannot be asked.
    ModelFailed,
    /// The database cannot be asked.
    DatabaseFailed,
    /// Someone stopped it.
    Cancelled,
    /// The question itself cannot be taken on.
    BadQuestion,
}

/// How sure an answer is, from checks and not from the model's opinion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Something speaks against it.
    Low,
    /// It was mended, or something could not be checked.
    Medium,
    /// It passed every check as it was written.
    High,
}

/// Why there is no answer, in a form that protocols can map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The kind.
    pub code: ProblemCode,
    /// For people.
    pub message: String,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When to try again, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

impl Problem {
    /// One of a kind, with nothing to be said about what can be done.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, retry_after_s: None }
    }

    /// With what can be done about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The kinds of failure that clients tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ProblemCode {
    MaxRetriesExceeded,
    CircuitBreakerOpen,
    PreflightValidationFailed,
    PermissionDeniedNotRetryable,
    BudgetExceeded,
    ModelUnavailable,
    DatabaseUnavailable,
    Cancelled,
    BadRequest,
    Unauthenticated,
    Forbidden,
    NotFound,
    Conflict,
    TooLarge,
    TooManyRequests,
    Unavailable,
    Internal,
}

impl ProblemCode {
    /// The HTTP status that says it.
    pub fn http_status(self) -> u16 {
        match self {
            ProblemCode::MaxRetriesExceeded | ProblemCode::BudgetExceeded | ProblemCode::Internal => 500,
            ProblemCode::CircuitBreakerOpen
            | ProblemCode::ModelUnavailable
            | ProblemCode::DatabaseUnavailable
            | ProblemCode::Unavailable => 503,
            ProblemCode::PreflightValidationFailed | ProblemCode::BadRequest => 400,
            ProblemCode::Unauthenticated => 401,
            ProblemCode::PermissionDeniedNotRetryable | ProblemCode::Forbidden => 403,
            ProblemCode::NotFound => 404,
            ProblemCode::Conflict => 409,
            ProblemCode::TooLarge => 413,
            ProblemCode::TooManyRequests => 429,
            // The client is gone: nobody reads it, but logs do.
            ProblemCode::Cancelled => 499,
        }
    }

    /// The gRPC status that says it.
    pub fn grpc_status(self) -> &'static str {
        match self {
            ProblemCode::MaxRetriesExceeded => "FAILED_PRECONDITION",
            ProblemCode::BudgetExceeded | ProblemCode::TooManyRequests | ProblemCode::TooLarge => "RESOURCE_EXHAUSTED",
            ProblemCode::Unauthenticated => "UNAUTHENTICATED",
            ProblemCode::NotFound => "NOT_FOUND",
            ProblemCode::Conflict => "ABORTED",
            ProblemCode::Internal => "INTERNAL",
            ProblemCode::CircuitBreakerOpen
            | ProblemCode::ModelUnavailable
            | ProblemCode::DatabaseUnavailable
            | ProblemCode::Unavailable => "UNAVAILABLE",
            ProblemCode::PreflightValidationFailed | ProblemCode::BadRequest => "INVALID_ARGUMENT",
            ProblemCode::PermissionDeniedNotRetryable | ProblemCode::Forbidden => "PERMISSION_DENIED",
            ProblemCode::Cancelled => "CANCELLED",
        }
    }
}

/// One draft and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// The query as the model wrote it, out of its wrapping; the whole text where there is no query in it.
    pub sql: String,
    /// The query that was sent, if it was mended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mended: Option<String>,
    /// What was done to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Applied>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The rule that this belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// The family of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<ErrorType>,
    /// The way in which the model was asked; empty for the first draft.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub strategy: &'static str,
    /// It never reached the database: the critic held it back.
    pub held_back: bool,
}

/// One correction, as the protocol tells it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Correction {
    /// What was wrong.
    pub original_error: String,
    /// How it was mended: a rule, or the way in which the model was asked.
    pub strategy: String,
    /// The query ran afterwards.
    pub successful: bool,
    /// How sure it is.
    pub confidence: Confidence,
    /// How long it took.
    pub duration_ms: f64,
}

/// What a run took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Metadata {
    /// Questions of the conversation so far, with this one.
    pub turns: u32,
    /// Calls of a model.
    pub llm_calls: u32,
    /// Calls of a database.
    pub tool_executions: u32,
    /// Corrections that were tried, by rules and by the model.
    pub correction_attempts: u32,
    /// From the question to the answer.
    pub total_duration_ms: f64,
    /// Reviews of the critic.
    pub guardrails_checked: u32,
}

/// A program over plain rows, for whoever asked to run where it can do no harm. It was written by a model and has not been run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Program {
    /// The rows that it needs.
    pub tables: Vec<Plain>,
    /// Python with pandas, which leaves its answer in `result`.
    pub code: String,
}

/// A whole table, as a program knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Plain {
    /// The variable that holds its rows.
    pub name: String,
    /// The table.
    pub table: String,
    /// The query that fetches its rows.
    pub sql: String,
}

/// How a question ended, with everything that led there.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// How it ended.
    pub status: Status,
    /// Why it ended.
    pub stop: Stop,
    /// By which the run is found again.
    pub trace_id: String,
    /// The question.
    pub question: String,
    /// The query that ran, or the best attempt.
    pub sql: Option<String>,
    /// The rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Rows>,
    /// The picture that fits the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    /// Words instead of rows, or beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How sure the answer is.
    pub confidence: Confidence,
    /// Why it is no surer.
    pub reasons: Vec<String>,
    /// What was mended in the query that ran.
    pub fixes: Vec<Applied>,
    /// What is odd about the query that ran.
    pub warnings: Vec<Finding>,
    /// Every draft.
    pub attempts: Vec<Attempt>,
    /// Every correction.
    pub corrections: Vec<Correction>,
    /// The examples that the model was shown, by their ids in memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The example that it was answered from, without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<String>,
    /// What a person can choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The rows come from plain SELECTs that were analysed here.
    pub fallback: bool,
    /// What can be computed where the question came from, since no query answered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Program>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// What the run took.
    pub metadata: Metadata,
    /// What models cost.
    pub cost: Cost,
}
