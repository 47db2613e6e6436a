//! Events of a run and the answer: the contract that every surface consumes.

mod answer;
mod problem;

use querymend_sql::diff::DiffHunk;
use querymend_sql::{AppliedFix, EngineError, ErrorType, Finding, QueryReferences};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::answer::{
    Answer, AnswerStatus, Attempt, Clarification, ClarificationChoice, Correction, Cost, Metadata, Program, StopReason,
    TableQuery,
};
pub use self::problem::{Problem, ProblemCode};
pub use crate::confidence::Confidence;

/// Stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Classifies the message and retrieves matching examples.
    PatternSelection,
    /// Reads the schema and selects the relevant tables.
    SchemaDiscovery,
    /// The model generates SQL.
    Generation,
    /// Reviews the generated query.
    GuardrailCheck,
    /// Executes the query on the database.
    ToolExecution,
    /// Repairs the query.
    SelfCorrection,
    /// Ended with an answer.
    Completed,
    /// Ended without an answer.
    Failed,
    /// Waits for the user's choice.
    HumanInTheLoop,
}

/// Event of a run. Surfaces only observe events and make no decisions.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run started.
    Started {
        /// Identifier of the run.
        trace_id: String,
        /// Question of the user.
        question: String,
        /// Name of the database.
        database: String,
        /// Name of the model.
        model: String,
        /// SQL dialect.
        dialect: &'static str,
        /// Maximum number of drafts.
        max_attempts: u32,
    },
    /// The run entered another stage.
    Stage {
        /// Stage that was entered.
        stage: Stage,
        /// Attempt that it belongs to, starting at 1.
        attempt: u32,
    },
    /// Schema linking finished; once per question.
    SchemaLinked {
        /// Tables included in the prompt.
        tables: Vec<String>,
        /// Total number of readable tables.
        of: usize,
    },
    /// Examples were retrieved from memory.
    ExamplesRetrieved {
        /// ID of the example whose query is used instead of prompting the model. Absent if there is
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        known: Option<String>,
        /// Few-shot examples included in the prompt.
        examples: Vec<ExampleRef>,
        /// IDs of examples that do not match the current schema.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        stale: Vec<String>,
        /// Reason that retrieval failed. Absent if it succeeded.
        #[serde(skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    /// The model streamed a piece of text.
    Text {
        /// Piece of text.
        piece: String,
    },
    /// The model finished a draft.
    Drafted {
        /// Number of the attempt.
        attempt: u32,
        /// Text of the draft, truncated if it is very long.
        text: String,
        /// Tokens used, and their cost.
        usage: Cost,
    },
    /// Several candidates were executed, and the majority result was chosen.
    CandidatesCompared {
        /// Number of the attempt.
        attempt: u32,
        /// Distinct candidates.
        drafts: Vec<String>,
        /// Number of candidates that agree with the chosen result.
        agree: usize,
        /// Number of candidates that passed the review.
        of: usize,
    },
    /// A query was reviewed.
    Reviewed {
        /// Number of the attempt.
        attempt: u32,
        /// Query that was reviewed.
        sql: String,
        /// `true` if the query may be executed.
        approved: bool,
        /// Errors and warnings of the review.
        findings: Vec<Finding>,
        /// Names that the query references.
        extracted: QueryReferences,
    },
    /// A query was repaired without the model.
    Repaired {
        /// Number of the attempt.
        attempt: u32,
        /// Query before the repair.
        before: String,
        /// Query after the repair.
        after: String,
        /// Applied fixes.
        applied: Vec<AppliedFix>,
        /// Changed snippets.
        changes: Vec<DiffHunk>,
    },
    /// The database executed the query.
    Executed {
        /// Number of the attempt.
        attempt: u32,
        /// Query that was executed.
        sql: String,
        /// Number of rows returned.
        rows: usize,
        /// `true` if there were more rows than returned.
        truncated: bool,
        /// Execution time, in milliseconds.
        ms: f64,
    },
    /// The database rejected the query.
    Rejected {
        /// Number of the attempt.
        attempt: u32,
        /// Query that was rejected.
        sql: String,
        /// Error of the database.
        error: EngineError,
        /// Code of the rule that the error is classified as.
        finding: &'static str,
        /// Category of the error.
        error_type: ErrorType,
    },
    /// The model is prompted again.
    Retrying {
        /// Number of the attempt that starts.
        attempt: u32,
        /// Maximum number of attempts.
        of: u32,
        /// Name of the retry strategy.
        strategy: &'static str,
        /// Feedback to the model.
        feedback: Vec<Feedback>,
    },
    /// The model changed its query after a retry.
    Changed {
        /// Number of the attempt.
        attempt: u32,
        /// Changed snippets.
        changes: Vec<DiffHunk>,
    },
    /// The attempts are exhausted: plain rows are fetched and analyzed in this process.
    FallbackStarted {
        /// Tables that are fetched.
        tables: Vec<String>,
    },
    /// The run ended.
    Finished {
        /// Answer of the run.
        answer: Box<Answer>,
    },
}

/// Few-shot example included in a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExampleRef {
    /// ID of the example.
    pub id: String,
    /// Question of the example.
    pub question: String,
    /// Similarity to the current question; 1 is identical.
    pub similarity: f32,
}

/// Feedback to a model about its query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Feedback {
    /// Code of the rule that produced it.
    pub kind: String,
    /// Text of the feedback.
    pub text: String,
}
