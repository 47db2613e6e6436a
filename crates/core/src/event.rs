//! What happens while a question is answered, and the answer: the one contract that every surface listens to.

mod answer;
mod problem;

use querymend_sql::diff::Change;
use querymend_sql::{Applied, EngineError, ErrorType, Extracted, Finding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::answer::{
    Answer, Attempt, Choice, Clarification, Confidence, Correction, Cost, Metadata, Plain, Program, Status, Stop,
};
pub use self::problem::{Problem, ProblemCode};

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
