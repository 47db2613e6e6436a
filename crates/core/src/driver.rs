//! Performs the steps of a run. The only module that does I/O; it makes no decisions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend_engine::sqlite::InMemoryEngine;
use querymend_engine::{self as engine, Engine, Limits};
use querymend_memory::ScoredExample;
use querymend_model::{CompletionRequest, FinishReason, Model};
use querymend_sql::coverage::{self, MissingSubject};
use querymend_sql::schema::{Schema, Table};
use querymend_sql::{
    AblatedQuery, Applicability, Approved, Cell, EngineError, LiteralFilter, RepairOutcome, RepairRequest,
    RepairSearch, ReviewContext, Rows, SearchStep, classify, repair, review,
};
use tokio::sync::OnceCell;

use crate::cancel::CancellationToken;
use crate::event::{Answer, Cost, Event};
use crate::linking::SchemaLinker;
use crate::memory::{self, RetrievedExamples};
use crate::prompts;
use crate::querymend::Querymend;
use crate::run::{AskInput, GatheredContext, ModelDraft, QuestionRun, RunStep, StepError, StepOutcome};
use crate::step_error::{engine_step_error, model_step_error};

/// Maximum number of column values suggested to a model.
const MAX_SUGGESTED_VALUES: usize = 12;
/// Interval at which a waiting question polls its cancellation flag.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of rows fetched per table for client-side analysis.
const MAX_FETCHED_ROWS: usize = 50_000;

/// Performs the steps of one question.
pub(crate) struct Driver<'d> {
    querymend: &'d Querymend,
    question: String,
    /// `true` if the question can be understood without the previous ones.
    is_standalone: bool,
    /// Question with its evidence, used to rank repair candidates.
    question_text: String,
    linker: OnceCell<Arc<SchemaLinker>>,
    local_engine: Option<InMemoryEngine>,
    cancel: &'d CancellationToken,
    /// W3C `traceparent` header for requests to model servers.
    pub(crate) traceparent: Option<String>,
}

impl Querymend {
    /// Answers one question.
    pub async fn ask(&self, question: &str) -> Answer {
        let ask = AskInput { question: question.to_string(), ..AskInput::default() };
        self.ask_with(ask, &mut |_| {}, &CancellationToken::new()).await
    }

    /// Answers one question, and reports events while it runs.
    pub async fn ask_with(
        &self,
        ask: AskInput,
        on_event: &mut (dyn FnMut(&Event) + Send),
        cancel: &CancellationToken,
    ) -> Answer {
        let settings = self.run_settings(ask.trace_id.clone(), ask.clarify);
        on_event(&Event::Started {
            trace_id: settings.trace_id.clone(),
            question: prompts::truncate(&ask.question, 10_000).to_string(),
            database: self.engine.name().to_string(),
            model: self.model.name().to_string(),
            dialect: settings.dialect.name,
            max_attempts: settings.budget.max_attempts,
        });
        let started = Instant::now();
        let question_text = format!("{} {}", ask.question, ask.evidence.as_deref().unwrap_or_default());
        let is_standalone = ask.history.is_empty() || !memory::is_follow_up(&ask.question);
        let mut driver = Driver::new(self, &ask.question, is_standalone, question_text, cancel);
        driver.traceparent.clone_from(&ask.traceparent);
        let budget = settings.budget.clone();
        let mut run = QuestionRun::new(ask, settings);
        loop {
            run.events().iter().for_each(&mut *on_event);
            if let Some(answer) = run.take_answer() {
                if let Some(memory) = &self.memory
                    && let Err(error) = memory.record_usage(&answer, run.stale_examples()).await
                {
                    tracing::warn!("memory cannot be written: {error}");
                }
                return answer;
            }
            let time_left = budget.time_left(started.elapsed());
            let outcome = driver.perform_step(run.step(), time_left, on_event).await;
            run.feed(outcome, started.elapsed());
        }
    }
}

impl<'d> Driver<'d> {
    pub(crate) fn new(
        querymend: &'d Querymend,
        question: &str,
        alone: bool,
        words: String,
        cancel: &'d CancellationToken,
    ) -> Self {
        let question = question.to_string();
        Self {
            querymend,
            question,
            is_standalone: alone,
            question_text: words,
            linker: OnceCell::new(),
            local_engine: None,
            cancel,
            traceparent: None,
        }
    }

    /// Performs the next step of a run.
    pub(crate) async fn perform_step(
        &mut self,
        step: &RunStep,
        time_left: Duration,
        on_event: &mut (dyn FnMut(&Event) + Send),
    ) -> StepOutcome {
        if self.cancel.is_cancelled() {
            return self.cancelled_outcome(step);
        }
        match step {
            RunStep::Gather => StepOutcome::Gathered(self.gather().await),
            RunStep::Complete { messages, temperature, sql, extra_candidates: more } => {
                let mut request = CompletionRequest::new(messages.clone()).temperature(*temperature);
                (request.expects_sql, request.extra_samples) = (*sql, *more);
                if *sql && self.querymend.config.structured_output {
                    prompts::request_json(&mut request);
                }
                // Fetched rows are stored in local tables, which the linker does not know.
                let known = self
                    .linker
                    .get()
                    .filter(|_| self.querymend.config.constrained_decoding && self.local_engine.is_none());
                request.allowed_names = known.map(|tables| tables.names());
                StepOutcome::Completed(self.complete(request, time_left, on_event).await)
            }
            RunStep::CompareCandidates(queries) => {
                StepOutcome::CandidatesCompared(self.run_candidates(queries, time_left).await)
            }
            RunStep::Repair { text, error } => {
                let repaired = self.repair(text, error.as_ref(), Applicability::Likely, false, &mut Vec::new()).await;
                StepOutcome::Repaired(repaired)
            }
            RunStep::Execute(query) => {
                let mut limits = self.querymend.config.limits();
                limits.time = limits.time.min(time_left.max(Duration::from_millis(1)));
                StepOutcome::Executed(self.execute(query, &limits).await)
            }
            RunStep::LookUpValues(stated) => {
                let absent = self.find_missing_values(stated).await;
                // A cancelled lookup provides no evidence about its values.
                StepOutcome::ValuesLookedUp(if self.cancel.is_cancelled() {
                    Err(StepError::Cancelled)
                } else {
                    Ok(absent)
                })
            }
            RunStep::ExplainEmpty(queries) => {
                let predicates = self.find_blocking_predicates(queries).await;
                StepOutcome::EmptyExplained(if self.cancel.is_cancelled() {
                    Err(StepError::Cancelled)
                } else {
                    Ok(predicates)
                })
            }
            RunStep::FetchTables(tables) => StepOutcome::TablesFetched(self.fetch_tables(tables).await),
            RunStep::Done => self.cancelled_outcome(step),
        }
    }

    fn cancelled_outcome(&self, step: &RunStep) -> StepOutcome {
        match step {
            RunStep::Gather => StepOutcome::Gathered(Err(StepError::Cancelled)),
            RunStep::Complete { .. } => StepOutcome::Completed(Err(StepError::Cancelled)),
            RunStep::CompareCandidates(_) => StepOutcome::CandidatesCompared(Err(StepError::Cancelled)),
            RunStep::Repair { .. } => StepOutcome::Repaired(Err(StepError::Cancelled)),
            RunStep::FetchTables(_) => StepOutcome::TablesFetched(Err(StepError::Cancelled)),
            RunStep::LookUpValues(_) => StepOutcome::ValuesLookedUp(Err(StepError::Cancelled)),
            RunStep::ExplainEmpty(_) => StepOutcome::EmptyExplained(Err(StepError::Cancelled)),
            RunStep::Execute(_) | RunStep::Done => StepOutcome::Executed(Err(StepError::Cancelled)),
        }
    }

    async fn gather(&self) -> Result<GatheredContext, StepError> {
        let tables = self.linker().await.map_err(engine_step_error)?;
        // Continuing without the values would make the answer depend on machine load.
        self.until_cancelled(self.querymend.schema_cache.wait_for_values()).await?;
        let recalled = match &self.querymend.memory {
            Some(memory) => memory.retrieve(&self.question, self.is_standalone).await,
            None => RetrievedExamples::default(),
        };
        let missing = self.missing_subject(tables.schema(), &recalled).await.map(Box::new);
        Ok(GatheredContext { linker: tables, retrieved: recalled, missing_subject: missing })
    }

    /// Returns the subject of the question if nothing in the database covers it.
    ///
    /// A question that refers to an earlier one is not judged by its own text.
    async fn missing_subject(&self, schema: &Schema, recalled: &RetrievedExamples) -> Option<MissingSubject> {
        let evidence = self.question_text.strip_prefix(&self.question).unwrap_or_default();
        let of_database = |found: &&ScoredExample| Some(&found.example.database) == recalled.database.as_ref();
        let examples = recalled.examples.iter().filter(of_database).map(|found| found.example.question.as_str());
        let definitions: Vec<&str> = examples.chain([evidence]).collect();
        if !self.is_standalone || !coverage::is_subject_unnamed(&self.question, &definitions, schema) {
            return None;
        }
        if schema.value_index().is_none() {
            self.querymend.schema_cache.wait_for_values().await;
        }
        coverage::missing_subject(&self.question, &definitions, schema)
    }

    /// Returns the engine to query: the fetched rows once there are any, else the database.
    fn engine(&self) -> &dyn Engine {
        match &self.local_engine {
            Some(local) => local,
            None => &self.querymend.engine,
        }
    }

    async fn complete(
        &self,
        mut request: CompletionRequest,
        time_left: Duration,
        on_event: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<ModelDraft, StepError> {
        request.timeout = self.querymend.config.budget.request.min(time_left.max(Duration::from_millis(1)));
        request.traceparent.clone_from(&self.traceparent);
        let mut watch = |piece: &str| on_event(&Event::Text { piece: piece.to_string() });
        let reply = self.querymend.model.complete(&request, &mut watch, &self.cancel.model).await;
        let reply = reply.map_err(|error| model_step_error(&error))?;
        let usage = reply.usage;
        let cost = Cost { input_tokens: usage.input, output_tokens: usage.output, usd: usage.cost_usd };
        // A refusal is not a query; the review reports the empty text.
        let text = if reply.stopped == FinishReason::Refused { String::new() } else { reply.text };
        Ok(ModelDraft { text, alternatives: reply.more, cost })
    }

    /// Executes candidate queries sequentially and returns the result of each.
    async fn run_candidates(
        &self,
        queries: &[Approved],
        time_left: Duration,
    ) -> Result<Vec<Result<Rows, StepError>>, StepError> {
        let mut limits = self.querymend.config.limits();
        limits.time = limits.time.min(time_left.max(Duration::from_millis(1)) / queries.len().max(1) as u32);
        let mut rows = Vec::with_capacity(queries.len());
        for query in queries {
            match self.execute(query, &limits).await {
                Err(error @ (StepError::Cancelled | StepError::Unavailable(_))) => return Err(error),
                outcome => rows.push(outcome),
            }
        }
        Ok(rows)
    }

    /// Repairs a query, using dry runs on the database as the oracle.
    ///
    /// With `allow_guesses`, also tries speculative fixes, which are reported as guesses. Queries
    /// that the database rejects are added to `rejected`.
    pub(crate) async fn repair(
        &self,
        text: &str,
        error: Option<&EngineError>,
        apply: Applicability,
        allow_guesses: bool,
        rejected: &mut Vec<(String, EngineError)>,
    ) -> Result<RepairOutcome, StepError> {
        let engine = self.engine();
        let schema = self.schema().await.map_err(engine_step_error)?;
        let context = ReviewContext {
            schema: Some(&schema),
            dialect: engine.dialect(),
            policy: &self.querymend.policy,
            question: None,
        };
        let question = Some(self.question_text.as_str());
        let classified = error.map(|error| classify(engine.dialect(), error));
        if engine.is_offline() {
            return Ok(repair(
                &RepairRequest { text, context, question, max_applicability: apply, error: classified.as_ref() },
                None,
            ));
        }
        let mut search = RepairSearch::new(
            RepairRequest { text, context, question, max_applicability: apply, error: classified.as_ref() },
            true,
        );
        if allow_guesses {
            search = search.with_speculative_fixes();
        }
        loop {
            match search.advance() {
                SearchStep::DryRun(query) => match engine.probe(&query).await {
                    Ok(()) => search.answer_dry_run(Ok(())),
                    Err(engine::Error::Rejected(engine_error)) => {
                        rejected.push((query.sql().to_string(), engine_error.clone()));
                        search.answer_dry_run(Err(engine_error));
                    }
                    Err(error) => return Err(engine_step_error(error)),
                },
                SearchStep::ReturnsRows(query) => {
                    search.answer_returns_rows(self.lookup_values(&query, 1).await.map(|rows| !rows.is_empty()))
                }
                SearchStep::Done(repair) => return Ok(*repair),
            }
        }
    }

    pub(crate) async fn schema(&self) -> Result<Arc<Schema>, engine::Error> {
        match &self.local_engine {
            Some(local) => Ok(Arc::new(local.schema().await?)),
            None => self.linker().await.map(|tables| Arc::clone(tables.schema())),
        }
    }

    /// Returns the schema snapshot of this question: one question sees one state of the schema.
    async fn linker(&self) -> Result<Arc<SchemaLinker>, engine::Error> {
        self.linker.get_or_try_init(|| self.querymend.linker()).await.cloned()
    }

    /// Invalidates the cached schema if the error contradicts it.
    fn invalidate_stale_schema(&self, error: &EngineError) {
        let (None, Some(tables)) = (&self.local_engine, self.linker.get()) else { return };
        let classified = classify(self.querymend.engine.dialect(), error);
        let is_stale = match classified.finding {
            "unknown-table" => classified.name("table").is_some_and(|name| tables.schema().table(name).is_some()),
            "unknown-column" => classified
                .name("column")
                .is_some_and(|name| tables.schema().tables().iter().any(|table| table.column(name).is_some())),
            _ => false,
        };
        if is_stale {
            self.querymend.schema_cache.invalidate();
        }
    }

    pub(crate) async fn execute(&self, query: &Approved, limits: &Limits) -> Result<Rows, StepError> {
        let outcome = self.engine().execute(query, limits, &self.cancel.engine).await;
        if let Err(engine::Error::Rejected(engine_error)) = &outcome {
            self.invalidate_stale_schema(engine_error);
        }
        outcome.map_err(engine_step_error)
    }

    /// Waits for work that does not accept a cancellation token.
    async fn until_cancelled(&self, work: impl Future<Output = ()>) -> Result<(), StepError> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                () = &mut work => return Ok(()),
                () = tokio::time::sleep(CANCEL_INTERVAL) => {}
            }
            if self.cancel.is_cancelled() {
                return Err(StepError::Cancelled);
            }
        }
    }

    /// Executes a lookup query; returns `None` if it fails.
    async fn try_execute(&self, query: &Approved, rows: usize) -> Option<Rows> {
        match self.engine().execute(query, &Limits::lookup(rows), &self.cancel.engine).await {
            Ok(rows) => Some(rows),
            Err(error) => {
                if matches!(error, engine::Error::TimedOut { .. }) {
                    tracing::warn!("a lookup failed and counts as unknown: {error}: {}", query.sql());
                }
                None
            }
        }
    }

    /// Returns the first column of a short lookup query; `None` if it times out or fails.
    async fn lookup_values(&self, query: &Approved, rows: usize) -> Option<Vec<String>> {
        let rows = self.try_execute(query, rows).await?;
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Integer(number) => number.to_string(),
            _ => String::new(),
        };
        Some(rows.rows.iter().filter_map(|row| row.first().map(text)).collect())
    }

    /// Returns the literals that do not occur in their column, each with similar values that do.
    pub(crate) async fn find_missing_values(&self, filters: &[LiteralFilter]) -> Vec<(LiteralFilter, Vec<String>)> {
        let Ok(schema) = self.schema().await else { return Vec::new() };
        let dialect = self.engine().dialect();
        let context = ReviewContext { schema: Some(&schema), dialect, policy: &self.querymend.policy, question: None };
        let mut missing = Vec::new();
        for one in filters.iter().take(4) {
            let Some(there) = one.existence_probe(&context) else { continue };
            if self.lookup_values(&there, 1).await.is_none_or(|rows| !rows.is_empty()) {
                continue;
            }
            // Suggest only similar values: any other value would change the question.
            let (table, column) = one.quoted_names(dialect);
            let word = one.value.replace('\'', "''").to_lowercase().replace(['%', '_'], "");
            let like = format!("lower({column}) LIKE '%{word}%'");
            let sql = format!("SELECT DISTINCT {column} FROM {table} WHERE {like} LIMIT {MAX_SUGGESTED_VALUES}");
            let mut similar = match review(&sql, &context).approve() {
                Ok(query) if !word.trim().is_empty() => {
                    self.lookup_values(&query, MAX_SUGGESTED_VALUES).await.unwrap_or_default()
                }
                _ => Vec::new(),
            };
            // The value index also finds values within a small edit distance.
            for near in schema
                .value_index()
                .map_or(Vec::new(), |v| v.similar_values(&one.table, &one.column, &one.value, MAX_SUGGESTED_VALUES))
            {
                if !similar.contains(&near.value) {
                    similar.push(near.value);
                }
            }
            similar.retain(|v| !v.is_empty() && v.len() < 60);
            missing.push((one.clone(), similar));
        }
        missing
    }

    /// Returns the predicates without which the query would return rows.
    pub(crate) async fn find_blocking_predicates(&self, queries: &[AblatedQuery]) -> Vec<String> {
        let mut blocking = Vec::new();
        for without in queries {
            let rows = self.try_execute(&without.query, 2).await;
            if rows.is_some_and(|rows| !rows.is_effectively_empty()) {
                blocking.push(without.predicate.clone());
            }
        }
        blocking
    }

    async fn fetch_tables(&mut self, tables: &[(String, Approved)]) -> Result<Arc<Schema>, StepError> {
        let schema = self.schema().await.map_err(engine_step_error)?;
        let limits = Limits { rows: MAX_FETCHED_ROWS, ..self.querymend.config.limits() };
        let mut fetched: Vec<(&Table, Rows)> = Vec::new();
        for (name, query) in tables {
            let rows = self.execute(query, &limits).await?;
            // A truncated table would produce wrong aggregates.
            if let Some(table) = schema.table(name).filter(|_| !rows.truncated) {
                fetched.push((table, rows));
            }
        }
        let loaded: Vec<(&Table, &Rows)> = fetched.iter().map(|(table, rows)| (*table, rows)).collect();
        let local = InMemoryEngine::load(&loaded).map_err(engine_step_error)?;
        let schema = local.schema().await.map_err(engine_step_error)?;
        self.local_engine = Some(local);
        Ok(Arc::new(schema))
    }
}
