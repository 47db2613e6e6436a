//! Spark and Hive, through the protocol of HiveServer2.
//!
//! One connection is one session and serves one query at a time; a few are kept. All of it blocks, on threads of its own, so
//! that nothing depends on the runtime that a connection was made in. How writes are kept out stands in `lock.rs`.

mod address;
#[cfg(test)]
mod attacks;
mod call;
mod cells;
mod examine;
mod fault;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod imitation;
mod introspect;
mod line;
mod lock;
mod refusal;
mod session;
mod value;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use querymend_net::{Variables, environment};
use querymend_sql::{Approved, Dialect, Rows, Schema};
use tokio::sync::Semaphore;

use self::address::Settings;
use self::fault::Fault;
use self::session::Session;
use crate::stop::Stop;
use crate::thread::blocking_in_turn;
use crate::{Answer, Cancel, Check, Engine, Error, Limits};

/// Sessions that may be open at once.
const SESSIONS: usize = 4;
/// How long the tables may take to be listed; a large metastore is slow.
const LISTING: Duration = Duration::from_secs(120);

/// A database of Spark or Hive.
pub struct Hive {
    shared: Arc<Shared>,
    turns: Arc<Semaphore>,
}

/// What the threads that run queries share.
struct Shared {
    settings: Arc<Settings>,
    idle: Mutex<Vec<Session>>,
}

impl Hive {
    /// Reads an address: `spark://USER:PASSWORD@HOST:PORT/DATABASE`, or `hive://` for Hive. The server is not asked anything yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        Self::open_with(address, &environment)
    }

    fn open_with(address: &str, variables: Variables<'_>) -> Result<Self, Error> {
        let settings = Arc::new(Settings::read(address, variables)?);
        let shared = Arc::new(Shared { settings, idle: Mutex::new(Vec::new()) });
        Ok(Self { shared, turns: Arc::new(Semaphore::new(SESSIONS)) })
    }

    fn run<T: Send + 'static>(
        &self,
        time: Duration,
        cancel: &Cancel,
        work: impl Fn(&mut Session, &Stop) -> Result<T, Fault> + Send + 'static,
    ) -> Answer<'_, T> {
        let shared = Arc::clone(&self.shared);
        let stop = Stop::new(time, cancel.clone());
        blocking_in_turn(stop, &self.turns, move |stop| shared.with_session(stop, &work))
    }
}

impl Engine for Hive {
    fn name(&self) -> &str {
        &self.shared.settings.name
    }

    fn dialect(&self) -> &'static Dialect {
        self.shared.settings.dialect
    }

    fn schema(&self) -> Answer<'_, Schema> {
        let database = self.shared.settings.database.clone();
        self.run(LISTING, &Cancel::new(), move |session, stop| introspect::schema(session, &database, stop))
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        if let Err(error) = Error::unless_same(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        self.run(Limits::default().time, &Cancel::new(), move |session, stop| lock::probe(session, &sql, stop))
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        if let Err(error) = Error::unless_same(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        let caps = limits.clone();
        self.run(limits.time, cancel, move |session, stop| {
            lock::execute(session, &sql, &caps, stop).map(|gathered| gathered.taking.done())
        })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        self.run(Limits::default().time, &Cancel::new(), |session, stop| session.command("SELECT 1", stop))
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        let settings = Arc::clone(&self.shared.settings);
        self.run(LISTING, &Cancel::new(), move |session, stop| examine::checks(session, &settings, stop))
    }
}

impl Shared {
    /// Does the work in a session, and keeps that for the next if it is as it was. A session that was kept may be dead without
    /// knowing it: then the work, which only reads, is done once more in a new one.
    fn with_session<T>(&self, stop: &Stop, work: impl Fn(&mut Session, &Stop) -> Result<T, Fault>) -> Result<T, Error> {
        if let Some(reason) = stop.reason() {
            return Err(reason);
        }
        if let Some(mut kept) = self.take() {
            let outcome = work(&mut kept, stop);
            match outcome {
                // The others that were kept are as old.
                Err(fault) if fault.is_stale() => self.forget(),
                outcome => return self.end(kept, outcome, stop),
            }
        }
        let mut session = Session::open(&self.settings, stop).map_err(|fault| self.meaning(fault, stop))?;
        let outcome = work(&mut session, stop);
        self.end(session, outcome, stop)
    }

    fn end<T>(&self, session: Session, outcome: Result<T, Fault>, stop: &Stop) -> Result<T, Error> {
        if session.is_clean() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        }
        outcome.map_err(|fault| self.meaning(fault, stop))
    }

    fn take(&self) -> Option<Session> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn forget(&self) {
        let dead = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        dead.into_iter().for_each(Session::abandon);
    }

    fn meaning(&self, fault: Fault, stop: &Stop) -> Error {
        refusal::meaning(fault, &self.settings, stop)
    }
}
