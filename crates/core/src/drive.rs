//! Carries out the steps of a run: the only place that waits. It never chooses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend_engine::sqlite::Local;
use querymend_engine::{Engine, Error as EngineTrouble, Limits};
use querymend_model::{Error as ModelTrouble, Model, Request, Stopped};
use querymend_sql::schema::{Schema, Table};
use querymend_sql::{
    Applicability, Approved, Cell, Context, EngineError, Next, Policy, Repair, Request as Mending, Rows, Search,
    Stated, Without, classify, review,
};
use tokio::sync::OnceCell;

use crate::config::Config;
use crate::context::Tables;
use crate::event::{Answer, Cost, Event, Problem, ProblemCode};
use crate::guard::{Breakers, GuardedEngine, GuardedModel, Open};
use crate::known::Known;
use crate::memory::{self, Memory, Recalled};
use crate::prompts;
use crate::records::ErrorRecords;
use crate::run::{Ask, Draft, Gathered, Hindrance, Outcome, Run, Settings, Step, is_empty};
use crate::session::Session;
use crate::trace;

/// Values that a model is shown of a column.
const SHOWN_VALUES: usize = 12;
/// Rows that are fetched of each table for an analysis that runs here.
const FETCHED_ROWS: usize = 50_000;
/// Bytes of schema text where nothing is known about the model's window: about 6,000 tokens.
const SCHEMA_BYTES: usize = 24_000;

/// Stops a question from elsewhere. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    engine: querymend_engine::Cancel,
    model: querymend_model::Cancel,
}

impl Cancel {
    /// One that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops every question that holds a clone of this one.
    pub fn cancel(&self) {
        self.engine.cancel();
        self.model.cancel();
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.engine.is_cancelled()
    }
}

/// A database, a model and a way of using them. Cheap to share; everything in it may be used from many threads at once.
pub struct Querymend {
    engine: GuardedEngine,
    model: GuardedModel,
    config: Config,
    breakers: Arc<Breakers>,
    records: ErrorRecords,
    policy: Arc<Policy>,
    known: Known,
    memory: Option<Memory>,
}

impl Querymend {
    /// Puts a database and a model behind circuit breakers.
    pub fn new(engine: Arc<dyn Engine>, model: Arc<dyn Model>, config: Config) -> Self {
        let breakers = Arc::new(Breakers::new(config.circuit_breaker));
        Self::guarded(engine, model, config, breakers)
    }

    /// The same with breakers that others share: a model that several databases are asked with is one tool.
    pub fn guarded(engine: Arc<dyn Engine>, model: Arc<dyn Model>, config: Config, breakers: Arc<Breakers>) -> Self {
        let policy = Arc::new(config.policy.clone());
        let known = Known::new(Arc::clone(&engine), Arc::clone(&policy), config.values.clone(), config.schema_age);
        Self {
            known,
            engine: breakers.engine(engine),
            model: breakers.model(model),
            config,
            breakers,
            records: ErrorRecords::default(),
            policy,
            memory: None,
        }
    }

    /// With a memory of what was asked before.
    pub fn with_memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// What is remembered of the database, where anything is.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// How it is set.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The circuit breakers of the database and the model.
    pub fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    /// What went wrong in each conversation.
    pub fn records(&self) -> &ErrorRecords {
        &self.records
    }

    /// The tables. They are read once, and again when they have become old or the database has proved them wrong.
    pub async fn schema(&self) -> Result<Arc<Schema>, EngineTrouble> {
        self.tables().await.map(|tables| Arc::clone(tables.schema()))
    }

    async fn tables(&self) -> Result<Arc<Tables>, EngineTrouble> {
        self.known.tables(&self.engine).await
    }

    /// Waits until the values of the database are read. No question needs to: it is for those who want the same answer every
    /// time, as an evaluation does.
    pub async fn learned(&self) {
        if self.tables().await.is_ok() {
            self.known.learned().await;
        }
    }

    /// Begins a conversation.
    pub fn session(&self) -> Session<'_> {
        Session::new(self)
    }

    /// Answers one question.
    pub async fn ask(&self, question: &str) -> Answer {
        let ask = Ask { question: question.to_string(), ..Ask::default() };
        self.ask_with(ask, &mut |_| {}, &Cancel::new()).await
    }

    /// Answers one question, and tells what happens on the way.
    pub async fn ask_with(&self, ask: Ask, tell: &mut (dyn FnMut(&Event) + Send), cancel: &Cancel) -> Answer {
        let settings = self.settings();
        tell(&Event::Started {
            trace_id: settings.trace_id.clone(),
            question: prompts::clipped(&ask.question, 10_000).to_string(),
            database: self.engine.name().to_string(),
            model: self.model.name().to_string(),
            dialect: settings.dialect.name,
            max_attempts: settings.budget.max_attempts,
        });
        let began = Instant::now();
        // The words of the question, and what is known besides it, tell candidates apart.
        let words = format!("{} {}", ask.question, ask.evidence.as_deref().unwrap_or_default());
        let alone = ask.earlier.is_empty() || !memory::refers_back(&ask.question);
        let question = ask.question.clone();
        let mut driver =
            Driver { querymend: self, question, alone, words, tables: OnceCell::new(), local: None, cancel };
        let budget = settings.budget.clone();
        let mut run = Run::new(ask, settings);
        loop {
            run.events().iter().for_each(&mut *tell);
            if let Some(answer) = run.take_answer() {
                if let Some(memory) = &self.memory
                    && let Err(error) = memory.note(&answer, run.stale()).await
                {
                    tracing::warn!("memory cannot be written: {error}");
                }
                return answer;
            }
            let left = budget.time_left(began.elapsed());
            let outcome = driver.carry_out(run.step(), left, tell).await;
            run.feed(outcome, began.elapsed());
        }
    }

    /// Says in a sentence or two what the rows of an answer say. There is nothing to say where there are none.
    pub async fn summarise(&self, answer: &Answer, cancel: &Cancel) -> Result<Option<String>, Problem> {
        let Some(rows) = &answer.rows else { return Ok(None) };
        let messages = prompts::summarise(&answer.question, &prompts::rows(rows));
        let request = Request::new(messages).temperature(self.config.temperature);
        let reply = self.model.complete(&request, &mut |_| {}, &cancel.model).await;
        match reply.map_err(|error| model_trouble(&error)) {
            Ok(reply) => Ok(Some(reply.text.trim().to_string()).filter(|text| !text.is_empty())),
            Err(Hindrance::Gone(problem) | Hindrance::TooLong(problem)) => Err(problem),
            // Nobody waits for it any more.
            Err(_) => Ok(None),
        }
    }

    fn settings(&self) -> Settings {
        let correction = &self.config.self_correction;
        let window = self.model.limits().context;
        Settings {
            trace_id: trace::id(),
            dialect: self.engine.dialect(),
            policy: Arc::clone(&self.policy),
            budget: self.config.budget(),
            retry: self.config.retry_policy.clone(),
            correction: correction.enabled,
            preflight: correction.preflight_validation,
            fallback: correction.fallback,
            ask_user: correction.ask_user,
            variant: prompts::variant(&self.config.prompt).unwrap_or(&prompts::VARIANTS[0]),
            temperature: self.config.temperature,
            // Two thirds of the window, at some three bytes a token of DDL.
            more: self.config.candidates.unwrap_or(self.model.limits().candidates).saturating_sub(1),
            schema_bytes: window.map_or(SCHEMA_BYTES, |tokens| tokens as usize * 2),
        }
    }
}

struct Driver<'d> {
    querymend: &'d Querymend,
    question: String,
    /// The question can be understood without those before it.
    alone: bool,
    words: String,
    tables: OnceCell<Arc<Tables>>,
    local: Option<Local>,
    cancel: &'d Cancel,
}

impl Driver<'_> {
    async fn carry_out(&mut self, step: &Step, left: Duration, tell: &mut (dyn FnMut(&Event) + Send)) -> Outcome {
        if self.cancel.is_cancelled() {
            return self.cancelled(step);
        }
        match step {
            Step::Gather => Outcome::Gathered(self.gather().await),
            Step::Complete { messages, temperature, sql, more } => {
                let mut request = Request::new(messages.clone()).temperature(*temperature);
                (request.sql, request.more) = (*sql, *more);
                // Rows that were fetched lie in tables of their own.
                let known = self.tables.get().filter(|_| self.querymend.config.real_names && self.local.is_none());
                request.names = known.map(|tables| tables.names());
                Outcome::Completed(self.complete(request, left, tell).await)
            }
            Step::Weigh(queries) => Outcome::Weighed(self.weigh(queries, left).await),
            Step::Mend { text, error } => Outcome::Mended(self.mend(text, error.as_ref()).await),
            Step::Execute(query) => {
                let mut limits = self.querymend.config.limits();
                limits.time = limits.time.min(left.max(Duration::from_millis(1)));
                Outcome::Executed(self.execute(query, &limits).await)
            }
            Step::Look(stated) => {
                let absent = self.look(stated).await;
                // A lookup that was stopped says nothing about its value.
                Outcome::Looked(if self.cancel.is_cancelled() { Err(Hindrance::Cancelled) } else { Ok(absent) })
            }
            Step::Explain(queries) => {
                let narrow = self.explain(queries).await;
                Outcome::Explained(if self.cancel.is_cancelled() { Err(Hindrance::Cancelled) } else { Ok(narrow) })
            }
            Step::Fetch(tables) => Outcome::Fetched(self.fetch(tables).await),
            Step::Done => self.cancelled(step),
        }
    }

    fn cancelled(&self, step: &Step) -> Outcome {
        match step {
            Step::Gather => Outcome::Gathered(Err(Hindrance::Cancelled)),
            Step::Complete { .. } => Outcome::Completed(Err(Hindrance::Cancelled)),
            Step::Weigh(_) => Outcome::Weighed(Err(Hindrance::Cancelled)),
            Step::Mend { .. } => Outcome::Mended(Err(Hindrance::Cancelled)),
            Step::Fetch(_) => Outcome::Fetched(Err(Hindrance::Cancelled)),
            Step::Look(_) => Outcome::Looked(Err(Hindrance::Cancelled)),
            Step::Explain(_) => Outcome::Explained(Err(Hindrance::Cancelled)),
            Step::Execute(_) | Step::Done => Outcome::Executed(Err(Hindrance::Cancelled)),
        }
    }

    async fn gather(&self) -> Result<Gathered, Hindrance> {
        let tables = self.tables().await.map_err(engine_trouble)?;
        let recalled = match &self.querymend.memory {
            Some(memory) => memory.recall(&self.question, self.alone).await,
            None => Recalled::default(),
        };
        Ok(Gathered { tables, recalled })
    }

    /// The database that queries are put to now: the fetched rows, once there are any.
    fn engine(&self) -> &dyn Engine {
        match &self.local {
            Some(local) => local,
            None => &self.querymend.engine,
        }
    }

    async fn complete(
        &self,
        mut request: Request,
        left: Duration,
        tell: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<Draft, Hindrance> {
        request.timeout = request.timeout.min(left.max(Duration::from_millis(1)));
        let mut watch = |piece: &str| tell(&Event::Text { piece: piece.to_string() });
        let reply = self.querymend.model.complete(&request, &mut watch, &self.cancel.model).await;
        let reply = reply.map_err(|error| model_trouble(&error))?;
        let usage = reply.usage;
        let cost = Cost { input_tokens: usage.input, output_tokens: usage.output, usd: usage.cost_usd };
        // Words of refusal are no query, and the critic says so.
        let text = if reply.stopped == Stopped::Refused { String::new() } else { reply.text };
        Ok(Draft { text, more: reply.more, cost })
    }

    /// What each of several queries comes to, in turn.
    async fn weigh(&self, queries: &[Approved], left: Duration) -> Result<Vec<Result<Rows, Hindrance>>, Hindrance> {
        let mut limits = self.querymend.config.limits();
        limits.time = limits.time.min(left.max(Duration::from_millis(1)) / queries.len().max(1) as u32);
        let mut rows = Vec::with_capacity(queries.len());
        for query in queries {
            match self.execute(query, &limits).await {
                Err(hindrance @ (Hindrance::Cancelled | Hindrance::Gone(_))) => return Err(hindrance),
                outcome => rows.push(outcome),
            }
        }
        Ok(rows)
    }

    async fn mend(&self, text: &str, error: Option<&EngineError>) -> Result<Repair, Hindrance> {
        let engine = self.engine();
        let schema = self.schema().await.map_err(engine_trouble)?;
        let context = Context {
            schema: Some(&schema),
            dialect: engine.dialect(),
            policy: &self.querymend.policy,
            question: None,
        };
        let question = Some(self.words.as_str());
        let said = error.map(|error| classify(engine.dialect(), error));
        let apply = Applicability::Likely;
        let mut search = Search::new(Mending { text, context, question, apply, error: said.as_ref() }, true);
        loop {
            match search.next() {
                Next::Runs(query) => match engine.probe(&query).await {
                    Ok(()) => search.runs(Ok(())),
                    Err(EngineTrouble::Rejected(said)) => search.runs(Err(said)),
                    Err(error) => return Err(engine_trouble(error)),
                },
                Next::Rows(query) => search.rows(self.lookup(&query, 1).await.map(|rows| !rows.is_empty())),
                Next::Done(repair) => return Ok(*repair),
            }
        }
    }

    async fn schema(&self) -> Result<Arc<Schema>, EngineTrouble> {
        match &self.local {
            Some(local) => Ok(Arc::new(local.schema().await?)),
            None => self.tables().await.map(|tables| Arc::clone(tables.schema())),
        }
    }

    /// The tables as they were when the question was begun: one question sees one state of them.
    async fn tables(&self) -> Result<Arc<Tables>, EngineTrouble> {
        self.tables.get_or_try_init(|| self.querymend.tables()).await.cloned()
    }

    /// What the database says may show that its tables are not what they are taken for.
    fn compare(&self, said: &EngineError) {
        let (None, Some(tables)) = (&self.local, self.tables.get()) else { return };
        let said = classify(self.querymend.engine.dialect(), said);
        let missed = match said.finding {
            "unknown-table" => said.name("table").is_some_and(|name| tables.schema().table(name).is_some()),
            "unknown-column" => said
                .name("column")
                .is_some_and(|name| tables.schema().tables().iter().any(|table| table.column(name).is_some())),
            _ => false,
        };
        if missed {
            self.querymend.known.doubt();
        }
    }

    async fn execute(&self, query: &Approved, limits: &Limits) -> Result<Rows, Hindrance> {
        let outcome = self.engine().execute(query, limits, &self.cancel.engine).await;
        if let Err(EngineTrouble::Rejected(said)) = &outcome {
            self.compare(said);
        }
        outcome.map_err(engine_trouble)
    }

    /// The first values of a short query; nothing if it takes long or fails.
    async fn lookup(&self, query: &Approved, rows: usize) -> Option<Vec<String>> {
        let limits = Limits::lookup(rows);
        let rows = self.engine().execute(query, &limits, &self.cancel.engine).await.ok()?;
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Integer(number) => number.to_string(),
            _ => String::new(),
        };
        Some(rows.rows.iter().filter_map(|row| row.first().map(text)).collect())
    }

    /// Of the values that a query looks for, those that are not there, each with those that are much like it.
    async fn look(&self, stated: &[Stated]) -> Vec<(Stated, Vec<String>)> {
        let Ok(schema) = self.schema().await else { return Vec::new() };
        let dialect = self.engine().dialect();
        let context = Context { schema: Some(&schema), dialect, policy: &self.querymend.policy, question: None };
        let mut absent = Vec::new();
        for one in stated.iter().take(4) {
            let Some(there) = one.lookup(&context) else { continue };
            if self.lookup(&there, 1).await.is_none_or(|rows| !rows.is_empty()) {
                continue;
            }
            // Only what is much like it helps: any other value would lead away from the question.
            let (table, column) = one.place(dialect);
            let word = one.value.replace('\'', "''").to_lowercase().replace(['%', '_'], "");
            let like = format!("lower({column}) LIKE '%{word}%'");
            let sql = format!("SELECT DISTINCT {column} FROM {table} WHERE {like} LIMIT {SHOWN_VALUES}");
            let mut held = match review(&sql, &context).approve() {
                Ok(query) if !word.trim().is_empty() => self.lookup(&query, SHOWN_VALUES).await.unwrap_or_default(),
                _ => Vec::new(),
            };
            // The index also knows what is a letter away.
            for near in
                schema.values().map_or(Vec::new(), |v| v.near(&one.table, &one.column, &one.value, SHOWN_VALUES))
            {
                if !held.contains(&near.value) {
                    held.push(near.value);
                }
            }
            held.retain(|v| !v.is_empty() && v.len() < 60);
            absent.push((one.clone(), held));
        }
        absent
    }

    /// Of conditions, those without which the query would find something.
    async fn explain(&self, queries: &[Without]) -> Vec<String> {
        let mut narrow = Vec::new();
        for without in queries {
            let rows = self.engine().execute(&without.query, &Limits::lookup(2), &self.cancel.engine).await;
            if rows.is_ok_and(|rows| !is_empty(&rows)) {
                narrow.push(without.condition.clone());
            }
        }
        narrow
    }

    async fn fetch(&mut self, tables: &[(String, Approved)]) -> Result<Arc<Schema>, Hindrance> {
        let schema = self.schema().await.map_err(engine_trouble)?;
        let limits = Limits { rows: FETCHED_ROWS, ..self.querymend.config.limits() };
        let mut fetched: Vec<(&Table, Rows)> = Vec::new();
        for (name, query) in tables {
            let rows = self.execute(query, &limits).await?;
            // A table of which only a part fits would give wrong sums.
            if let Some(table) = schema.table(name).filter(|_| !rows.truncated) {
                fetched.push((table, rows));
            }
        }
        let loaded: Vec<(&Table, &Rows)> = fetched.iter().map(|(table, rows)| (*table, rows)).collect();
        let local = Local::load(&loaded).map_err(engine_trouble)?;
        let schema = local.schema().await.map_err(engine_trouble)?;
        self.local = Some(local);
        Ok(Arc::new(schema))
    }
}

fn engine_trouble(error: EngineTrouble) -> Hindrance {
    if let Some(open) = Open::in_engine_error(&error) {
        return Hindrance::Gone(open.into());
    }
    match error {
        EngineTrouble::Rejected(said) => Hindrance::Rejected(said),
        EngineTrouble::TimedOut { after } => Hindrance::TimedOut(after),
        EngineTrouble::Cancelled => Hindrance::Cancelled,
        EngineTrouble::Unavailable { .. } | EngineTrouble::WrongDialect { .. } | EngineTrouble::Internal(_) => {
            Hindrance::Gone(Problem {
                code: ProblemCode::DatabaseUnavailable,
                message: error.to_string(),
                hint: error.hint().map(str::to_string),
                retry_after_s: None,
            })
        }
    }
}

fn model_trouble(error: &ModelTrouble) -> Hindrance {
    if let Some(open) = Open::in_model_error(error) {
        return Hindrance::Gone(open.into());
    }
    if *error == ModelTrouble::Cancelled {
        return Hindrance::Cancelled;
    }
    let problem = Problem {
        code: ProblemCode::ModelUnavailable,
        message: error.to_string(),
        hint: error.hint().map(str::to_string),
        retry_after_s: error.retry_after().map(|wait| wait.as_secs_f64().ceil() as u64),
    };
    match error {
        ModelTrouble::ContextTooLong { .. } => Hindrance::TooLong(problem),
        _ => Hindrance::Gone(problem),
    }
}
