//! Sessions and traces in PostgreSQL, shared by several server processes.

use std::time::Duration;

use querymend::{Event, Problem, TraceStore};
use querymend_memory::{Idempotent, StorePool};
use serde_json::Value;

use super::{SessionStore, StoredSession, TraceSummary};
use crate::BoxFuture;
use crate::clock::now;
use crate::error::memory_problem;

/// Creates the session table if it does not exist. Processes that start concurrently wait for each
/// other.
const CREATE_SESSIONS: &str = "
    CREATE TABLE IF NOT EXISTS querymend_talks (
        id text PRIMARY KEY, owner text NOT NULL, database text NOT NULL, at bigint NOT NULL, version bigint NOT NULL,
        conversation text NOT NULL)";
const CREATE_SESSIONS_INDEX: &str = "CREATE INDEX IF NOT EXISTS querymend_talks_owner ON querymend_talks (owner, at)";
const CREATE_TRACES: &str = "
    CREATE TABLE IF NOT EXISTS querymend_runs (
        id text PRIMARY KEY, owner text NOT NULL, at bigint NOT NULL, events text NOT NULL)";
const CREATE_TRACES_INDEX: &str = "CREATE INDEX IF NOT EXISTS querymend_runs_owner ON querymend_runs (owner, at)";

/// Store in tables of a PostgreSQL server.
pub struct PostgresSessionStore {
    pool: StorePool,
    /// Maximum number of sessions of one user.
    max_sessions: i64,
    ttl: Duration,
    /// Maximum number of traces of one user.
    max_traces: i64,
}

impl PostgresSessionStore {
    /// Connects to a server and creates the tables if necessary.
    pub async fn open(address: &str, max_sessions: usize, ttl: Duration, max_traces: usize) -> Result<Self, Problem> {
        let pool = StorePool::open(address).map_err(memory_problem)?;
        for statement in [CREATE_SESSIONS, CREATE_SESSIONS_INDEX, CREATE_TRACES, CREATE_TRACES_INDEX] {
            if pool.query(statement, &[], Idempotent::Yes).await.is_err() {
                // Another process may have created it at the same moment, which PostgreSQL reports
                // as a unique violation.
                pool.query(statement, &[], Idempotent::Yes).await.map_err(memory_problem)?;
            }
        }
        Ok(Self { pool, max_sessions: max_sessions as i64, ttl, max_traces: max_traces as i64 })
    }

    fn expiry_cutoff(&self) -> i64 {
        now().saturating_sub(self.ttl.as_secs()) as i64
    }
}

fn decode_problem(error: impl std::fmt::Display) -> Problem {
    Problem::new(querymend::ProblemCode::Internal, format!("cannot decode stored data: {error}"))
}

/// Converts a row of `owner, database, at, version, conversation` to a session.
fn session_from_row(row: &tokio_postgres::Row) -> Result<StoredSession, Problem> {
    let text = |at: usize| row.try_get::<_, String>(at).map_err(decode_problem);
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(decode_problem);
    Ok(StoredSession {
        user: text(0)?,
        database: text(1)?,
        at: number(2)?.max(0) as u64,
        version: number(3)?.max(0) as u64,
        conversation: serde_json::from_str(&text(4)?).map_err(decode_problem)?,
    })
}

const SESSION_COLUMNS: &str = "owner, database, at, version, conversation";

impl SessionStore for PostgresSessionStore {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn session<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, Option<StoredSession>> {
        Box::pin(async move {
            let sql =
                format!("SELECT {SESSION_COLUMNS} FROM querymend_talks WHERE id = $1 AND owner = $2 AND at >= $3");
            let rows = self
                .pool
                .query(&sql, &[&id, &user, &self.expiry_cutoff()], Idempotent::Yes)
                .await
                .map_err(memory_problem)?;
            rows.first().map(session_from_row).transpose()
        })
    }

    fn save_session<'a>(&'a self, session: &'a StoredSession) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let conversation = serde_json::to_string(&session.conversation).map_err(decode_problem)?;
            let (id, at, version) = (&session.conversation.id, session.at as i64, session.version as i64);
            let first = "INSERT INTO querymend_talks (id, owner, database, at, version, conversation)
                         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING RETURNING id";
            // Optimistic concurrency: the stored version must precede the new one.
            let next = "UPDATE querymend_talks SET at = $4, version = $5::bigint, conversation = $6
                        WHERE id = $1 AND owner = $2 AND database = $3 AND version = $5::bigint - 1 RETURNING id";
            let sql = if version == 1 { first } else { next };
            let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
                &[id, &session.user, &session.database, &at, &version, &conversation];
            let kept = self.pool.query(sql, values, Idempotent::No).await.map_err(memory_problem)?;
            if version == 1 {
                // The new session counts as the most recent, even if sessions created later were
                // saved earlier.
                let evict = "DELETE FROM querymend_talks WHERE owner = $1 AND id <> $4 AND (at < $2 OR id IN
                            (SELECT id FROM querymend_talks WHERE owner = $1 ORDER BY id = $4 DESC, at DESC, id DESC OFFSET $3))";
                let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
                    &[&session.user, &self.expiry_cutoff(), &self.max_sessions, id];
                self.pool.query(evict, values, Idempotent::Yes).await.map_err(memory_problem)?;
            }
            Ok(!kept.is_empty())
        })
    }

    fn list_sessions<'a>(&'a self, user: &'a str, limit: usize) -> BoxFuture<'a, Vec<StoredSession>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT {SESSION_COLUMNS} FROM querymend_talks WHERE owner = $1 AND at >= $2 ORDER BY at DESC LIMIT $3"
            );
            let limit = limit as i64;
            let rows = self.pool.query(&sql, &[&user, &self.expiry_cutoff(), &limit], Idempotent::Yes).await;
            rows.map_err(memory_problem)?.iter().map(session_from_row).collect()
        })
    }

    fn delete_session<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let sql = "DELETE FROM querymend_talks WHERE id = $1 AND owner = $2 RETURNING id";
            let deleted = self.pool.query(sql, &[&id, &user], Idempotent::No).await.map_err(memory_problem)?;
            Ok(!deleted.is_empty())
        })
    }

    fn save_trace<'a>(&'a self, user: &'a str, id: &'a str, events: &'a [Event]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.max_traces == 0 {
                return Ok(());
            }
            let lines = TraceStore::to_jsonl(events).map_err(decode_problem)?;
            let at = now() as i64;
            let sql = "INSERT INTO querymend_runs (id, owner, at, events) VALUES ($1, $2, $3, $4)
                       ON CONFLICT (id) DO NOTHING";
            self.pool.query(sql, &[&id, &user, &at, &lines], Idempotent::Yes).await.map_err(memory_problem)?;
            // The last digit of an id is random, so one run in sixteen evicts old traces.
            if id.ends_with('0') {
                let evict = "DELETE FROM querymend_runs WHERE id IN
                            (SELECT id FROM querymend_runs WHERE owner = $1 ORDER BY at DESC, id DESC OFFSET $2)";
                self.pool.query(evict, &[&user, &self.max_traces], Idempotent::Yes).await.map_err(memory_problem)?;
            }
            Ok(())
        })
    }

    fn trace<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, Option<Vec<Value>>> {
        Box::pin(async move {
            let sql = "SELECT events FROM querymend_runs WHERE id = $1 AND owner = $2";
            let rows = self.pool.query(sql, &[&id, &user], Idempotent::Yes).await.map_err(memory_problem)?;
            let Some(row) = rows.first() else { return Ok(None) };
            let lines: String = row.try_get(0).map_err(decode_problem)?;
            let events: Result<Vec<Value>, _> = lines.lines().map(serde_json::from_str).collect();
            events.map(Some).map_err(decode_problem)
        })
    }

    fn list_traces<'a>(&'a self, user: Option<&'a str>, limit: usize) -> BoxFuture<'a, Vec<TraceSummary>> {
        Box::pin(async move {
            let sql = "SELECT id, owner, events FROM querymend_runs WHERE $1::text IS NULL OR owner = $1
                       ORDER BY at DESC, id DESC LIMIT $2";
            let limit = limit as i64;
            let rows = self.pool.query(sql, &[&user, &limit], Idempotent::Yes).await.map_err(memory_problem)?;
            let mut traces = Vec::new();
            for row in &rows {
                let text = |at: usize| row.try_get::<_, String>(at).map_err(decode_problem);
                let (id, owner, lines) = (text(0)?, text(1)?, text(2)?);
                let events: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                traces.extend(TraceSummary::from_events(&id, &owner, &events));
            }
            Ok(traces)
        })
    }
}
