//! Spark and Hive, over the HiveServer2 protocol.
//!
//! A connection is one session and serves one query at a time; idle sessions are pooled. All I/O
//! blocks, on threads of its own, so that a connection does not depend on the async runtime that
//! created it. `read_only.rs` prevents writes.

mod address;
#[cfg(test)]
mod attacks;
mod cells;
mod errors;
#[cfg(test)]
mod fake_server;
#[cfg(test)]
mod fuzz;
mod health;
mod hive_error;
mod introspect;
mod read_only;
mod session;
mod thrift_client;
mod thrift_value;
mod transport;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use querymend_net::{EnvLookup, read_env};
use querymend_sql::{Approved, Dialect, Rows, Schema};
use tokio::sync::Semaphore;

use self::address::HiveSettings;
use self::hive_error::HiveError;
use self::session::HiveSession;
use crate::blocking::run_blocking_with_permit;
use crate::deadline::Deadline;
use crate::{CancelFlag, Engine, EngineFuture, Error, HealthCheck, Limits};

/// Maximum number of open sessions.
const MAX_SESSIONS: usize = 4;
/// Time limit for listing tables; a large metastore is slow.
const INTROSPECTION_TIMEOUT: Duration = Duration::from_secs(120);

/// Engine for a Spark or Hive database.
pub struct HiveEngine {
    pool: Arc<HivePool>,
    permits: Arc<Semaphore>,
}

/// State shared by the threads that run queries.
struct HivePool {
    settings: Arc<HiveSettings>,
    idle: Mutex<Vec<HiveSession>>,
}

impl HiveEngine {
    /// Parses an address: `spark://USER:PASSWORD@HOST:PORT/DATABASE`, or `hive://` for Hive. Does
    /// not connect.
    pub fn open(address: &str) -> Result<Self, Error> {
        Self::open_with(address, &read_env)
    }

    fn open_with(address: &str, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let settings = Arc::new(HiveSettings::parse(address, variables)?);
        let shared = Arc::new(HivePool { settings, idle: Mutex::new(Vec::new()) });
        Ok(Self { pool: shared, permits: Arc::new(Semaphore::new(MAX_SESSIONS)) })
    }

    fn run<T: Send + 'static>(
        &self,
        time: Duration,
        cancel: &CancelFlag,
        work: impl Fn(&mut HiveSession, &Deadline) -> Result<T, HiveError> + Send + 'static,
    ) -> EngineFuture<'_, T> {
        let shared = Arc::clone(&self.pool);
        let stop = Deadline::new(time, cancel.clone());
        run_blocking_with_permit(stop, &self.permits, move |stop| shared.with_session(stop, &work))
    }
}

impl Engine for HiveEngine {
    fn name(&self) -> &str {
        &self.pool.settings.name
    }

    fn dialect(&self) -> &'static Dialect {
        self.pool.settings.dialect
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        let database = self.pool.settings.database.clone();
        self.run(INTROSPECTION_TIMEOUT, &CancelFlag::new(), move |session, stop| {
            introspect::read_schema(session, &database, stop)
        })
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        if let Err(error) = Error::check_dialect(query.dialect(), self.dialect()) {
            return Box::pin(async { Err(error) });
        }
        let sql = query.sql().to_string();
        self.run(Limits::default().time, &CancelFlag::new(), move |session, stop| read_only::probe(session, &sql, stop))
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
        self.run(limits.time, cancel, move |session, stop| {
            read_only::execute(session, &sql, &caps, stop).map(|gathered| gathered.collector.into_rows())
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.run(Limits::default().time, &CancelFlag::new(), |session, stop| session.command("SELECT 1", stop))
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        let settings = Arc::clone(&self.pool.settings);
        self.run(INTROSPECTION_TIMEOUT, &CancelFlag::new(), move |session, stop| {
            health::health_checks(session, &settings, stop)
        })
    }
}

impl HivePool {
    /// Runs work in a session, and returns the session to the pool if it is still clean.
    ///
    /// A pooled session may have been closed by the server. The work, which only reads, is then
    /// retried in a new session.
    fn with_session<T>(
        &self,
        deadline: &Deadline,
        work: impl Fn(&mut HiveSession, &Deadline) -> Result<T, HiveError>,
    ) -> Result<T, Error> {
        if let Some(reason) = deadline.stop_reason() {
            return Err(reason);
        }
        if let Some(mut idle) = self.take_idle() {
            let outcome = work(&mut idle, deadline);
            match outcome {
                // The other idle sessions are just as old.
                Err(fault) if fault.is_stale_session() => self.discard_idle(),
                outcome => return self.return_session(idle, outcome, deadline),
            }
        }
        let mut session =
            HiveSession::open(&self.settings, deadline).map_err(|fault| self.to_error(fault, deadline))?;
        let outcome = work(&mut session, deadline);
        self.return_session(session, outcome, deadline)
    }

    fn return_session<T>(
        &self,
        session: HiveSession,
        outcome: Result<T, HiveError>,
        deadline: &Deadline,
    ) -> Result<T, Error> {
        if session.is_clean() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        }
        outcome.map_err(|fault| self.to_error(fault, deadline))
    }

    fn take_idle(&self) -> Option<HiveSession> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn discard_idle(&self) {
        let dead = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        dead.into_iter().for_each(HiveSession::abandon);
    }

    fn to_error(&self, fault: HiveError, deadline: &Deadline) -> Error {
        errors::to_error(fault, &self.settings, deadline)
    }
}
