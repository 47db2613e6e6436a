//! State machine of a run: makes every decision about a question.
//!
//! It is pure: it requests a [`RunStep`], receives the [`StepOutcome`], and never does I/O.
//! `driver.rs` performs the steps.
//!
//! ```text
//! Gather → Complete → review ─ clean ─────────────────→ Execute → rows → Done
//!              ↑        └ errors → Repair ─ repaired ──↗   └ rejected → Repair, once
//!              └──────────── retry ←─ not repaired ←──────────┘
//!                              └ exhausted → FetchTables → Complete → Execute, once, on plain rows
//!                                             (or Complete → Done: a program that the client runs)
//! ```

mod answer;
mod clarify;
mod client_analysis;
mod failure;
mod memory;
mod transitions;
mod vote;

pub use clarify::Clarify;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use querymend_model::Message;
use querymend_sql::coverage::MissingSubject;
use querymend_sql::diff::NormalizedTokens;
use querymend_sql::schema::Schema;
use querymend_sql::{
    AblatedQuery, AppliedFix, Approved, Dialect, EngineError, Finding, LiteralFilter, Policy, QueryFeatures,
    RepairOutcome, Review, Rows,
};

use crate::event::{Answer, Attempt, Confidence, Correction, Cost, Event, Problem, Program, StopReason};
use crate::linking::SchemaLinker;
use crate::memory::RetrievedExamples;
use crate::prompts::PromptVariant;
use crate::resilience::Budget;
use crate::retry::RetryPolicy;
use crate::strategies::AttemptFailure;

/// Input of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskInput {
    /// Question of the user.
    pub question: String,
    /// Additional facts about the question.
    pub evidence: Option<String>,
    /// Previous questions of the conversation with their queries, oldest first.
    pub history: Vec<(String, String)>,
    /// Number of previous questions in the conversation.
    pub turn_index: u32,
    /// `true` to prompt a model even if the same question was answered before.
    pub bypass_memory: bool,
    /// `true` if the client can run programs. After the last attempt it receives a program and the
    /// queries for its input rows.
    pub client_analysis: bool,
    /// Handling of ambiguous questions; the configured one if absent.
    pub clarify: Option<Clarify>,
    /// Query of the interpretation that the user chose. It is reviewed and executed instead of a
    /// model draft.
    pub choice: Option<String>,
    /// Identifier of the run; generated if absent.
    pub trace_id: Option<String>,
    /// W3C `traceparent` that is forwarded to servers called during the run.
    pub traceparent: Option<String>,
}

/// Settings of a run.
#[derive(Clone)]
pub struct RunSettings {
    /// Identifier of the run.
    pub trace_id: String,
    /// SQL dialect.
    pub dialect: &'static Dialect,
    /// Access policy.
    pub policy: Arc<Policy>,
    /// Budget of the question.
    pub budget: Budget,
    /// Retry policy.
    pub retry: RetryPolicy,
    /// `true` to repair failed queries and to prompt the model again.
    pub self_correction: bool,
    /// `true` to block queries that are predicted to fail; otherwise the database decides. Unsafe
    /// queries are always blocked.
    pub preflight: bool,
    /// `true` if there is only a schema and no database. A query that passes every check is the
    /// answer, and nothing is executed.
    pub offline: bool,
    /// `true` to fetch and analyze plain rows after the last attempt.
    pub fallback: bool,
    /// Handling of questions with several interpretations that lead to different rows.
    pub clarify: Clarify,
    /// Template of the draft prompt.
    pub variant: &'static PromptVariant,
    /// Sampling temperature.
    pub temperature: f32,
    /// Maximum length of the schema in the prompt, in bytes.
    pub max_schema_bytes: usize,
    /// Number of candidates sampled in addition to the first.
    pub extra_candidates: u32,
}

/// Next step of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunStep {
    /// Load the schema, and retrieve examples from memory.
    Gather,
    /// Prompt the model.
    Complete {
        /// Messages of the conversation.
        messages: Vec<Message>,
        /// Sampling temperature.
        temperature: f32,
        /// `true` if the reply is a query, `false` if it is text.
        sql: bool,
        /// Number of additional candidates to sample.
        extra_candidates: u32,
    },
    /// Execute several clean candidates to compare their results.
    CompareCandidates(Vec<Approved>),
    /// Repair a text, validated by the database.
    Repair {
        /// Text to repair.
        text: String,
        /// Error of the database, if it rejected the text.
        error: Option<EngineError>,
    },
    /// Execute a query.
    Execute(Approved),
    /// Check whether literals occur in their columns, and find similar values.
    LookUpValues(Vec<LiteralFilter>),
    /// Find the predicates that individually exclude all rows.
    ExplainEmpty(Vec<AblatedQuery>),
    /// Fetch entire tables for client-side analysis.
    FetchTables(Vec<(String, Approved)>),
    /// The run has ended.
    Done,
}

/// Context gathered before the model is prompted.
#[derive(Debug, Clone, Default)]
pub struct GatheredContext {
    /// Schema prepared for linking.
    pub linker: Arc<SchemaLinker>,
    /// Examples retrieved from memory.
    pub retrieved: RetrievedExamples,
    /// Subject of the question, if nothing in the database covers it.
    pub missing_subject: Option<Box<MissingSubject>>,
}

/// Output of the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelDraft {
    /// Text of the first candidate.
    pub text: String,
    /// Texts of additional candidates.
    pub alternatives: Vec<String>,
    /// Tokens and cost.
    pub cost: Cost,
}

/// Failure of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepError {
    /// The database rejected the query.
    Rejected(EngineError),
    /// The query timed out.
    TimedOut(Duration),
    /// The run was cancelled.
    Cancelled,
    /// The conversation exceeds the context window of the model.
    ContextTooLong(Problem),
    /// The database or model is unavailable.
    Unavailable(Problem),
}

/// Outcome of a step.
#[derive(Debug, Clone)]
pub enum StepOutcome {
    /// Outcome of [`RunStep::Gather`].
    Gathered(Result<GatheredContext, StepError>),
    /// Outcome of [`RunStep::Complete`].
    Completed(Result<ModelDraft, StepError>),
    /// Outcome of [`RunStep::CompareCandidates`]: the result of each query.
    CandidatesCompared(Result<Vec<Result<Rows, StepError>>, StepError>),
    /// Outcome of [`RunStep::Repair`].
    Repaired(Result<RepairOutcome, StepError>),
    /// Outcome of [`RunStep::Execute`].
    Executed(Result<Rows, StepError>),
    /// Outcome of [`RunStep::LookUpValues`]: the missing literals, each with similar values.
    ValuesLookedUp(Result<Vec<(LiteralFilter, Vec<String>)>, StepError>),
    /// Outcome of [`RunStep::ExplainEmpty`]: the predicates without which there would be rows.
    EmptyExplained(Result<Vec<String>, StepError>),
    /// Outcome of [`RunStep::FetchTables`]: the schema of the local tables.
    TablesFetched(Result<Arc<Schema>, StepError>),
}

/// Purpose of the current model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// No model call: an exact match from memory is tried.
    Recall,
    Draft,
    Chat,
    Analysis,
    /// Program that the client runs.
    Program,
}

/// Run of one question.
pub struct QuestionRun {
    ask: AskInput,
    settings: RunSettings,
    /// Schema that queries are reviewed against: of the database, or of the fetched rows.
    schema: Arc<Schema>,
    dialect: &'static Dialect,
    linked_tables: Vec<String>,
    /// Schema prepared for linking, and the maximum length of its part in the prompt.
    linker: Arc<SchemaLinker>,
    max_schema_bytes: usize,
    /// Valid few-shot examples (question and query).
    few_shot_examples: Vec<(String, String)>,
    /// IDs of the few-shot examples in the prompt.
    example_ids: Vec<String>,
    /// ID of the example whose query is executed instead of prompting a model.
    exact_match_id: Option<String>,
    /// IDs of examples that do not match the current schema.
    stale_examples: Vec<String>,
    step: RunStep,
    purpose: Purpose,
    conversation: Vec<Message>,
    attempt: u32,
    strategy: &'static str,
    attempts: Vec<Attempt>,
    /// Query of the fallback, which is not counted as an attempt.
    fallback_query: Option<Attempt>,
    failures: Vec<AttemptFailure>,
    /// [`NormalizedTokens::identity`] of every query that was drafted or executed.
    seen_queries: HashSet<String>,
    /// Tokens of the last draft.
    last_tokens: NormalizedTokens,
    /// Current query, as drafted and in its current form.
    draft_text: String,
    current: Current,
    /// Candidates whose results are being compared.
    candidates: Vec<vote::DraftCandidate>,
    /// Interpretations whose results are being compared.
    comparison: Option<clarify::InterpretationComparison>,
    /// `true` if the interpretations of unrepaired drafts were compared.
    compared_unrepaired: bool,
    /// Empty result that becomes the answer if no later query is better.
    empty_fallback: Option<(Current, Rows)>,
    corrections: Vec<Correction>,
    /// Time at which the current correction was requested from the model.
    correction_started: Option<Duration>,
    missing_values: Vec<LiteralFilter>,
    /// Predicates that individually exclude all rows; `None` until determined.
    blocking_predicates: Option<Vec<String>>,
    /// Rows of the answer, while the predicates are determined.
    pending_rows: Option<Rows>,
    fallback_reason: Option<StopReason>,
    /// Prose from the model, while it has not written SQL.
    prose: Option<String>,
    /// `true` if any draft contained SQL.
    has_sql: bool,
    /// Program for the client, provided in place of an answer.
    analysis_program: Option<Program>,
    cost: Cost,
    call_counts: CallCounts,
    now: Duration,
    step_started: Duration,
    events: Vec<Event>,
    answer: Option<Box<Answer>>,
}

/// Query that is being processed.
#[derive(Debug, Clone, Default)]
struct Current {
    sql: String,
    fixes: Vec<AppliedFix>,
    warnings: Vec<Finding>,
    literal_filters: Vec<LiteralFilter>,
    features: QueryFeatures,
    /// Review of exactly the text that is executed.
    review: Option<Arc<Review>>,
    /// Assumption made about the interpretation, and its confidence cap. `None` if no other
    /// interpretation leads to other rows.
    assumption: Option<(Confidence, String)>,
    /// `true` if the query was already repaired after the database rejected it.
    repaired_after_rejection: bool,
    /// Error of the database, while the query is being repaired.
    engine_error: Option<EngineError>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CallCounts {
    model: u32,
    database: u32,
    reviews: u32,
    corrections: u32,
}

/// Maximum length of a question, in bytes.
pub const MAX_QUESTION_BYTES: usize = 100_000;

impl QuestionRun {
    /// Starts a run.
    pub fn new(ask: AskInput, settings: RunSettings) -> Self {
        let mut run = Self {
            schema: Arc::default(),
            dialect: settings.dialect,
            linked_tables: Vec::new(),
            linker: Arc::default(),
            max_schema_bytes: settings.max_schema_bytes,
            few_shot_examples: Vec::new(),
            example_ids: Vec::new(),
            exact_match_id: None,
            stale_examples: Vec::new(),
            step: RunStep::Gather,
            purpose: Purpose::Draft,
            conversation: Vec::new(),
            attempt: 1,
            strategy: "",
            attempts: Vec::new(),
            fallback_query: None,
            failures: Vec::new(),
            seen_queries: HashSet::new(),
            last_tokens: NormalizedTokens::default(),
            draft_text: String::new(),
            current: Current::default(),
            candidates: Vec::new(),
            comparison: None,
            compared_unrepaired: false,
            empty_fallback: None,
            corrections: Vec::new(),
            correction_started: None,
            missing_values: Vec::new(),
            blocking_predicates: None,
            pending_rows: None,
            fallback_reason: None,
            prose: None,
            has_sql: false,
            analysis_program: None,
            cost: Cost::default(),
            call_counts: CallCounts::default(),
            now: Duration::ZERO,
            step_started: Duration::ZERO,
            events: Vec::new(),
            answer: None,
            ask,
            settings,
        };
        run.check_question();
        run
    }

    /// Returns the next step. It does not change until [`QuestionRun::feed`] is called.
    pub fn step(&self) -> &RunStep {
        &self.step
    }

    /// Takes the events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Returns the answer, once the step is [`RunStep::Done`].
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_deref()
    }

    /// Takes the answer, once the step is [`RunStep::Done`].
    pub fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take().map(|answer| *answer)
    }

    /// Returns the IDs of examples that do not match the current schema.
    pub fn stale_examples(&self) -> &[String] {
        &self.stale_examples
    }

    /// Returns the number of the current attempt, starting at 1. Never exceeds the maximum.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Processes the outcome of the current step. `now` is the time since the run started.
    ///
    /// An outcome of another step is ignored.
    pub fn feed(&mut self, outcome: StepOutcome, now: Duration) {
        let before = (self.step_started, self.now);
        (self.step_started, self.now) = (self.now, now.max(self.now));
        match (&self.step, outcome) {
            (RunStep::Gather, StepOutcome::Gathered(result)) => self.on_gathered(result),
            (RunStep::Complete { .. }, StepOutcome::Completed(result)) => self.on_completion(result),
            (RunStep::CompareCandidates(_), StepOutcome::CandidatesCompared(result)) => {
                self.on_candidates_compared(result)
            }
            (RunStep::Repair { .. }, StepOutcome::Repaired(result)) => self.on_repaired(result),
            (RunStep::Execute(_), StepOutcome::Executed(result)) => self.on_executed(result),
            (RunStep::LookUpValues(_), StepOutcome::ValuesLookedUp(result)) => self.on_value_lookup(result),
            (RunStep::ExplainEmpty(_), StepOutcome::EmptyExplained(result)) => self.on_empty_explained(result),
            (RunStep::FetchTables(_), StepOutcome::TablesFetched(result)) => self.on_tables_fetched(result),
            _ => (self.step_started, self.now) = before,
        }
    }
}

/// Maximum length of model text in events, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 20_000;

/// Strategy name of an attempt whose query the user chose.
pub(crate) const CHOICE_STRATEGY: &str = "choice";
