//! SQLite: a database in one file.
//!
//! Reading leaves no trace: the file is opened for reading only, nothing is created beside it, and every connection is
//! locked down before a query sees it (`lock.rs`). Queries run on threads that may block; a small pool keeps
//! connections warm.

#[cfg(test)]
pub(crate) mod attacks;
mod behind;
pub(crate) mod file;
mod introspect;
mod local;
mod lock;
mod memory;
mod refusal;
mod watch;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use querymend_sql::{Approved, Cell, Dialect, EngineError, Policy, Rows, Schema, dialect};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Statement};

use self::file::{DatabaseFile, State};
use self::lock::House;
use crate::bytes::hexadecimal;
use crate::stop::{Steps, Stop};
use crate::taking::Taking;
use crate::thread::blocking;
use crate::{Answer, Cancel, Check, DataVersion, Engine, Error, Limits};

pub use self::local::Local;

/// Connections that are kept for the next query.
const POOL: usize = 4;
/// How long a locked file is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest single value, whatever the answer may hold. One instruction of SQLite works on whole values and cannot be
/// stopped: what it may cost grows with their length, for some functions with its square.
const LONGEST_VALUE: i32 = 16 << 20;

/// A SQLite file, opened for reading only.
pub struct Sqlite {
    name: String,
    samples: usize,
    shared: Arc<Shared>,
}

/// What the threads that run queries share.
struct Shared {
    file: DatabaseFile,
    idle: Mutex<Vec<Held>>,
}

/// A connection, and how the file looked when it was opened.
struct Held {
    connection: Connection,
    house: House,
    state: State,
}

impl Sqlite {
    /// Finds the file. It is not read before the first call that needs it, so that opening never waits for a lock.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = DatabaseFile::find(path)?;
        file.state()?;
        let name = format!("sqlite:{}", path.display());
        Ok(Self { name, samples: 0, shared: Arc::new(Shared { file, idle: Mutex::new(Vec::new()) }) })
    }

    /// Lets [`Engine::schema`] read up to so many different short values of each text column; 0, the default, reads none.
    #[must_use]
    pub fn introspect_samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    fn run<T: Send + 'static>(
        &self,
        stop: Stop,
        policy: Option<Policy>,
        work: impl Fn(&Connection, &DatabaseFile) -> Result<T, Error> + Send + 'static,
    ) -> Answer<'_, T> {
        let shared = Arc::clone(&self.shared);
        blocking(stop, move |stop| shared.with_connection(stop, policy.as_ref(), &work))
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn schema(&self) -> Answer<'_, Schema> {
        let samples = self.samples;
        self.run(usual_stop(), None, move |connection, file| introspect::schema(connection, file, samples))
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        if let Err(error) = Error::unless_same(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        self.run(usual_stop(), restricting(query), move |connection, file| prepare(connection, file, &sql).map(|_| ()))
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        if let Err(error) = Error::unless_same(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        let caps = limits.clone();
        let steps = limits.steps.map(Steps::new);
        let stop = Stop::new(limits.time, cancel.clone()).with_steps(steps.clone());
        self.run(stop, restricting(query), move |connection, file| {
            execute(connection, file, &sql, &caps, steps.as_ref())
        })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        self.run(usual_stop(), None, |connection, file| {
            let read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
            read.map_err(|error| refusal::meaning(error, file))
        })
    }

    fn data_version(&self) -> Answer<'_, Option<DataVersion>> {
        Box::pin(async { self.shared.file.data_version() })
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        self.run(usual_stop(), None, |connection, file| {
            let read = |sql: &str| execute(connection, file, sql, &Limits::default(), None);
            read("SELECT count(*) FROM sqlite_schema")?;
            let seen = format!("`{}` can be read with SQLite {}", file.shown(), rusqlite::version());
            // What a critic would never let through: were it carried out, the file would be written to.
            let write = read("CREATE TABLE querymend_tries_the_lock (x)");
            Ok(vec![
                Check::good("connection", seen),
                match write {
                    Err(Error::Rejected(_)) => Check::good("read-only lock", "a write that was tried is refused"),
                    other => Check::bad(
                        "read-only lock",
                        format!("a write that was tried is not refused as it should be: {other:?}"),
                        "do not use this; please report it",
                    ),
                },
                Check::good("rights", "the file is only ever opened for reading, whoever may write to it"),
            ])
        })
    }
}

/// When work that no limits were given for must end.
fn usual_stop() -> Stop {
    Stop::new(Limits::default().time, Cancel::new())
}

impl Shared {
    /// Runs the work on a connection that stops when it is told to, and gives that connection back.
    ///
    /// A file that is read without locks (see [`State`]) is looked at again afterwards: if it was written to in the
    /// meantime, the answer may be a mixture of old and new, and the work is done again.
    fn with_connection<T>(
        &self,
        stop: &Stop,
        policy: Option<&Policy>,
        work: impl Fn(&Connection, &DatabaseFile) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..3 {
            if let Some(error) = stop.reason() {
                return Err(error);
            }
            let mut held = self.take(stop, policy)?;
            watch::watch(&mut held.connection, stop).map_err(|error| refusal::meaning(error, &self.file))?;
            let outcome = work(&held.connection, &self.file);
            if held.state.is_unlocked() && self.file.state().ok().as_ref() != Some(&held.state) {
                continue;
            }
            let usable = !matches!(outcome, Err(Error::Unavailable { .. } | Error::Internal(_)));
            if usable && watch::forget(&mut held.connection, stop).is_ok() {
                self.give_back(held);
            }
            return outcome;
        }
        Err(self.file.changing())
    }

    /// A warm connection to the file as it is now, or a new one. Those to a file that was since replaced are closed. A
    /// connection serves one policy: full-text tables keep statements for later that were prepared, and so permitted,
    /// under another.
    fn take(&self, stop: &Stop, policy: Option<&Policy>) -> Result<Held, Error> {
        let state = self.file.state()?;
        let patience = PATIENCE.min(stop.time());
        let warm = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|held| held.state == state);
            let same = idle.iter().rposition(|held| held.house.is_of(policy));
            same.map(|place| idle.remove(place))
        };
        let held = match warm {
            Some(held) => held,
            None => {
                let (connection, house) = self.file.connect(&state, patience)?;
                house.set(policy.cloned());
                Held { connection, house, state }
            }
        };
        held.connection.busy_timeout(patience).map_err(|error| refusal::meaning(error, &self.file))?;
        Ok(held)
    }

    fn give_back(&self, held: Held) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < POOL {
            idle.push(held);
        }
    }
}

/// The policy of a query, if it keeps tables from being read or functions from being called.
fn restricting(query: &Approved) -> Option<Policy> {
    let policy = query.policy();
    (policy.restricts_tables() || !policy.deny_functions.is_empty()).then(|| policy.clone())
}

/// Prepares the one statement of the text, and makes sure that it is one and only reads.
fn prepare<'c>(connection: &'c Connection, file: &DatabaseFile, sql: &str) -> Result<Statement<'c>, Error> {
    // SQLite stops reading at a NUL without a word, and would run what stands before it.
    if let Some(position) = sql.find('\0') {
        return Err(refused("SQLITE_ERROR", "the query holds a NUL character", Some(position)));
    }
    let mut statements = Batch::new(connection, sql);
    let statement = statements.next().map_err(|error| refusal::meaning(error, file))?;
    let Some(statement) = statement else {
        return Err(refused("SQLITE_ERROR", "the query is empty", None));
    };
    // Whatever follows, even if it does not parse, is a second statement; only blanks and comments are none.
    if !matches!(statements.next(), Ok(None)) {
        return Err(refused("SQLITE_ERROR", "you can only execute one statement at a time", None));
    }
    if !statement.readonly() {
        return Err(refused("SQLITE_READONLY", "attempt to write a readonly database", None));
    }
    // SQLite takes a parameter without a value for NULL, and the answer would be wrong without a word.
    if statement.parameter_count() > 0 {
        let name = statement.parameter_name(1).unwrap_or("?");
        return Err(refused("SQLITE_ERROR", &format!("no value was given for the parameter {name}"), None));
    }
    Ok(statement)
}

fn execute(
    connection: &Connection,
    file: &DatabaseFile,
    sql: &str,
    limits: &Limits,
    steps: Option<&Steps>,
) -> Result<Rows, Error> {
    let meaning = |error| refusal::meaning(error, file);
    memory::allow(limits.memory).map_err(meaning)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE).map_err(meaning)?;

    let mut statement = prepare(connection, file, sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_string).collect();
    let width = columns.len();
    let mut taking = Taking::new(columns, limits);
    if let Some(steps) = steps {
        steps.restart();
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(meaning)? {
        let mut cells = Vec::with_capacity(width);
        for i in 0..width {
            let value = row.get_ref(i).map_err(meaning)?;
            if !taking.has_room(beside(value)) {
                break;
            }
            cells.push(cell(value));
        }
        if !taking.take(cells) {
            break;
        }
    }
    Ok(taking.done())
}

/// The memory that a value takes beside its cell.
fn beside(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        ValueRef::Text(bytes) => bytes.len(),
        ValueRef::Blob(bytes) => bytes.len() * 2,
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Number(number),
        ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Cell::Binary(hexadecimal(bytes)),
    }
}

/// A refusal that this engine speaks in SQLite's place.
fn refused(code: &str, message: &str, position: Option<usize>) -> Error {
    Error::Rejected(EngineError { code: code.into(), message: message.into(), hint: None, position })
}
