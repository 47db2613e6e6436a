//! The state machine: every decision about a question is made here. It is pure: it asks for a [`Step`], is given the
//! [`Outcome`], and never waits. `drive.rs` carries the steps out.
//!
//! ```text
//! Gather → Complete → settle ─ clean ────────────→ Execute → rows → Done
//!              ↑        └ faults → Mend ─ mended ──↗   └ refused → Mend, once
//!              └───────────── retry ←─ not mended ←────────┘
//!                              └ attempts spent → Fetch → Complete → Execute, once, over plain rows
//!                                              (or Complete → Done: a program that whoever asks runs over them)
//! ```

mod clarify;
mod finish;
mod hand_over;
mod recall;
mod settle;
mod steps;
mod weigh;

pub use clarify::Clarify;
pub(crate) use steps::is_empty;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use querymend_model::Message;
use querymend_sql::coverage::MissingSubject;
use querymend_sql::diff::Tokens;
use querymend_sql::schema::Schema;
use querymend_sql::{
    Applied, Approved, Dialect, EngineError, Finding, Policy, Repair, Review, Rows, Shape, Stated, Without,
};

use crate::context::Tables;
use crate::event::{Answer, Attempt, Confidence, Correction, Cost, Event, Problem, Program, Stop};
use crate::guard::Budget;
use crate::memory::Recalled;
use crate::prompts::Variant;
use crate::retry::RetryPolicy;
use crate::strategies::Trouble;

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// The question.
    pub question: String,
    /// What is known besides it.
    pub evidence: Option<String>,
    /// Questions of the same conversation with the queries that answered them, oldest first.
    pub earlier: Vec<(String, String)>,
    /// How many questions of the conversation came before.
    pub turn: u32,
    /// A model is asked, even if the same question was answered before.
    pub fresh: bool,
    /// Whoever asks computes for themselves: once the attempts are spent, they are handed a program and the queries whose rows it needs.
    pub hand_over: bool,
    /// What happens where the question has several readings; as configured, if nothing is given.
    pub clarify: Option<Clarify>,
    /// The query of the reading that a person chose: it is reviewed and run instead of a draft of the model.
    pub choice: Option<String>,
    /// By which the run is found again; a new name, if none is given.
    pub trace_id: Option<String>,
    /// What servers that are asked on the way are told about the trace that this belongs to (W3C `traceparent`).
    pub traceparent: Option<String>,
}

/// What a run keeps to.
#[derive(Clone)]
pub struct Settings {
    /// By which the run is found again.
    pub trace_id: String,
    /// The dialect.
    pub dialect: &'static Dialect,
    /// What may be read.
    pub policy: Arc<Policy>,
    /// What may be spent.
    pub budget: Budget,
    /// What is worth another try.
    pub retry: RetryPolicy,
    /// Faults are mended and the model is asked again.
    pub correction: bool,
    /// A query that is known to fail is held back; else the database has the first word. What is not harmless never passes.
    pub preflight: bool,
    /// There are only tables and no database: a query that passes every check is the answer, and nothing is run.
    pub offline: bool,
    /// Once the attempts are spent, plain rows are fetched and analysed here.
    pub fallback: bool,
    /// What happens where a question has several readings that lead to different rows.
    pub clarify: Clarify,
    /// How the first question is worded.
    pub variant: &'static Variant,
    /// How freely the model chooses words.
    pub temperature: f32,
    /// How long the text of the tables may be.
    pub schema_bytes: usize,
    /// How many drafts are written at once, beside the first.
    pub more: u32,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Read the tables, and what is remembered of them.
    Gather,
    /// Ask the model.
    Complete {
        /// The conversation.
        messages: Vec<Message>,
        /// How freely words are chosen.
        temperature: f32,
        /// One query is asked for, and not a few words.
        sql: bool,
        /// So many further drafts are wanted.
        more: u32,
    },
    /// Run several queries that are all clean, to see what they come to.
    Weigh(Vec<Approved>),
    /// Mend a text, with the database as judge.
    Mend {
        /// The text.
        text: String,
        /// What the database said against it.
        error: Option<EngineError>,
    },
    /// Run a query.
    Execute(Approved),
    /// Find out whether columns hold values, and what they hold instead.
    Look(Vec<Stated>),
    /// Find out which condition alone keeps all rows away.
    Explain(Vec<Without>),
    /// Fetch whole tables, for an analysis that runs here.
    Fetch(Vec<(String, Approved)>),
    /// It is over.
    Done,
}

/// What is known before a model is asked.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// The tables.
    pub tables: Arc<Tables>,
    /// What memory has for the question.
    pub recalled: Recalled,
    /// The subject of the question, if nothing in the database covers it.
    pub missing: Option<Box<MissingSubject>>,
}

/// What a model wrote.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    /// The text.
    pub text: String,
    /// Further texts.
    pub more: Vec<String>,
    /// What it cost.
    pub cost: Cost,
}

/// Why the world is in the way.
#[derive(Debug, Clone, PartialEq)]
pub enum Hindrance {
    /// The database refused the query.
    Rejected(EngineError),
    /// The query took too long.
    TimedOut(Duration),
    /// Someone stopped it.
    Cancelled,
    /// The conversation is longer than the model can read.
    TooLong(Problem),
    /// It cannot be asked at all.
    Gone(Problem),
}

/// What came of a step.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Of [`Step::Gather`].
    Gathered(Result<Gathered, Hindrance>),
    /// Of [`Step::Complete`].
    Completed(Result<Draft, Hindrance>),
    /// Of [`Step::Weigh`]: what came of each query.
    Weighed(Result<Vec<Result<Rows, Hindrance>>, Hindrance>),
    /// Of [`Step::Mend`].
    Mended(Result<Repair, Hindrance>),
    /// Of [`Step::Execute`].
    Executed(Result<Rows, Hindrance>),
    /// Of [`Step::Look`]: the values that are absent, each with some that are there.
    Looked(Result<Vec<(Stated, Vec<String>)>, Hindrance>),
    /// Of [`Step::Explain`]: the conditions without which there would be rows.
    Explained(Result<Vec<String>, Hindrance>),
    /// Of [`Step::Fetch`]: the tables as they are here now.
    Fetched(Result<Arc<Schema>, Hindrance>),
}

/// What the model is asked for just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Nothing: a query that was remembered is tried.
    Recall,
    Draft,
    Chat,
    Analysis,
    /// A program that runs where the question came from.
    Program,
}

/// One question on its way to an answer.
pub struct Run {
    ask: Ask,
    settings: Settings,
    /// Where queries are held against: the database, or the fetched rows.
    schema: Arc<Schema>,
    dialect: &'static Dialect,
    shown: Vec<String>,
    /// The tables as they were gathered, and how many bytes of them a model is shown.
    tables: Arc<Tables>,
    bytes: usize,
    /// The examples that fit, each a question and its query.
    fitting: Vec<(String, String)>,
    /// The examples that the model is shown, by their ids.
    examples: Vec<String>,
    /// The example whose query is sent instead of asking a model.
    remembered: Option<String>,
    /// Examples that do not fit the tables any more.
    stale: Vec<String>,
    step: Step,
    purpose: Purpose,
    conversation: Vec<Message>,
    attempt: u32,
    strategy: &'static str,
    attempts: Vec<Attempt>,
    /// The query of the fallback, which is not an attempt.
    fallback_query: Option<Attempt>,
    troubles: Vec<Trouble>,
    /// All queries that were drafted or sent, as [`Tokens::identity`] has them.
    seen: HashSet<String>,
    /// The last draft.
    tokens: Tokens,
    /// The query that is being worked on, as it was drafted and as it is now.
    drafted: String,
    current: Current,
    /// The drafts that are being weighed.
    candidates: Vec<weigh::Candidate>,
    /// The readings that are being compared.
    comparison: Option<clarify::Comparison>,
    /// The readings of what could not be repaired were compared.
    compared_unrepaired: bool,
    /// Rows that were good enough if nothing better comes.
    kept: Option<(Current, Rows)>,
    corrections: Vec<Correction>,
    /// When the model was asked for the correction that is under way.
    correction_began: Option<Duration>,
    absent: Vec<Stated>,
    /// Conditions that alone keep all rows of the answer away, once that was looked into.
    narrow: Option<Vec<String>>,
    /// The rows of the answer, while that is looked into.
    found: Option<Rows>,
    fell_back: Option<Stop>,
    /// What the model wrote instead of SQL, as long as it has written nothing else.
    prose: Option<String>,
    /// A draft held SQL.
    has_sql: bool,
    /// What is handed over instead of an answer.
    analysis: Option<Program>,
    cost: Cost,
    counts: Counts,
    now: Duration,
    began: Duration,
    events: Vec<Event>,
    answer: Option<Box<Answer>>,
}

/// The query that is being worked on.
#[derive(Debug, Clone, Default)]
struct Current {
    sql: String,
    fixes: Vec<Applied>,
    warnings: Vec<Finding>,
    stated: Vec<Stated>,
    shape: Shape,
    /// What the critic made of it, where it was asked about the very text that is sent.
    found: Option<Arc<Review>>,
    /// What was assumed, where other readings lead to other rows, and the highest confidence that leaves.
    assumed: Option<(Confidence, String)>,
    /// It was already mended after the database refused it.
    mended_after_refusal: bool,
    /// What the database said, while it is being mended.
    refusal: Option<EngineError>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    model: u32,
    database: u32,
    reviews: u32,
    corrections: u32,
}

/// The longest question that is taken on, in bytes.
pub const LONGEST_QUESTION: usize = 100_000;

impl Run {
    /// Takes a question on.
    pub fn new(ask: Ask, settings: Settings) -> Self {
        let mut run = Self {
            schema: Arc::default(),
            dialect: settings.dialect,
            shown: Vec::new(),
            tables: Arc::default(),
            bytes: settings.schema_bytes,
            fitting: Vec::new(),
            examples: Vec::new(),
            remembered: None,
            stale: Vec::new(),
            step: Step::Gather,
            purpose: Purpose::Draft,
            conversation: Vec::new(),
            attempt: 1,
            strategy: "",
            attempts: Vec::new(),
            fallback_query: None,
            troubles: Vec::new(),
            seen: HashSet::new(),
            tokens: Tokens::default(),
            drafted: String::new(),
            current: Current::default(),
            candidates: Vec::new(),
            comparison: None,
            compared_unrepaired: false,
            kept: None,
            corrections: Vec::new(),
            correction_began: None,
            absent: Vec::new(),
            narrow: None,
            found: None,
            fell_back: None,
            prose: None,
            has_sql: false,
            analysis: None,
            cost: Cost::default(),
            counts: Counts::default(),
            now: Duration::ZERO,
            began: Duration::ZERO,
            events: Vec::new(),
            answer: None,
            ask,
            settings,
        };
        run.check_question();
        run
    }

    /// What is to be done next. The same until [`Run::feed`] is called.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// What happened since this was last called.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The answer, once the step is [`Step::Done`].
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_deref()
    }

    /// The same, taken out of the run.
    pub fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take().map(|answer| *answer)
    }

    /// Examples of memory that turned out not to fit the tables any more, by their ids.
    pub fn stale(&self) -> &[String] {
        &self.stale
    }

    /// The attempt that is under way, from 1. It never exceeds the most that are allowed.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Takes what came of the step, at a time since the run began. An outcome of another step changes nothing.
    pub fn feed(&mut self, outcome: Outcome, now: Duration) {
        let before = (self.began, self.now);
        (self.began, self.now) = (self.now, now.max(self.now));
        match (&self.step, outcome) {
            (Step::Gather, Outcome::Gathered(result)) => self.gathered(result),
            (Step::Complete { .. }, Outcome::Completed(result)) => self.completed(result),
            (Step::Weigh(_), Outcome::Weighed(result)) => self.weighed(result),
            (Step::Mend { .. }, Outcome::Mended(result)) => self.mended(result),
            (Step::Execute(_), Outcome::Executed(result)) => self.executed(result),
            (Step::Look(_), Outcome::Looked(result)) => self.looked(result),
            (Step::Explain(_), Outcome::Explained(result)) => self.explained(result),
            (Step::Fetch(_), Outcome::Fetched(result)) => self.fetched(result),
            _ => (self.began, self.now) = before,
        }
    }
}
