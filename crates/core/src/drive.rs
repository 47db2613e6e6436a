//! Carries out the steps of a run: the only place that waits. It never chooses.

use std::sync::Arc;
use std::time::Duration;

use querymend_engine::sqlite::Local;
use querymend_engine::{Engine, Error as EngineTrouble, Limits};
use querymend_memory::Found;
use querymend_model::{Model, Request, Stopped};
use querymend_sql::coverage::{self, MissingSubject};
use querymend_sql::schema::{Schema, Table};
use querymend_sql::{
    Applicability, Approved, Cell, Context, EngineError, Next, Repair, Request as Mending, Rows, Search, Stated,
    Without, classify, repair, review,
};
use tokio::sync::OnceCell;

use crate::context::Tables;
use crate::event::{Cost, Event};
use crate::memory::Recalled;
use crate::prompts;
use crate::querymend::{Cancel, Querymend};
use crate::run::{Draft, Gathered, Hindrance, Outcome, Step, is_empty};
use crate::trouble::{engine_trouble, model_trouble};

/// Values that a model is shown of a column.
const SHOWN_VALUES: usize = 12;
/// How often the flag of a question that waits is looked at.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);
/// Rows that are fetched of each table for an analysis that runs here.
const FETCHED_ROWS: usize = 50_000;

/// Carries out the steps of one question.
pub(crate) struct Driver<'d> {
    querymend: &'d Querymend,
    question: String,
    /// The question can be understood without those before it.
    alone: bool,
    /// The words of the question, and what is known besides it: they tell candidates apart.
    words: String,
    tables: OnceCell<Arc<Tables>>,
    local: Option<Local>,
    cancel: &'d Cancel,
    /// What model servers are told about the trace that the question belongs to.
    pub(crate) traceparent: Option<String>,
}

impl<'d> Driver<'d> {
    /// For one question.
    pub(crate) fn new(
        querymend: &'d Querymend,
        question: &str,
        alone: bool,
        words: String,
        cancel: &'d Cancel,
    ) -> Self {
        let question = question.to_string();
        Self { querymend, question, alone, words, tables: OnceCell::new(), local: None, cancel, traceparent: None }
    }

    /// Does what a run wants next.
    pub(crate) async fn carry_out(
        &mut self,
        step: &Step,
        left: Duration,
        tell: &mut (dyn FnMut(&Event) + Send),
    ) -> Outcome {
        if self.cancel.is_cancelled() {
            return self.cancelled(step);
        }
        match step {
            Step::Gather => Outcome::Gathered(self.gather().await),
            Step::Complete { messages, temperature, sql, more } => {
                let mut request = Request::new(messages.clone()).temperature(*temperature);
                (request.sql, request.more) = (*sql, *more);
                if *sql && self.querymend.config.structured_output {
                    prompts::ask_for_json(&mut request);
                }
                // Rows that were fetched lie in tables of their own.
                let known = self.tables.get().filter(|_| self.querymend.config.real_names && self.local.is_none());
                request.names = known.map(|tables| tables.names());
                Outcome::Completed(self.complete(request, left, tell).await)
            }
            Step::Weigh(queries) => Outcome::Weighed(self.weigh(queries, left).await),
            Step::Mend { text, error } => {
                let mended = self.mend(text, error.as_ref(), Applicability::Likely, false, &mut Vec::new()).await;
                Outcome::Mended(mended)
            }
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
        // A question that went on without the values would be answered differently on a busy machine.
        self.until_cancelled(self.querymend.known.learned()).await?;
        let recalled = match &self.querymend.memory {
            Some(memory) => memory.recall(&self.question, self.alone).await,
            None => Recalled::default(),
        };
        let missing = self.missing_subject(tables.schema(), &recalled).await.map(Box::new);
        Ok(Gathered { tables, recalled, missing })
    }

    /// Returns the subject of the question if nothing in the database covers it. A question that refers to an earlier one is
    /// not judged by its own words.
    async fn missing_subject(&self, schema: &Schema, recalled: &Recalled) -> Option<MissingSubject> {
        let evidence = self.words.strip_prefix(&self.question).unwrap_or_default();
        let of_database = |found: &&Found| Some(&found.example.database) == recalled.database.as_ref();
        let examples = recalled.examples.iter().filter(of_database).map(|found| found.example.question.as_str());
        let definitions: Vec<&str> = examples.chain([evidence]).collect();
        if !self.alone || !coverage::is_subject_unnamed(&self.question, &definitions, schema) {
            return None;
        }
        if schema.values().is_none() {
            self.querymend.known.learned().await;
        }
        coverage::missing_subject(&self.question, &definitions, schema)
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
        request.timeout = self.querymend.config.budget.request.min(left.max(Duration::from_millis(1)));
        request.traceparent.clone_from(&self.traceparent);
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

    /// Mends a query with the database as judge, if need be by guesses that are shown and not taken for right. What the database refused on the way is added to `refused`.
    pub(crate) async fn mend(
        &self,
        text: &str,
        error: Option<&EngineError>,
        apply: Applicability,
        guesses: bool,
        refused: &mut Vec<(String, EngineError)>,
    ) -> Result<Repair, Hindrance> {
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
        if engine.is_offline() {
            return Ok(repair(&Mending { text, context, question, apply, error: said.as_ref() }, None));
        }
        let mut search = Search::new(Mending { text, context, question, apply, error: said.as_ref() }, true);
        if guesses {
            search = search.with_guesses();
        }
        loop {
            match search.next() {
                Next::Runs(query) => match engine.probe(&query).await {
                    Ok(()) => search.runs(Ok(())),
                    Err(EngineTrouble::Rejected(said)) => {
                        refused.push((query.sql().to_string(), said.clone()));
                        search.runs(Err(said));
                    }
                    Err(error) => return Err(engine_trouble(error)),
                },
                Next::Rows(query) => search.rows(self.lookup(&query, 1).await.map(|rows| !rows.is_empty())),
                Next::Done(repair) => return Ok(*repair),
            }
        }
    }

    pub(crate) async fn schema(&self) -> Result<Arc<Schema>, EngineTrouble> {
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

    pub(crate) async fn execute(&self, query: &Approved, limits: &Limits) -> Result<Rows, Hindrance> {
        let outcome = self.engine().execute(query, limits, &self.cancel.engine).await;
        if let Err(EngineTrouble::Rejected(said)) = &outcome {
            self.compare(said);
        }
        outcome.map_err(engine_trouble)
    }

    /// Waits for something that takes no flag to stop it.
    async fn until_cancelled(&self, work: impl Future<Output = ()>) -> Result<(), Hindrance> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                () = &mut work => return Ok(()),
                () = tokio::time::sleep(CANCEL_INTERVAL) => {}
            }
            if self.cancel.is_cancelled() {
                return Err(Hindrance::Cancelled);
            }
        }
    }

    /// Returns the rows of a query that settles a doubt; nothing if the database does not say.
    async fn settle(&self, query: &Approved, rows: usize) -> Option<Rows> {
        match self.engine().execute(query, &Limits::lookup(rows), &self.cancel.engine).await {
            Ok(rows) => Some(rows),
            Err(error) => {
                if matches!(error, EngineTrouble::TimedOut { .. }) {
                    tracing::warn!("a lookup counts as unknown: {error}: {}", query.sql());
                }
                None
            }
        }
    }

    /// The first values of a short query; nothing if it takes long or fails.
    async fn lookup(&self, query: &Approved, rows: usize) -> Option<Vec<String>> {
        let rows = self.settle(query, rows).await?;
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Integer(number) => number.to_string(),
            _ => String::new(),
        };
        Some(rows.rows.iter().filter_map(|row| row.first().map(text)).collect())
    }

    /// Of the values that a query looks for, those that are not there, each with those that are much like it.
    pub(crate) async fn look(&self, stated: &[Stated]) -> Vec<(Stated, Vec<String>)> {
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
    pub(crate) async fn explain(&self, queries: &[Without]) -> Vec<String> {
        let mut narrow = Vec::new();
        for without in queries {
            let rows = self.settle(&without.query, 2).await;
            if rows.is_some_and(|rows| !is_empty(&rows)) {
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
