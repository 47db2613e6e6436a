//! What was sent to databases for a request, whoever on the way wanted it sent: drafts, lookups, conditions that are left out to see
//! which one keeps all rows away. It is kept where queries pass, so that none can be forgotten, however it ends.

use std::sync::{Arc, Mutex, PoisonError};

use querymend_engine::{Answer, Cancel, Check, Connections, DataVersion, Engine, Error, Limits};
use querymend_sql::{Approved, Dialect, Rows, Schema};

use crate::service::now_ms;

/// A query that was sent.
pub struct Sent {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// The query.
    pub sql: String,
    /// How many rows came back.
    pub rows: Option<usize>,
    /// How it ended.
    pub outcome: &'static str,
}

tokio::task_local! {
    static LOG: Log;
}

/// The queries of one request.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Sent>>>);

impl Log {
    /// Does some work and keeps what is sent for it.
    pub async fn keeping<T>(&self, work: impl Future<Output = T>) -> T {
        // Answering a question is a large future, which would else be copied with every one that it is part of.
        LOG.scope(self.clone(), Box::pin(work)).await
    }

    /// What was sent so far.
    pub fn taken(&self) -> Vec<Sent> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A database at whose door queries are written down.
pub struct Watched(pub Arc<dyn Engine>);

impl Engine for Watched {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn dialect(&self) -> &'static Dialect {
        self.0.dialect()
    }

    fn schema(&self) -> Answer<'_, Schema> {
        self.0.schema()
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        self.0.probe(query)
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        // What is read for nobody in particular, such as the values of all columns, belongs to no request.
        let Ok(log) = LOG.try_with(Log::clone) else { return self.0.execute(query, limits, cancel) };
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
            let sent = Sent { at_ms: now_ms(), sql: query.sql().to_owned(), rows, outcome };
            log.0.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
            given
        })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        self.0.test_connection()
    }

    fn data_version(&self) -> Answer<'_, Option<DataVersion>> {
        self.0.data_version()
    }

    fn connections(&self) -> Option<Connections> {
        self.0.connections()
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        self.0.examine()
    }
}
