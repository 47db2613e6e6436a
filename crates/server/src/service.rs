//! What all faces ask: questions, queries, tables, examples, conversations, past runs. Who asks is known by now; what they may do is
//! decided here, and what was done is written down here.

mod ask;
mod desk;
mod errors;
mod examples;
mod lines;
mod past;
mod requests;
mod tables;
mod talks;
mod teach;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use querymend::guard::{Breakers, Stats};
use querymend::records::ErrorRecords;
use querymend::{Config, Problem, ProblemCode};
use querymend_engine::{Connections, Engine};
use querymend_memory::ExampleStore;
use querymend_model::Model;
use querymend_sql::Schema;
use serde::Serialize;

use self::desk::{Desk, State, may_ask};
use self::lines::line;
use crate::audit::Audit;
use crate::heard::Listener;
use crate::http::Answers;
use crate::metrics::registry::Told;
use crate::metrics::{self, Counting, Metrics, Now};
use crate::rates::{Rates, Ticket};
use crate::results::Results;
use crate::shelf::Shelf;
use crate::user::{Credentials, Gate, User};

pub(crate) use self::examples::memory_problem;
pub use self::past::Past;
pub use self::requests::{Analysing, Asking, Listed, NewExample, QueryText, Question};
pub use self::tables::Tables;
pub use self::teach::{Judged, Opinion};

/// The longest question, in bytes.
const LONGEST_QUESTION: usize = 16 << 10;

/// What a service is made of. All of it but the shelf and the audit log can be changed while it runs.
pub struct Setup {
    /// How it is set.
    pub config: Config,
    /// Who writes the SQL.
    pub model: Arc<dyn Model>,
    /// What may be asked, by the names that clients use.
    pub databases: Vec<Database>,
    /// Where examples are kept, if anywhere.
    pub store: Option<Arc<dyn ExampleStore>>,
    /// Who is let in.
    pub gate: Arc<dyn Gate>,
}

/// A database by the name that clients use.
pub struct Database {
    /// That name.
    pub name: String,
    /// The database.
    pub engine: Arc<dyn Engine>,
    /// A name that means this database alone, by which examples of it are kept.
    pub identity: String,
}

/// What all faces ask.
pub struct Service {
    state: RwLock<Arc<State>>,
    breakers: Arc<Breakers>,
    /// What went wrong in each session.
    errors: Arc<ErrorRecords>,
    shelf: Arc<dyn Shelf>,
    audit: Audit,
    rates: Rates,
    /// Rows of which pages are still to be fetched.
    pub results: Results,
    /// Answers that are given again to a question that is sent twice.
    pub(crate) answers: Answers,
    /// How often the configuration has changed.
    changes: AtomicU64,
    metrics: Arc<Metrics>,
    listeners: Vec<Arc<dyn Listener>>,
    /// When the databases were last asked whether they are there, and which were not.
    looked: tokio::sync::Mutex<Option<(Instant, Vec<String>)>>,
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Service {
    /// Puts it together.
    pub fn new(setup: Setup, breakers: Arc<Breakers>, shelf: Arc<dyn Shelf>, audit: Audit) -> Self {
        let metrics = Arc::new(Metrics::default());
        setup.databases.iter().for_each(|database| metrics.begin(&database.name));
        Self {
            state: RwLock::new(Arc::new(State::new(setup))),
            breakers,
            errors: Arc::default(),
            shelf,
            audit,
            rates: Rates::default(),
            results: Results::default(),
            answers: Answers::default(),
            changes: AtomicU64::new(0),
            listeners: vec![Arc::new(Counting(Arc::clone(&metrics)))],
            metrics,
            looked: tokio::sync::Mutex::default(),
        }
    }

    /// With somebody who hears what happens.
    #[must_use]
    pub fn heard_by(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// What this server counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// All figures as they are now.
    pub fn measured(&self) -> Vec<Told> {
        self.metrics.told(&Now {
            breakers: self.breakers.stats(),
            running: self.running(),
            audit_lines: self.audit.lines(),
            lost: self.listeners.iter().flat_map(|listener| listener.lost()).collect(),
            connections: self.connections(),
        })
    }

    /// The connections to each database whose engine keeps some.
    fn connections(&self) -> Vec<(String, Connections)> {
        let state = self.state();
        let each = state.databases.values();
        each.filter_map(|one| Some((one.name.clone(), one.engine.connections()?))).collect()
    }

    /// The same as Prometheus reads it, for those who may see how the server is doing.
    pub fn metrics_text(&self, user: &User) -> Result<String, Problem> {
        administers(user)?;
        Ok(metrics::text::written(&self.measured()))
    }

    /// Takes on another configuration. Requests that are running go on with the one that they began with.
    pub fn change(&self, setup: Setup) {
        setup.databases.iter().for_each(|database| self.metrics.begin(&database.name));
        let next = Arc::new(State::new(setup));
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = next;
        // What was given out under the old rules is not given out again, nor what is still on its way.
        let changes = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
        self.results.clear(changes);
        self.answers.forget(changes);
    }

    /// How often the rules have changed. Whoever looks before anything else is done for a request, and finds the same
    /// afterwards, knows that the request had the rules of now.
    pub fn rules(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How it is set.
    pub fn config(&self) -> Config {
        self.state().config.clone()
    }

    /// The longest request, in bytes.
    pub fn body_bytes(&self) -> usize {
        self.state().config.server.limits.body_bytes
    }

    /// Where the files lie that the page computes with.
    pub fn pyodide(&self) -> Option<PathBuf> {
        self.state().config.server.pyodide.clone()
    }

    /// Whether users are told apart.
    pub fn signs_in(&self) -> bool {
        self.state().gate.asks()
    }

    /// Who sends a request.
    pub async fn user(&self, credentials: &Credentials<'_>) -> Result<User, Problem> {
        self.state().gate.user(credentials).await
    }

    /// Lets a request in, if its user has not too many of them.
    pub fn admit(&self, user: &User) -> Result<Ticket, Problem> {
        self.rates.admit(user.name(), &self.state().config.server.limits)
    }

    /// Requests that are running.
    pub fn running(&self) -> usize {
        self.rates.running()
    }

    /// The databases that a user may ask.
    pub fn databases(&self, user: &User) -> Vec<Listed> {
        let state = self.state();
        let allowed = state.databases.values().filter(|database| may_ask(user, &database.name));
        allowed.map(|d| Listed { name: d.name.clone(), dialect: d.engine.dialect().name }).collect()
    }

    fn desk(&self, user: &User, named: Option<&str>) -> Result<Desk, Problem> {
        let mut desk = self.state().desk(user, named, &self.breakers)?;
        desk.querymend = desk.querymend.with_records(Arc::clone(&self.errors));
        Ok(desk)
    }

    /// A database for a request that brings its own tables: none is to be named where one would do as well as the other.
    fn any_database(&self, user: &User, dialect: Option<&str>) -> Result<Option<String>, Problem> {
        let allowed = self.databases(user);
        let speaks_alike = allowed.windows(2).all(|pair| pair[0].dialect == pair[1].dialect);
        if dialect.is_some() || speaks_alike {
            return Ok(allowed.into_iter().next().map(|database| database.name));
        }
        let names: Vec<&str> = allowed.iter().map(|database| database.name.as_str()).collect();
        Err(Problem::new(ProblemCode::BadRequest, "the databases speak different dialects: name the one of the query")
            .hint(format!("set `dialect`, or `database` to one of {}", names.join(", "))))
    }

    /// The tables that a user may read.
    pub async fn schema(&self, user: &User, database: Option<&str>) -> Result<Arc<Schema>, Problem> {
        let desk = self.desk(user, database)?;
        desk.querymend.schema().await.map_err(querymend::direct::database_problem)
    }

    /// What a person who does not know the database could ask.
    pub async fn suggestions(&self, user: &User, database: Option<&str>) -> Result<Vec<String>, Problem> {
        Ok(querymend::suggest::questions(&*self.schema(user, database).await?))
    }

    /// The model that is asked.
    pub fn model_name(&self) -> String {
        self.state().model.name().to_owned()
    }

    /// How databases and models have been doing.
    pub fn breakers(&self, user: &User) -> Result<Vec<Stats>, Problem> {
        administers(user)?;
        Ok(self.breakers.stats())
    }

    /// The breakers themselves, for whoever measures.
    pub fn all_breakers(&self) -> &Arc<Breakers> {
        &self.breakers
    }

    /// Closes a breaker, or all of them.
    pub async fn reset(&self, asking: &Asking<'_>, tool: Option<&str>) -> Result<(), Problem> {
        administers(asking.user)?;
        match tool {
            None => self.breakers.reset_all(),
            Some(tool) if self.breakers.reset(tool) => {}
            Some(_) => return Err(Problem::new(ProblemCode::NotFound, "there is no such breaker")),
        }
        self.audit.write(&line(asking, "reset", tool.unwrap_or("all"), "done")).await
    }

    /// Whether every database answers; the names of those that do not.
    pub async fn unready(&self) -> Vec<String> {
        // Anybody may ask, and as often as they like: the databases are asked once a second, by one of them.
        let mut looked = self.looked.lock().await;
        if let Some((_, down)) = looked.as_ref().filter(|(at, _)| at.elapsed() < Duration::from_secs(1)) {
            return down.clone();
        }
        let state = self.state();
        let mut down = Vec::new();
        for database in state.databases.values() {
            let answer = tokio::time::timeout(Duration::from_secs(2), database.engine.test_connection()).await;
            if !matches!(answer, Ok(Ok(()))) {
                down.push(database.name.clone());
            }
        }
        *looked = Some((Instant::now(), down.clone()));
        down
    }
}

fn short(what: &str, text: &str, most: usize) -> Result<(), Problem> {
    if text.len() <= most {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::BadRequest, format!("`{what}` has more than {most} bytes")))
}

fn administers(user: &User) -> Result<(), Problem> {
    if user.role.administer { Ok(()) } else { Err(Problem::new(ProblemCode::Forbidden, "your role may not do this")) }
}

/// How our enums are written everywhere.
pub fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
