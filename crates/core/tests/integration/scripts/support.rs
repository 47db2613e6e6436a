//! The shop, models and databases that do what a test wants, and what came of a question.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use querymend::{Answer, AskInput, CancellationToken, Config, Event, Problem, Querymend};
use querymend_engine::{self as engine, CancelFlag, Engine, EngineFuture, Limits};
use querymend_model::{
    self as model, BoxFuture, CancelSignal, Completion, CompletionRequest, Message, Model, ScriptedModel, ScriptedReply,
};
use querymend_sql::{Approved, Cell, Dialect, EngineError, Rows, Schema};
use querymend_testing::hang_timeout;
use tempfile::TempDir;

use crate::long_deadline::LongDeadline;

/// A query that no rule can mend, for want of a candidate; each word makes another.
pub fn hopeless(word: &str) -> String {
    format!("SELECT {word} FROM products")
}

/// The demo shop in a folder of its own.
pub struct Shop {
    _folder: TempDir,
    pub file: PathBuf,
}

impl Shop {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.db");
        querymend_engine::demo::write(&file).unwrap();
        Self { _folder: folder, file }
    }

    pub fn engine(&self) -> Arc<dyn Engine> {
        let engine = querymend_engine::open(&self.file.to_string_lossy()).unwrap();
        Arc::new(LongDeadline(Arc::from(engine)))
    }
}

/// What came of a question.
pub struct Told {
    pub answer: Answer,
    pub events: Vec<Event>,
    /// What the model was asked, each time.
    pub asked: Vec<CompletionRequest>,
}

impl Told {
    pub fn problem(&self) -> &Problem {
        self.answer.problem.as_ref().unwrap_or_else(|| panic!("there is an answer: {:?}", self.answer))
    }

    pub fn sql(&self) -> &str {
        self.answer.sql.as_deref().unwrap()
    }

    /// The cells, row by row, as text.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            other => serde_json::to_string(other).unwrap(),
        };
        let rows = self.answer.rows.as_ref().unwrap_or_else(|| panic!("no rows: {:?}", self.answer));
        rows.rows.iter().map(|row| row.iter().map(text).collect()).collect()
    }

    /// The ways in which the model was asked again.
    pub fn strategies(&self) -> Vec<&'static str> {
        let way = |event: &Event| match event {
            Event::Retrying { strategy, .. } => Some(*strategy),
            _ => None,
        };
        self.events.iter().filter_map(way).collect()
    }

    /// What the model was told when it was asked again, by kind.
    pub fn feedback(&self) -> Vec<(String, String)> {
        let told = |event: &Event| match event {
            Event::Retrying { feedback, .. } => Some(feedback.clone()),
            _ => None,
        };
        self.events.iter().filter_map(told).flatten().map(|f| (f.kind, f.text)).collect()
    }

    /// Every query that gave rows.
    pub fn executed(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|e| if let Event::Executed { sql, .. } = e { Some(sql.as_str()) } else { None })
            .collect()
    }

    /// The last message that the model was sent with its request of that number, from 0.
    pub fn message(&self, request: usize) -> &Message {
        self.asked[request].messages.last().unwrap()
    }
}

/// Asks the shop, with a model that says these lines.
pub async fn ask<L: Into<ScriptedReply>>(lines: impl IntoIterator<Item = L>, config: Config, question: &str) -> Told {
    ask_engine(Shop::new().engine_kept(), lines, config, question).await
}

/// A question that is certainly one.
pub const QUESTION: &str = "Which products are there?";

/// Without values that are read in the background: for databases that do what a test wants, call by call. Where the test sets no
/// time, a slow machine has enough of it.
pub fn quiet(mut config: Config) -> Config {
    config.values.enabled = false;
    if config.budget.time == Config::default().budget.time {
        config.budget.time = hang_timeout();
    }
    config
}

/// Waits for something that must end, however slow the machine is.
pub async fn ended<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(hang_timeout(), work).await.expect("it does not end")
}

/// Asks another database.
pub async fn ask_engine<L: Into<ScriptedReply>>(
    engine: (Option<Shop>, Arc<dyn Engine>),
    lines: impl IntoIterator<Item = L>,
    config: Config,
    question: &str,
) -> Told {
    let script = Arc::new(ScriptedModel::new(lines));
    let querymend = Querymend::new(engine.1, script.clone(), quiet(config));
    let (answer, events) = listen(&querymend, question, &CancellationToken::new()).await;
    Told { answer, events, asked: script.requests() }
}

/// Asks, and keeps every event. What holds for any run is checked on the way.
pub async fn listen(querymend: &Querymend, question: &str, cancel: &CancellationToken) -> (Answer, Vec<Event>) {
    let mut events: Vec<Event> = Vec::new();
    let ask = AskInput { question: question.to_string(), ..AskInput::default() };
    let answer = querymend.ask_with(ask, &mut |event| events.push(event.clone()), cancel).await;
    assert!(matches!(events.first(), Some(Event::Started { .. })), "{:?}", events.first());
    assert!(matches!(events.last(), Some(Event::Finished { answer: told }) if **told == answer));
    for event in &events {
        serde_json::to_string(event).unwrap();
    }
    (answer, events)
}

impl Shop {
    /// The engine together with what keeps its file there.
    pub fn engine_kept(self) -> (Option<Shop>, Arc<dyn Engine>) {
        let engine = self.engine();
        (Some(self), engine)
    }

    /// The engine behind a hook.
    pub fn hooked(
        self,
        hook: impl Fn(Call<'_>) -> Option<engine::Error> + Send + Sync + 'static,
    ) -> (Option<Shop>, Arc<dyn Engine>) {
        let engine = Arc::new(Hooked { inner: self.engine(), hook: Box::new(hook) });
        (Some(self), engine)
    }
}

/// A call of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'c> {
    Schema,
    Probe(&'c str),
    Execute(&'c str),
}

type Hook = Box<dyn Fn(Call<'_>) -> Option<engine::Error> + Send + Sync>;

/// A database that asks a hook first. What the hook gives is its answer.
pub struct Hooked {
    pub inner: Arc<dyn Engine>,
    pub hook: Hook,
}

impl Engine for Hooked {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dialect(&self) -> &'static Dialect {
        self.inner.dialect()
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        match (self.hook)(Call::Schema) {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.inner.schema(),
        }
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        match (self.hook)(Call::Probe(query.sql())) {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.inner.probe(query),
        }
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        match (self.hook)(Call::Execute(query.sql())) {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.inner.execute(query, limits, cancel),
        }
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.inner.test_connection()
    }
}

/// The words of a database that refuses.
pub fn refusal(message: &str) -> engine::Error {
    let (code, message) = ("SQLITE_ERROR".to_string(), message.to_string());
    engine::Error::Rejected(EngineError { code, message, ..EngineError::default() })
}

/// A hook that refuses the queries that are run, in order, and lets all others through.
pub fn refusing(errors: impl IntoIterator<Item = engine::Error>) -> impl Fn(Call<'_>) -> Option<engine::Error> {
    let errors: Mutex<VecDeque<engine::Error>> = Mutex::new(errors.into_iter().collect());
    move |call| if matches!(call, Call::Execute(_)) { errors.lock().unwrap().pop_front() } else { None }
}

/// A model that answers by what it is asked.
pub struct Answering<F>(pub F);

impl<F: Fn(&CompletionRequest) -> Result<Completion, model::Error> + Send + Sync> Model for Answering<F> {
    fn name(&self) -> &str {
        "answering"
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        _: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let reply = (self.0)(request)?;
            watch(&reply.text);
            Ok(reply)
        })
    }
}

/// A server that cannot be reached.
pub fn unreachable_model() -> model::Error {
    model::Error::Unreachable { model: "script".into(), message: "connection refused".into(), transient: true }
}
