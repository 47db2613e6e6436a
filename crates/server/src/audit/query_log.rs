//! Record of every query executed on a database on behalf of a request.
//!
//! This includes drafts, value lookups, and the ablated queries that find the predicate which
//! removes all rows. Queries are recorded in the engine decorator that all of them pass through, so
//! no executed query can be missed, regardless of its outcome. Dry runs ([`Engine::probe`]) return
//! no data and are not recorded.

use std::sync::{Arc, Mutex, PoisonError};

use querymend_engine::{CancelFlag, Connections, DataVersion, Engine, EngineFuture, Error, HealthCheck, Limits};
use querymend_sql::{Approved, Dialect, Rows, Schema};

use crate::clock::unix_ms;

/// A query that was executed on a database.
pub struct ExecutedQuery {
    /// Completion time, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Text of the query.
    pub sql: String,
    /// Number of rows returned; `None` if the query failed.
    pub rows: Option<usize>,
    /// Outcome: `ran`, `rejected`, `timed out`, `stopped`, `cancelled` or `failed`.
    pub outcome: &'static str,
}

tokio::task_local! {
    static LOG: QueryLog;
}

/// Queries of one request, shared through a task-local.
#[derive(Clone, Default)]
pub struct QueryLog(Arc<Mutex<Vec<ExecutedQuery>>>);

impl QueryLog {
    /// Runs a future and records the queries that it executes.
    pub async fn scope<T>(&self, work: impl Future<Output = T>) -> T {
        // Boxed because the future of a question is large, and would be copied into every future
        // that contains it.
        LOG.scope(self.clone(), Box::pin(work)).await
    }

    /// Removes and returns the queries recorded so far.
    pub fn take(&self) -> Vec<ExecutedQuery> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Engine decorator that records every executed query.
pub struct AuditedEngine(pub Arc<dyn Engine>);

impl Engine for AuditedEngine {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn dialect(&self) -> &'static Dialect {
        self.0.dialect()
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        self.0.schema()
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        self.0.probe(query)
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        // Background reads, such as loading the values of all columns, belong to no request.
        let Ok(log) = LOG.try_with(QueryLog::clone) else { return self.0.execute(query, limits, cancel) };
        Box::pin(async move {
            let given = self.0.execute(query, limits, cancel).await;
            let outcome = match &given {
                Ok(_) => "ran",
                Err(Error::Rejected(_)) => "rejected",
                Err(Error::TimedOut { .. }) => "timed out",
                Err(Error::StepLimit { .. }) => "stopped",
                Err(Error::Cancelled) => "cancelled",
                Err(Error::Unavailable { .. } | Error::WrongDialect { .. } | Error::Internal(_)) => "failed",
            };
            let rows = given.as_ref().ok().map(|rows| rows.rows.len());
            let sent = ExecutedQuery { at_ms: unix_ms(), sql: query.sql().to_owned(), rows, outcome };
            log.0.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
            given
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.0.test_connection()
    }

    fn data_version(&self) -> EngineFuture<'_, Option<DataVersion>> {
        self.0.data_version()
    }

    fn connections(&self) -> Option<Connections> {
        self.0.connections()
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        self.0.check_health()
    }
}
