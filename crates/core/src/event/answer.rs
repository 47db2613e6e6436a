//! How a question ended, with everything that led there.

use crate::confidence::ConfidenceFeatures;
use querymend_sql::{Applied, ErrorType, Finding, Rows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Problem;
use crate::chart::Chart;

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
    /// With a query that was checked and not run, because there is no database.
    Drafted,
    /// Without: every way was tried.
    GaveUp,
    /// A person has to choose between readings: see `clarification`.
    AskUser,
    /// It was no question about the data, and was answered in words.
    Chat,
    /// The world was in the way: no database, no model, cancelled.
    Failed,
    /// The database lacks what the question asks about; `problem` says what is missing and names the closest tables.
    Abstained,
    /// The message asks to change data, which is never done.
    Refused,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The query ran.
    Answered,
    /// The query passed every check, and there is no database to run it on.
    NotRun,
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
    /// Nothing in the database covers the subject of the question.
    MissingSubject,
    /// The message asks to change data.
    WriteRequest,
    /// The question has several readings that lead to different rows.
    Ambiguous,
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
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
    /// What every query was checked against before it was run: groups of rules, then registered validators. Empty where no query
    /// was reviewed.
    pub guardrails_checked: Vec<String>,
    /// Reviews of queries, each against all guardrails.
    pub reviews: u32,
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

/// A question back to the person who asked: several readings lead to different rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Clarification {
    /// The question in plain words: "Which date: orders.ordered_on or orders.shipped_on?".
    pub question: String,
    /// Two to four options, the most likely first.
    pub options: Vec<Choice>,
}

/// One option of a clarifying question.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Choice {
    /// What tells it from the other options, such as `orders.shipped_on`.
    pub label: String,
    /// The query of this reading. Send it back as `choice`, with the same question, to go on; it is reviewed again.
    pub sql: String,
    /// What speaks for it.
    pub why: String,
    /// The first rows that the query returns, at most 3; `truncated` says that there are more.
    pub preview: Rows,
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
    /// Words instead of rows, or beside them: one sentence that is made without a model, or the model's summary where one was
    /// asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How sure the answer is.
    pub confidence: Confidence,
    /// What the level was computed from; only `ask --batch` shows it.
    #[serde(skip)]
    pub confidence_features: Option<ConfidenceFeatures>,
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
    /// What a person has to choose; only with the status `ask_user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clarification: Option<Clarification>,
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
