//! Answer of a run with its attempts, corrections and cost.

use crate::confidence::{Confidence, ConfidenceFeatures};
use querymend_sql::{AppliedFix, ErrorType, Finding, Rows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Problem;
use crate::chart::Chart;

/// Model usage.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Number of input tokens.
    pub input_tokens: u64,
    /// Number of output tokens.
    pub output_tokens: u64,
    /// Cost in US dollars; absent if the price is unknown.
    pub usd: Option<f64>,
}

impl Cost {
    /// Adds two costs. The price is unknown only if both are.
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

/// Outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    /// Answered with rows.
    Answered,
    /// Answered with a query that was reviewed but not executed, because there is no database.
    Drafted,
    /// Not answered: every attempt failed.
    GaveUp,
    /// The user has to choose between interpretations: see `clarification`.
    AskUser,
    /// Not a question about the data; answered in text.
    Chat,
    /// An external condition prevented the answer: no database, no model, or cancelled.
    Failed,
    /// The database lacks the subject of the question. `problem` names the missing subject and the
    /// closest tables.
    Abstained,
    /// The message asks to change data, which is never done.
    Refused,
}

/// Reason that a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The query was executed.
    Answered,
    /// The query passed every check, and there is no database to execute it.
    NotRun,
    /// The message was answered in text.
    Chat,
    /// The attempts are exhausted.
    MaxAttempts,
    /// The model repeated a previous query.
    RepeatedSql,
    /// The same error occurred twice in a row.
    SameError,
    /// The kind of failure is not retryable.
    NotRetryable,
    /// Self-correction is disabled.
    CorrectionOff,
    /// The retry policy allows no more attempts for this kind of failure.
    RetryPolicy,
    /// The token budget is exhausted.
    TokenBudget,
    /// The cost budget is exhausted.
    CostBudget,
    /// The deadline has passed.
    TimeBudget,
    /// The model is unavailable.
    ModelFailed,
    /// The database is unavailable.
    DatabaseFailed,
    /// The run was cancelled.
    Cancelled,
    /// The question is invalid.
    BadQuestion,
    /// Nothing in the database covers the subject of the question.
    MissingSubject,
    /// The message asks to change data.
    WriteRequest,
    /// The question has several interpretations that lead to different rows.
    Ambiguous,
}

/// Draft and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Attempt {
    /// Number of the attempt, starting at 1.
    pub number: u32,
    /// Query extracted from the model's text; the entire text if it contains no query.
    pub sql: String,
    /// Query that was executed if it differs because of a repair; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mended: Option<String>,
    /// Fixes applied to the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<AppliedFix>,
    /// Error message. Absent if the query succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Code of the rule that the error belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Category of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<ErrorType>,
    /// Retry strategy that produced the draft; empty for the first draft.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub strategy: &'static str,
    /// `true` if the review blocked the query before execution.
    pub held_back: bool,
}

/// Outcome of one correction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Correction {
    /// Error that was corrected.
    pub original_error: String,
    /// Rule or retry strategy that corrected it.
    pub strategy: String,
    /// `true` if the query was executed successfully afterwards.
    pub successful: bool,
    /// Confidence in the correction.
    pub confidence: Confidence,
    /// Duration, in milliseconds.
    pub duration_ms: f64,
}

/// Statistics of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Metadata {
    /// Number of questions in the conversation, including this one.
    pub turns: u32,
    /// Number of model calls.
    pub llm_calls: u32,
    /// Number of database calls.
    pub tool_executions: u32,
    /// Number of attempted corrections, by rules and by the model.
    pub correction_attempts: u32,
    /// Time from question to answer, in milliseconds.
    pub total_duration_ms: f64,
    /// Checks applied to every query before execution: rule groups, then registered validators.
    /// Empty if no query was reviewed.
    pub guardrails_checked: Vec<String>,
    /// Number of reviewed queries, each against all guardrails.
    pub reviews: u32,
}

/// Program over plain rows, for the client to run in a sandbox.
///
/// It was written by a model and has not been run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Program {
    /// Input tables.
    pub tables: Vec<TableQuery>,
    /// Python with pandas; assigns its answer to `result`.
    pub code: String,
}

/// Input table of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TableQuery {
    /// Variable that holds the rows.
    pub name: String,
    /// Name of the table.
    pub table: String,
    /// Query that fetches the rows.
    pub sql: String,
}

/// Clarification question to the user: several interpretations lead to different rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Clarification {
    /// Question in plain language: "Which date: orders.ordered_on or orders.shipped_on?".
    pub question: String,
    /// Two to four options, most likely first.
    pub options: Vec<ClarificationChoice>,
}

/// Option of a clarification question.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Choice")]
pub struct ClarificationChoice {
    /// Distinguishing part of the option, such as `orders.shipped_on`.
    pub label: String,
    /// Query of this interpretation. Send it back as `choice` with the same question to continue.
    /// It is reviewed again.
    pub sql: String,
    /// Reason for this interpretation.
    pub why: String,
    /// First rows of the query, at most 3; `truncated` is `true` if there are more.
    pub preview: Rows,
}

/// Answer to a question, with its attempts and corrections.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// Outcome of the question.
    pub status: AnswerStatus,
    /// Reason that the run ended.
    pub stop: StopReason,
    /// Identifier of the run.
    pub trace_id: String,
    /// Question of the user.
    pub question: String,
    /// Query that was executed, or the best attempt.
    pub sql: Option<String>,
    /// Rows of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Rows>,
    /// Chart that fits the rows. Absent if a table is more readable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    /// Text instead of rows, or alongside them. One sentence generated without a model, or the
    /// model's summary if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Confidence in the answer.
    pub confidence: Confidence,
    /// Features that the confidence was computed from; only serialized by `ask --batch`.
    #[serde(skip)]
    pub confidence_features: Option<ConfidenceFeatures>,
    /// Reasons that the confidence is not higher.
    pub reasons: Vec<String>,
    /// Fixes applied to the executed query.
    pub fixes: Vec<AppliedFix>,
    /// Warnings about the executed query.
    pub warnings: Vec<Finding>,
    /// All drafts.
    pub attempts: Vec<Attempt>,
    /// All corrections.
    pub corrections: Vec<Correction>,
    /// IDs of the few-shot examples in the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// ID of the example that provided the query without a model. Absent if a model was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<String>,
    /// Clarification question; only present if the status is `ask_user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clarification: Option<Clarification>,
    /// `true` if the rows come from plain SELECTs that were analyzed in this process.
    pub fallback: bool,
    /// Program for the client to run, because no query answered the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Program>,
    /// Reason that there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Statistics of the run.
    pub metadata: Metadata,
    /// Cost of all model calls.
    pub cost: Cost,
}
