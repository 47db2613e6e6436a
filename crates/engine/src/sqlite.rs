//! SQLite database files.
//!
//! Reading leaves no trace: the file is opened read-only, nothing is created next to it, and every
//! connection is locked down before a query sees it (`read_only.rs`). Queries run on blocking
//! threads, with a small pool of connections.

#[cfg(test)]
pub(crate) mod attacks;
mod errors;
pub(crate) mod file;
mod heap_limit;
mod in_memory;
mod introspect;
mod progress_handler;
mod read_only;
mod underlying_tables;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use querymend_net::to_hex;
use querymend_sql::{Approved, Cell, Dialect, EngineError, Policy, Rows, Schema, dialect};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Statement};

use self::file::{DatabaseFile, FileState};
use self::read_only::ActivePolicy;
use crate::blocking::run_blocking;
use crate::deadline::{Deadline, StepCounter};
use crate::row_collector::RowCollector;
use crate::{CancelFlag, DataVersion, Engine, EngineFuture, Error, HealthCheck, Limits};

pub use self::in_memory::InMemoryEngine;

/// Maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 4;
/// Time to wait for a locked file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a single value, regardless of the limits on the result.
///
/// An instruction of SQLite works on whole values and cannot be interrupted: its cost grows with
/// their length, for some functions quadratically.
const MAX_VALUE_BYTES: i32 = 16 << 20;

/// Engine for a SQLite file, which is opened read-only.
pub struct SqliteEngine {
    name: String,
    sample_limit: usize,
    pool: Arc<SqlitePool>,
}

/// State shared by the threads that run queries.
struct SqlitePool {
    file: DatabaseFile,
    idle: Mutex<Vec<PooledSqliteConnection>>,
}

/// Connection, and the state of the file when it was opened.
struct PooledSqliteConnection {
    connection: Connection,
    policy: ActivePolicy,
    file_state: FileState,
}

impl SqliteEngine {
    /// Finds the file. It is read by the first call that needs it, so that opening never waits for
    /// a lock.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = DatabaseFile::find(path)?;
        file.state()?;
        let name = format!("sqlite:{}", path.display());
        Ok(Self { name, sample_limit: 0, pool: Arc::new(SqlitePool { file, idle: Mutex::new(Vec::new()) }) })
    }

    /// Makes [`Engine::schema`] read up to `samples` distinct short values of each text column. The
    /// default is 0.
    #[must_use]
    pub fn introspect_samples(mut self, samples: usize) -> Self {
        self.sample_limit = samples;
        self
    }

    fn run<T: Send + 'static>(
        &self,
        deadline: Deadline,
        policy: Option<Policy>,
        work: impl Fn(&Connection, &DatabaseFile) -> Result<T, Error> + Send + 'static,
    ) -> EngineFuture<'_, T> {
        let shared = Arc::clone(&self.pool);
        run_blocking(deadline, move |stop| shared.with_connection(stop, policy.as_ref(), &work))
    }
}

impl Engine for SqliteEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        let samples = self.sample_limit;
        self.run(default_deadline(), None, move |connection, file| introspect::read_schema(connection, file, samples))
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        if let Err(error) = Error::check_dialect(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        self.run(default_deadline(), restrictive_policy(query), move |connection, file| {
            prepare(connection, file, &sql).map(|_| ())
        })
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        if let Err(error) = Error::check_dialect(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        let caps = limits.clone();
        let steps = limits.steps.map(StepCounter::new);
        let stop = Deadline::new(limits.time, cancel.clone()).with_steps(steps.clone());
        self.run(stop, restrictive_policy(query), move |connection, file| {
            execute(connection, file, &sql, &caps, steps.as_ref())
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.run(default_deadline(), None, |connection, file| {
            let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
            read.map_err(|error| errors::to_error(error, file.display_path()))
        })
    }

    fn data_version(&self) -> EngineFuture<'_, Option<DataVersion>> {
        Box::pin(async { self.pool.file.data_version() })
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        self.run(default_deadline(), None, |connection, file| {
            let read = |sql: &str| execute(connection, file, sql, &Limits::default(), None);
            read("SELECT count(*) FROM sqlite_schema")?;
            let seen = format!("`{}` can be read with SQLite {}", file.display_path(), rusqlite::version());
            // Query review would never approve this write, which must not reach the file.
            let write = read("CREATE TABLE querymend_tries_the_lock (x)");
            Ok(vec![
                HealthCheck::passed("connection", seen),
                match write {
                    Err(Error::Rejected(_)) => HealthCheck::passed("read-only", "a test write is rejected"),
                    other => HealthCheck::failed(
                        "read-only",
                        format!("a test write is not rejected as expected: {other:?}"),
                        "do not use this build; please report it",
                    ),
                },
                HealthCheck::passed("rights", "the file is always opened read-only"),
            ])
        })
    }
}

/// Returns the deadline of work without limits of its own.
fn default_deadline() -> Deadline {
    Deadline::new(Limits::default().time, CancelFlag::new())
}

impl SqlitePool {
    /// Runs work on a pooled connection that observes the deadline.
    ///
    /// A file that is read without locks (see [`FileState`]) is checked again afterwards: if it was
    /// written to in the meantime, the result may mix old and new data, and the work is retried.
    fn with_connection<T>(
        &self,
        deadline: &Deadline,
        policy: Option<&Policy>,
        work: impl Fn(&Connection, &DatabaseFile) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..3 {
            if let Some(error) = deadline.stop_reason() {
                return Err(error);
            }
            let mut pooled = self.acquire(deadline, policy)?;
            progress_handler::install(&mut pooled.connection, deadline)
                .map_err(|error| errors::to_error(error, self.file.display_path()))?;
            let outcome = work(&pooled.connection, &self.file);
            if pooled.file_state.is_unlocked() && self.file.state().ok().as_ref() != Some(&pooled.file_state) {
                continue;
            }
            let usable = !matches!(outcome, Err(Error::Unavailable { .. } | Error::Internal(_)));
            if usable && progress_handler::remove(&mut pooled.connection, deadline).is_ok() {
                self.release(pooled);
            }
            return outcome;
        }
        Err(self.file.concurrent_write_error())
    }

    /// Returns an idle connection to the current file, or a new one. Connections to a file that was
    /// replaced are closed.
    ///
    /// A connection serves a single policy, because full-text tables cache statements that were
    /// prepared, and so authorized, under another.
    fn acquire(&self, deadline: &Deadline, policy: Option<&Policy>) -> Result<PooledSqliteConnection, Error> {
        let state = self.file.state()?;
        let busy_timeout = BUSY_TIMEOUT.min(deadline.time_limit());
        let warm = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|held| held.file_state == state);
            let same = idle.iter().rposition(|held| held.policy.is_policy(policy));
            same.map(|place| idle.remove(place))
        };
        let held = match warm {
            Some(held) => held,
            None => {
                let (connection, active_policy) = self.file.connect(&state, busy_timeout)?;
                active_policy.set(policy.cloned());
                PooledSqliteConnection { connection, policy: active_policy, file_state: state }
            }
        };
        held.connection
            .busy_timeout(busy_timeout)
            .map_err(|error| errors::to_error(error, self.file.display_path()))?;
        Ok(held)
    }

    fn release(&self, connection: PooledSqliteConnection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

/// Returns the policy of a query if it restricts tables or functions.
fn restrictive_policy(query: &Approved) -> Option<Policy> {
    let policy = query.policy();
    (policy.restricts_tables() || !policy.deny_functions.is_empty()).then(|| policy.clone())
}

/// Prepares a query. Returns an error unless it is a single read-only statement.
fn prepare<'c>(connection: &'c Connection, file: &DatabaseFile, sql: &str) -> Result<Statement<'c>, Error> {
    // SQLite silently stops parsing at a NUL, and would run the part before it.
    if let Some(position) = sql.find('\0') {
        return Err(rejection("SQLITE_ERROR", "the query contains a NUL character", Some(position)));
    }
    let mut statements = Batch::new(connection, sql);
    let statement = statements.next().map_err(|error| errors::to_error(error, file.display_path()))?;
    let Some(statement) = statement else {
        return Err(rejection("SQLITE_ERROR", "the query is empty", None));
    };
    // Anything but whitespace and comments is a second statement, even if it does not parse.
    if !matches!(statements.next(), Ok(None)) {
        return Err(rejection("SQLITE_ERROR", "you can only execute one statement at a time", None));
    }
    if !statement.readonly() {
        return Err(rejection("SQLITE_READONLY", "attempt to write a readonly database", None));
    }
    // SQLite treats an unbound parameter as NULL, which would silently change the result.
    if statement.parameter_count() > 0 {
        let name = statement.parameter_name(1).unwrap_or("?");
        return Err(rejection("SQLITE_ERROR", &format!("no value was given for the parameter {name}"), None));
    }
    Ok(statement)
}

fn execute(
    connection: &Connection,
    file: &DatabaseFile,
    sql: &str,
    limits: &Limits,
    steps: Option<&StepCounter>,
) -> Result<Rows, Error> {
    let to_error = |error| errors::to_error(error, file.display_path());
    heap_limit::lower_heap_limit(limits.memory).map_err(to_error)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES).map_err(to_error)?;

    let mut statement = prepare(connection, file, sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_string).collect();
    let width = columns.len();
    let mut collector = RowCollector::new(columns, limits);
    if let Some(steps) = steps {
        steps.reset();
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(to_error)? {
        let mut cells = Vec::with_capacity(width);
        for i in 0..width {
            let value = row.get_ref(i).map_err(to_error)?;
            if !collector.reserve(heap_bytes(value)) {
                break;
            }
            cells.push(to_cell(value));
        }
        if !collector.push_reserved(cells) {
            break;
        }
    }
    Ok(collector.into_rows())
}

/// Returns the heap memory of a value's cell.
fn heap_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        ValueRef::Text(bytes) => bytes.len(),
        ValueRef::Blob(bytes) => bytes.len() * 2,
    }
}

fn to_cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Number(number),
        ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Cell::Binary(to_hex(bytes)),
    }
}

/// Creates a rejection by this engine, in the form of a SQLite error.
fn rejection(code: &str, message: &str, position: Option<usize>) -> Error {
    Error::Rejected(EngineError { code: code.into(), message: message.into(), hint: None, position })
}
