//! What all faces ask: questions, queries, tables, examples, conversations, past runs. Who asks is known by now; what they may do is
//! decided here, and what was done is written down here.

mod past;
mod tables;
mod teach;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use querymend::config::Role;
use querymend::correct::{Correct, Corrected};
use querymend::direct::{Checked, Emptiness, Grounded, NotRun, Ran};
use querymend::guard::{Breakers, Stats};
use querymend::{Answer, Ask, Cancel, Config, Conversation, Event, Memory, Problem, ProblemCode, Querymend, Status};
use querymend_engine::{Connections, Engine, Limits};
use querymend_memory::{Example, ExampleStore, Filter};
use querymend_model::Model;
use querymend_sql::{Schema, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audit::{Audit, Line};
use crate::heard::{Listener, Place};
use crate::metrics::registry::Told;
use crate::metrics::{self, Counting, Metrics, Now};
use crate::rates::{Rates, Ticket};
use crate::results::Results;
use crate::sent::{Log, Sent, Watched};
use crate::shelf::{Shelf, Talk};
use crate::user::{Credentials, Gate, User};

pub use self::past::Past;
pub use self::tables::Tables;
pub use self::teach::{Judged, Opinion};

/// The longest question, in bytes.
const LONGEST_QUESTION: usize = 16 << 10;
/// The longest value that is looked for, in bytes.
const LONGEST_WORD: usize = 1_000;
/// The longest query of an example, in bytes.
const LONGEST_SQL: usize = 64 << 10;
/// Examples that are listed at a time.
const MOST_EXAMPLES: usize = 200;
/// Past runs that are listed at a time.
const MOST_PAST: usize = 200;

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

/// A request, as far as it is the same for all that can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Who asks.
    pub user: &'a User,
    /// By which the request is found in logs.
    pub request_id: &'a str,
    /// The trace that it belongs to, as its sender calls it (W3C `traceparent`).
    pub traceparent: Option<&'a str>,
}

/// A question.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// In plain words.
    pub question: String,
    /// The database; it may be left out where there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// What is known besides the question.
    #[serde(default)]
    pub evidence: Option<String>,
    /// The conversation that it belongs to.
    #[serde(default)]
    pub session_id: Option<String>,
    /// A model is asked, even if the same question was answered before.
    #[serde(default)]
    pub fresh: bool,
    /// The rows are also put into words.
    #[serde(default)]
    pub summary: bool,
    /// Where a last analysis runs, once no query could be found.
    #[serde(default)]
    pub analysis: Analysing,
}

/// Where the analysis of plain rows runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Analysing {
    /// On the server, as one more query.
    #[default]
    Here,
    /// Where the question came from: the answer has a program and the queries whose rows it needs.
    Browser,
}

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryText {
    /// The SQL.
    pub sql: String,
    /// The database; it may be left out where there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// The question that it answers: what it asks for is held against the query.
    #[serde(default)]
    pub question: Option<String>,
    /// The most rows.
    #[serde(default)]
    pub max_rows: Option<usize>,
}

/// An example that somebody adds.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewExample {
    /// The question.
    pub question: String,
    /// The query that answers it.
    pub sql: String,
    /// The database; it may be left out where there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// For all users, and not only for the one who adds it. Needs a role that administers.
    #[serde(default)]
    pub shared: bool,
}

/// A database that may be asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The SQL that it speaks.
    pub dialect: &'static str,
}

/// A database as a role may ask it, and the role as it was then.
type Shared = (Arc<Role>, Querymend);

/// Everything that can be changed while the service runs.
struct State {
    config: Config,
    model: Arc<dyn Model>,
    databases: BTreeMap<String, Database>,
    store: Option<Arc<dyn ExampleStore>>,
    gate: Arc<dyn Gate>,
    /// One for each database and role, made when it is first asked for.
    desks: Mutex<HashMap<(String, Option<String>), Shared>>,
}

/// What all faces ask.
pub struct Service {
    state: RwLock<Arc<State>>,
    breakers: Arc<Breakers>,
    shelf: Arc<dyn Shelf>,
    audit: Audit,
    rates: Rates,
    /// Rows of which pages are still to be fetched.
    pub results: Results,
    metrics: Arc<Metrics>,
    listeners: Vec<Arc<dyn Listener>>,
    /// When the databases were last asked whether they are there, and which were not.
    looked: tokio::sync::Mutex<Option<(Instant, Vec<String>)>>,
}

/// A database as one user may ask it.
struct Desk {
    name: String,
    querymend: Querymend,
}

impl Desk {
    /// An example as clients see it: where the database is, they need not know.
    fn shown(&self, example: Example) -> Example {
        Example { database: self.name.clone(), ..example }
    }

    fn place<'p>(&'p self, request: &'p Asking<'p>) -> Place<'p> {
        let (model, dialect) = (self.querymend.model_name(), self.querymend.engine().dialect().name);
        Place { request, database: &self.name, model, dialect }
    }
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
            shelf,
            audit,
            rates: Rates::default(),
            results: Results::default(),
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
        // What was given out under the old rules is not given out again.
        self.results.clear();
        crate::http::forget_answers();
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
        self.state().desk(user, named, &self.breakers)
    }

    /// Answers a question, and tells what happens on the way.
    pub async fn ask(
        &self,
        asking: &Asking<'_>,
        asked: &Question,
        tell: &mut (dyn FnMut(&Event) + Send),
        cancel: &Cancel,
    ) -> Result<Answer, Problem> {
        for (what, text) in [("question", Some(&asked.question)), ("evidence", asked.evidence.as_ref())] {
            short(what, text.map_or("", String::as_str), LONGEST_QUESTION)?;
        }
        let user = asking.user;
        let talk = match &asked.session_id {
            Some(id) => Some(self.talk(user, id).await?),
            None => None,
        };
        let named = match (&talk, &asked.database) {
            (Some(talk), Some(named)) if talk.database != *named => {
                let message = format!("the session is about the database `{}`", talk.database);
                return Err(Problem::new(ProblemCode::BadRequest, message));
            }
            (Some(talk), _) => Some(talk.database.as_str()),
            (None, named) => named.as_deref(),
        };
        let desk = self.desk(user, named)?;
        let trace_id = querymend::trace_id();
        let place = desk.place(asking);
        let mut hearings: Vec<_> = self.listeners.iter().map(|one| one.question(&place, &trace_id)).collect();
        // Where nobody here traces, a trace that somebody else began goes on as it came.
        let own = hearings.iter().find_map(|hearing| hearing.traceparent());
        let traceparent = own.or_else(|| asking.traceparent.map(str::to_owned));
        let mut events: Vec<Event> = Vec::new();
        let mut hear = |event: &Event| {
            // Where the database is, clients need not know; by which name they ask it, they do.
            let named = match event.clone() {
                Event::Started { trace_id, question, model, dialect, max_attempts, .. } => {
                    let database = desk.name.clone();
                    Some(Event::Started { trace_id, question, database, model, dialect, max_attempts })
                }
                _ => None,
            };
            let event = named.as_ref().unwrap_or(event);
            hearings.iter_mut().for_each(|hearing| hearing.hear(event));
            tell(event);
            if !matches!(event, Event::Text { .. } | Event::Finished { .. }) {
                events.push(event.clone());
            }
        };
        let ask = Ask {
            question: asked.question.clone(),
            evidence: asked.evidence.clone(),
            fresh: asked.fresh,
            hand_over: asked.analysis == Analysing::Browser,
            trace_id: Some(trace_id.clone()),
            traceparent,
            ..Ask::default()
        };
        let conversation = talk.as_ref().map(|talk| talk.conversation.clone());
        let mut session = conversation.map(|conversation| desk.querymend.resume(conversation));
        let log = Log::default();
        let asked_for = async {
            match &mut session {
                Some(session) => session.ask_with(ask, &mut hear, cancel).await.clone(),
                None => desk.querymend.ask_with(ask, &mut hear, cancel).await,
            }
        };
        let mut answer = log.keeping(asked_for).await;
        if asked.summary && answer.status == Status::Answered {
            answer.text = desk.querymend.summarise(&answer, cancel).await.ok().flatten();
        }
        self.audit_question(asking, &desk.name, &answer, &events, &log.taken()).await?;
        events.push(Event::Finished { answer: Box::new(answer.clone()) });
        if let Err(problem) = self.shelf.keep_run(user.name(), &answer.trace_id, &events).await {
            tracing::warn!(message = problem.message, "a run is not kept");
        }
        if let (Some(talk), Some(session)) = (talk, session) {
            let conversation = session.into_conversation();
            let next = Talk { at: now(), version: talk.version + 1, conversation, ..talk };
            if !self.shelf.keep_talk(&next).await? {
                let message = "another question of this session was answered meanwhile, or it was removed";
                return Err(Problem::new(ProblemCode::Conflict, message).hint("ask one question after the other"));
            }
        }
        Ok(answer)
    }

    /// A line for every query that was sent or held back on the way, and one for the question.
    async fn audit_question(
        &self,
        asking: &Asking<'_>,
        database: &str,
        answer: &Answer,
        events: &[Event],
        sent: &[Sent],
    ) -> Result<(), Problem> {
        let trace_id = Some(answer.trace_id.as_str());
        let mut lines = lines_of(sent, asking, database, trace_id);
        for event in events {
            if let Event::Reviewed { sql, approved: false, .. } = event {
                lines.push(Line { sql: Some(sql), trace_id, ..line(asking, "query", database, "held back") });
            }
        }
        let outcome = word(&answer.status);
        let (question, sql) = (Some(answer.question.as_str()), answer.sql.as_deref());
        let rows = answer.rows.as_ref().map(|rows| rows.rows.len());
        lines.push(Line { question, sql, rows, trace_id, ..line(asking, "ask", database, &outcome) });
        self.audit.write_all(&lines).await
    }

    /// What the critic says of a query.
    pub async fn check(&self, asking: &Asking<'_>, query: &QueryText) -> Result<Checked, Problem> {
        let desk = self.desk(asking.user, query.database.as_deref())?;
        desk.querymend.check(&query.sql, query.question.as_deref()).await
    }

    /// Mends a query without a model.
    pub async fn correct(
        &self,
        asking: &Asking<'_>,
        database: Option<&str>,
        mut asked: Correct,
    ) -> Result<Corrected, Problem> {
        let desk = self.desk(asking.user, database)?;
        // Who asks is known; what a request says about it is not believed.
        if self.signs_in() {
            asked.user_id.clone_from(&asking.user.id);
        }
        let began = Instant::now();
        let log = Log::default();
        let corrected = log.keeping(desk.querymend.correct(&asked)).await;
        let (sent, failed) = (log.taken(), corrected.as_ref().err().map(|problem| word(&problem.code)));
        let mut lines = lines_of(&sent, asking, &desk.name, None);
        let sql = Some(asked.original_query.as_str());
        if let Some(outcome) = &failed {
            lines.push(Line { sql, ..line(asking, "correct", &desk.name, outcome) });
            self.audit.write_all(&lines).await?;
        }
        let corrected = corrected?;
        let (place, took) = (desk.place(asking), began.elapsed());
        self.listeners.iter().for_each(|listener| listener.corrected(&place, &corrected, took));
        let outcome = word(&corrected.status);
        let trace_id = Some(corrected.trace_id.as_str());
        lines.push(Line { sql, trace_id, ..line(asking, "correct", &desk.name, &outcome) });
        self.audit.write_all(&lines).await?;
        Ok(corrected)
    }

    /// Reviews a query and runs it as it is.
    pub async fn run(&self, asking: &Asking<'_>, query: &QueryText, cancel: &Cancel) -> Result<Ran, NotRun> {
        let desk = self.desk(asking.user, query.database.as_deref())?;
        let own = desk.querymend.config().limits();
        let limits = Limits { rows: query.max_rows.unwrap_or(own.rows).clamp(1, own.rows), ..own };
        let began = Instant::now();
        let ran = desk.querymend.run(&query.sql, &limits, cancel).await;
        let (place, took) = (desk.place(asking), began.elapsed());
        self.listeners.iter().for_each(|listener| listener.ran(&place, &ran, took));
        let (sql, rows, outcome) = match &ran {
            Ok(ran) => (ran.sql.as_str(), Some(ran.rows.rows.len()), "ran".to_string()),
            Err(not) => (query.sql.as_str(), None, word(&not.problem.code)),
        };
        self.audit.write(&Line { sql: Some(sql), rows, ..line(asking, "run", &desk.name, &outcome) }).await?;
        ran
    }

    /// The tables that a user may read.
    pub async fn schema(&self, user: &User, database: Option<&str>) -> Result<Arc<Schema>, Problem> {
        let desk = self.desk(user, database)?;
        desk.querymend.schema().await.map_err(querymend::direct::database_problem)
    }

    /// Values that are like a word.
    pub async fn ground(
        &self,
        asking: &Asking<'_>,
        database: Option<&str>,
        sought: &str,
        place: Option<(&str, &str)>,
    ) -> Result<Vec<Grounded>, Problem> {
        if sought.len() > LONGEST_WORD {
            return Err(Problem::new(ProblemCode::TooLarge, format!("the word has more than {LONGEST_WORD} bytes")));
        }
        let desk = self.desk(asking.user, database)?;
        let found = desk.querymend.ground(sought, place).await;
        let outcome = found.as_ref().map_or_else(|problem| word(&problem.code), |_| "ran".to_string());
        let rows = found.as_ref().ok().map(Vec::len);
        let line = Line { question: Some(sought), rows, ..line(asking, "values", &desk.name, &outcome) };
        self.audit.write(&line).await?;
        found
    }

    /// Why a query finds nothing.
    pub async fn explain_empty(
        &self,
        asking: &Asking<'_>,
        query: &QueryText,
        cancel: &Cancel,
    ) -> Result<Emptiness, NotRun> {
        let desk = self.desk(asking.user, query.database.as_deref())?;
        let log = Log::default();
        let told = log.keeping(desk.querymend.explain_empty(&query.sql, cancel)).await;
        let outcome = told.as_ref().map_or_else(|not| word(&not.problem.code), |_| "ran".to_string());
        let sent = log.taken();
        let mut lines = lines_of(&sent, asking, &desk.name, None);
        lines.push(Line { sql: Some(&query.sql), ..line(asking, "explain", &desk.name, &outcome) });
        self.audit.write_all(&lines).await?;
        told
    }

    /// Begins a conversation.
    pub async fn begin(&self, user: &User, database: Option<&str>) -> Result<Talk, Problem> {
        let desk = self.desk(user, database)?;
        let conversation = Conversation::new();
        let talk = Talk { user: user.name().to_owned(), database: desk.name, at: now(), version: 1, conversation };
        self.shelf.keep_talk(&talk).await?;
        Ok(talk)
    }

    /// A conversation of this user.
    pub async fn talk(&self, user: &User, id: &str) -> Result<Talk, Problem> {
        let talk = self.shelf.talk(user.name(), id).await?;
        talk.ok_or_else(|| {
            Problem::new(ProblemCode::NotFound, "there is no such session").hint("begin one with POST /v1/sessions")
        })
    }

    /// The newest conversations of this user.
    pub async fn talks(&self, user: &User) -> Result<Vec<Talk>, Problem> {
        self.shelf.talks(user.name(), 100).await
    }

    /// Forgets a conversation.
    pub async fn forget(&self, user: &User, id: &str) -> Result<(), Problem> {
        let gone = self.shelf.forget_talk(user.name(), id).await?;
        if gone { Ok(()) } else { Err(Problem::new(ProblemCode::NotFound, "there is no such session")) }
    }

    /// The events of a past run of this user.
    pub async fn trace(&self, user: &User, id: &str) -> Result<Vec<Value>, Problem> {
        let events = self.shelf.run(user.name(), id).await?;
        events.ok_or_else(|| Problem::new(ProblemCode::NotFound, "there is no such trace"))
    }

    /// The newest past runs of this user, or of all where that is asked and the user administers.
    pub async fn past(&self, user: &User, all: bool, most: usize) -> Result<Vec<Past>, Problem> {
        if all {
            administers(user)?;
        }
        let whose = (!all).then(|| user.name());
        let mut past = self.shelf.past(whose, MOST_PAST).await?;
        // Who administers need not be allowed to ask every database.
        past.retain(|run| may_ask(user, &run.database));
        past.truncate(most);
        Ok(past)
    }

    /// What a person who does not know the database could ask.
    pub async fn suggestions(&self, user: &User, database: Option<&str>) -> Result<Vec<String>, Problem> {
        Ok(querymend::suggest::questions(&*self.schema(user, database).await?))
    }

    /// The model that is asked.
    pub fn model_name(&self) -> String {
        self.state().model.name().to_owned()
    }

    fn store(&self) -> Result<Arc<dyn ExampleStore>, Problem> {
        self.state().store.clone().ok_or_else(no_examples)
    }

    fn memory(&self, user: &User, database: Option<&str>) -> Result<Memory, Problem> {
        let desk = self.desk(user, database)?;
        desk.querymend.memory().cloned().ok_or_else(no_examples)
    }

    /// Examples of a database that a user may see: their own, and those that all share.
    pub async fn examples(&self, user: &User, database: Option<&str>) -> Result<Vec<Example>, Problem> {
        let memory = self.memory(user, database)?;
        let desk = self.desk(user, database)?;
        let mut all = Vec::new();
        for shelf in memory.shelves() {
            let own = shelf == memory.shelf();
            let filter = Filter { database: Some(shelf), ..Filter::default() };
            for example in memory.store().list(&filter, 0, MOST_EXAMPLES).await.map_err(memory_problem)? {
                // What all share may speak of tables that this user is not to know.
                if own || desk.querymend.check(&example.sql, None).await?.verdict == Verdict::Approved {
                    all.push(desk.shown(example));
                }
            }
        }
        Ok(all)
    }

    /// Adds an example that a person vouches for.
    pub async fn add_example(&self, asking: &Asking<'_>, new: &NewExample) -> Result<Example, Problem> {
        let user = asking.user;
        if new.shared && !user.role.administer {
            return Err(Problem::new(ProblemCode::Forbidden, "only a role that administers adds examples for all"));
        }
        short("question", &new.question, LONGEST_QUESTION)?;
        short("sql", &new.sql, LONGEST_SQL)?;
        let desk = self.desk(user, new.database.as_deref())?;
        let checked = desk.querymend.check(&new.sql, None).await?;
        if !checked.clean {
            let first = checked.findings.first().map_or("the query is refused", |f| f.finding.message.as_str());
            return Err(Problem::new(ProblemCode::PreflightValidationFailed, first));
        }
        let memory = self.memory(user, new.database.as_deref())?;
        let memory = if new.shared { memory.of_all() } else { memory };
        memory.save(&new.question, &new.sql).await.map_err(memory_problem)?;
        let id = querymend_memory::id(&new.question, &memory.shelf());
        let example = memory.store().get(&id).await.map_err(memory_problem)?;
        let outcome = if new.shared { "added for all" } else { "added" };
        let (question, sql) = (Some(new.question.as_str()), Some(new.sql.as_str()));
        self.audit.write(&Line { question, sql, ..line(asking, "example", &desk.name, outcome) }).await?;
        let example = example.ok_or_else(|| Problem::new(ProblemCode::Internal, "the example was not kept"))?;
        Ok(desk.shown(example))
    }

    /// An example that this user may change.
    async fn changeable(&self, asking: &Asking<'_>, database: Option<&str>, id: &str) -> Result<Example, Problem> {
        let memory = self.memory(asking.user, database)?;
        let none = || Problem::new(ProblemCode::NotFound, "there is no such example");
        let example = memory.store().get(id).await.map_err(memory_problem)?.ok_or_else(none)?;
        if example.database != memory.shelf() {
            // One that all share may be seen; one of somebody else may not even be known to be there.
            let shared = memory.shelves().any(|shelf| shelf == example.database);
            let administers = asking.user.role.administer && shared;
            if !administers {
                let desk = self.desk(asking.user, database)?;
                let seen = shared && desk.querymend.check(&example.sql, None).await?.verdict == Verdict::Approved;
                return Err(if seen {
                    Problem::new(ProblemCode::Forbidden, "the example belongs to all")
                } else {
                    none()
                });
            }
        }
        Ok(example)
    }

    /// Forgets an example.
    pub async fn remove_example(&self, asking: &Asking<'_>, database: Option<&str>, id: &str) -> Result<(), Problem> {
        let example = self.changeable(asking, database, id).await?;
        self.store()?.remove(&[id]).await.map_err(memory_problem)?;
        let line = Line { question: Some(&example.question), ..line(asking, "example", &example.database, "removed") };
        self.audit.write(&line).await
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

fn may_ask(user: &User, database: &str) -> bool {
    user.role.databases.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == database))
}

fn administers(user: &User) -> Result<(), Problem> {
    if user.role.administer { Ok(()) } else { Err(Problem::new(ProblemCode::Forbidden, "your role may not do this")) }
}

fn no_examples() -> Problem {
    Problem::new(ProblemCode::NotFound, "this server keeps no examples").hint("set `memory.store`")
}

/// What clients are told where a store cannot be asked.
pub(crate) fn memory_problem(error: querymend_memory::Error) -> Problem {
    let hint = error.hint().map(str::to_string);
    Problem { hint, ..Problem::new(ProblemCode::DatabaseUnavailable, error.to_string()) }
}

fn line<'l>(asking: &'l Asking<'_>, action: &'static str, database: &'l str, outcome: &'l str) -> Line<'l> {
    Line {
        at_ms: now_ms(),
        request_id: asking.request_id,
        user: asking.user.name(),
        action,
        database,
        question: None,
        sql: None,
        rows: None,
        outcome,
        trace_id: None,
    }
}

/// A line for each query that was sent.
fn lines_of<'l>(
    sent: &'l [Sent],
    asking: &'l Asking<'_>,
    database: &'l str,
    trace_id: Option<&'l str>,
) -> Vec<Line<'l>> {
    let each = sent.iter().map(|one| Line {
        at_ms: one.at_ms,
        sql: Some(&one.sql),
        rows: one.rows,
        trace_id,
        ..line(asking, "query", database, one.outcome)
    });
    each.collect()
}

/// How our enums are written everywhere.
pub fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

impl State {
    fn new(setup: Setup) -> Self {
        let Setup { config, model, databases, store, gate } = setup;
        let watched = |database: Database| Database { engine: Arc::new(Watched(database.engine)), ..database };
        let databases = databases.into_iter().map(|database| (database.name.clone(), watched(database))).collect();
        Self { config, model, databases, store, gate, desks: Mutex::default() }
    }

    fn desk(&self, user: &User, named: Option<&str>, breakers: &Arc<Breakers>) -> Result<Desk, Problem> {
        let unknown = |name: &str| {
            let known: Vec<&str> = self.databases.keys().map(String::as_str).filter(|n| may_ask(user, n)).collect();
            let hint = format!("there are: {}", known.join(", "));
            Problem::new(ProblemCode::NotFound, format!("there is no database `{name}`")).hint(hint)
        };
        let database = match named {
            Some(name) => self.databases.get(name).filter(|d| may_ask(user, &d.name)).ok_or_else(|| unknown(name))?,
            None => {
                let mut allowed = self.databases.values().filter(|database| may_ask(user, &database.name));
                match (allowed.next(), allowed.next()) {
                    (Some(only), None) => only,
                    (None, _) => return Err(Problem::new(ProblemCode::Forbidden, "you may ask no database")),
                    (Some(_), Some(_)) => {
                        let names = self.databases.keys().map(String::as_str).filter(|name| may_ask(user, name));
                        let names: Vec<&str> = names.collect();
                        return Err(Problem::new(ProblemCode::BadRequest, "there are several databases: name one")
                            .hint(format!("`database` is one of {}", names.join(", "))));
                    }
                }
            }
        };
        let key = (database.name.clone(), user.role_name.clone());
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        // A request that began before a change still has its role as it was then; what it makes must not be left to others.
        let known = desks.get(&key).filter(|(role, _)| **role == *user.role).map(|(_, querymend)| querymend.clone());
        let mut querymend = known.unwrap_or_else(|| {
            let made = self.querymend(user, database, breakers);
            desks.insert(key, (Arc::clone(&user.role), made.clone()));
            made
        });
        drop(desks);
        if let (Some(id), Some(memory)) = (&user.id, querymend.memory().cloned()) {
            querymend = querymend.with_memory(memory.of(id.clone()));
        }
        Ok(Desk { name: database.name.clone(), querymend })
    }

    /// A database as users of a role may ask it.
    fn querymend(&self, user: &User, database: &Database, breakers: &Arc<Breakers>) -> Querymend {
        let mut config = self.config.clone();
        config.policy = config.policy.and(user.role.policy.clone());
        if let Some(most) = user.role.max_rows {
            config.limits.rows = config.limits.rows.min(most.max(1));
        }
        let memory = self.store.as_ref().filter(|_| config.memory.enabled).map(|store| {
            let dialect = database.engine.dialect().name;
            Memory::new(Arc::clone(store), database.identity.clone(), dialect, &config.memory)
        });
        let (engine, model) = (Arc::clone(&database.engine), Arc::clone(&self.model));
        let querymend = Querymend::guarded(engine, model, config, Arc::clone(breakers));
        match memory {
            Some(memory) => querymend.with_memory(memory),
            None => querymend,
        }
    }
}
