//! Conversations and past runs in PostgreSQL: several processes go on with the same conversation, whichever is asked.

use std::time::Duration;

use querymend::{Event, Problem, Traces};
use querymend_memory::{Pool, Twice};
use serde_json::Value;

use super::{Kept, Shelf, Talk};
use crate::service::{Past, memory_problem, now};

/// What is made if it is not there. Two that begin at once wait for each other.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS querymend_talks (
        id text PRIMARY KEY, owner text NOT NULL, database text NOT NULL, at bigint NOT NULL, version bigint NOT NULL,
        conversation text NOT NULL)";
const TALKS_OF: &str = "CREATE INDEX IF NOT EXISTS querymend_talks_owner ON querymend_talks (owner, at)";
const RUNS: &str = "
    CREATE TABLE IF NOT EXISTS querymend_runs (
        id text PRIMARY KEY, owner text NOT NULL, at bigint NOT NULL, events text NOT NULL)";
const RUNS_OF: &str = "CREATE INDEX IF NOT EXISTS querymend_runs_owner ON querymend_runs (owner, at)";

/// Tables of a PostgreSQL server.
pub struct Postgres {
    pool: Pool,
    /// Conversations of one user.
    talks: i64,
    age: Duration,
    /// Runs of one user.
    runs: i64,
}

impl Postgres {
    /// Opens the tables at an address, which are made if they are not there.
    pub async fn open(address: &str, talks: usize, age: Duration, runs: usize) -> Result<Self, Problem> {
        let pool = Pool::open(address).map_err(memory_problem)?;
        for statement in [TABLES, TALKS_OF, RUNS, RUNS_OF] {
            if pool.ask(statement, &[], Twice::Same).await.is_err() {
                // Another process may have made it in the same moment, which PostgreSQL calls a violated key.
                pool.ask(statement, &[], Twice::Same).await.map_err(memory_problem)?;
            }
        }
        Ok(Self { pool, talks: talks as i64, age, runs: runs as i64 })
    }

    fn oldest(&self) -> i64 {
        now().saturating_sub(self.age.as_secs()) as i64
    }
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    Problem::new(querymend::ProblemCode::Internal, format!("what was kept cannot be read: {error}"))
}

/// A conversation out of a row of `owner, database, at, version, conversation`.
fn talk_of(row: &tokio_postgres::Row) -> Result<Talk, Problem> {
    let text = |at: usize| row.try_get::<_, String>(at).map_err(unreadable);
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(unreadable);
    Ok(Talk {
        user: text(0)?,
        database: text(1)?,
        at: number(2)?.max(0) as u64,
        version: number(3)?.max(0) as u64,
        conversation: serde_json::from_str(&text(4)?).map_err(unreadable)?,
    })
}

const COLUMNS: &str = "owner, database, at, version, conversation";

impl Shelf for Postgres {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn talk<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, Option<Talk>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS} FROM querymend_talks WHERE id = $1 AND owner = $2 AND at >= $3");
            let rows = self.pool.ask(&sql, &[&id, &user, &self.oldest()], Twice::Same).await.map_err(memory_problem)?;
            rows.first().map(talk_of).transpose()
        })
    }

    fn keep_talk<'a>(&'a self, talk: &'a Talk) -> Kept<'a, bool> {
        Box::pin(async move {
            let conversation = serde_json::to_string(&talk.conversation).map_err(unreadable)?;
            let (id, at, version) = (&talk.conversation.id, talk.at as i64, talk.version as i64);
            let first = "INSERT INTO querymend_talks (id, owner, database, at, version, conversation)
                         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING RETURNING id";
            let next = "UPDATE querymend_talks SET at = $4, version = $5::bigint, conversation = $6
                        WHERE id = $1 AND owner = $2 AND database = $3 AND version = $5::bigint - 1 RETURNING id";
            let sql = if version == 1 { first } else { next };
            let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
                &[id, &talk.user, &talk.database, &at, &version, &conversation];
            let kept = self.pool.ask(sql, values, Twice::Not).await.map_err(memory_problem)?;
            if version == 1 {
                // This one counts as the newest, also where others that began after it were faster.
                let many = "DELETE FROM querymend_talks WHERE owner = $1 AND id <> $4 AND (at < $2 OR id IN
                            (SELECT id FROM querymend_talks WHERE owner = $1 ORDER BY id = $4 DESC, at DESC, id DESC OFFSET $3))";
                let values: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
                    &[&talk.user, &self.oldest(), &self.talks, id];
                self.pool.ask(many, values, Twice::Same).await.map_err(memory_problem)?;
            }
            Ok(!kept.is_empty())
        })
    }

    fn talks<'a>(&'a self, user: &'a str, most: usize) -> Kept<'a, Vec<Talk>> {
        Box::pin(async move {
            let sql = format!(
                "SELECT {COLUMNS} FROM querymend_talks WHERE owner = $1 AND at >= $2 ORDER BY at DESC LIMIT $3"
            );
            let most = most as i64;
            let rows = self.pool.ask(&sql, &[&user, &self.oldest(), &most], Twice::Same).await;
            rows.map_err(memory_problem)?.iter().map(talk_of).collect()
        })
    }

    fn forget_talk<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, bool> {
        Box::pin(async move {
            let sql = "DELETE FROM querymend_talks WHERE id = $1 AND owner = $2 RETURNING id";
            let gone = self.pool.ask(sql, &[&id, &user], Twice::Not).await.map_err(memory_problem)?;
            Ok(!gone.is_empty())
        })
    }

    fn keep_run<'a>(&'a self, user: &'a str, id: &'a str, events: &'a [Event]) -> Kept<'a, ()> {
        Box::pin(async move {
            if self.runs == 0 {
                return Ok(());
            }
            let lines = Traces::lines(events).map_err(unreadable)?;
            let at = now() as i64;
            let sql = "INSERT INTO querymend_runs (id, owner, at, events) VALUES ($1, $2, $3, $4)
                       ON CONFLICT (id) DO NOTHING";
            self.pool.ask(sql, &[&id, &user, &at, &lines], Twice::Same).await.map_err(memory_problem)?;
            // The last digit of an id is as good as chance: one run in sixteen makes room.
            if id.ends_with('0') {
                let many = "DELETE FROM querymend_runs WHERE id IN
                            (SELECT id FROM querymend_runs WHERE owner = $1 ORDER BY at DESC, id DESC OFFSET $2)";
                self.pool.ask(many, &[&user, &self.runs], Twice::Same).await.map_err(memory_problem)?;
            }
            Ok(())
        })
    }

    fn run<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, Option<Vec<Value>>> {
        Box::pin(async move {
            let sql = "SELECT events FROM querymend_runs WHERE id = $1 AND owner = $2";
            let rows = self.pool.ask(sql, &[&id, &user], Twice::Same).await.map_err(memory_problem)?;
            let Some(row) = rows.first() else { return Ok(None) };
            let lines: String = row.try_get(0).map_err(unreadable)?;
            let events: Result<Vec<Value>, _> = lines.lines().map(serde_json::from_str).collect();
            events.map(Some).map_err(unreadable)
        })
    }

    fn past<'a>(&'a self, user: Option<&'a str>, most: usize) -> Kept<'a, Vec<Past>> {
        Box::pin(async move {
            let sql = "SELECT id, owner, events FROM querymend_runs WHERE $1::text IS NULL OR owner = $1
                       ORDER BY at DESC, id DESC LIMIT $2";
            let most = most as i64;
            let rows = self.pool.ask(sql, &[&user, &most], Twice::Same).await.map_err(memory_problem)?;
            let mut past = Vec::new();
            for row in &rows {
                let text = |at: usize| row.try_get::<_, String>(at).map_err(unreadable);
                let (id, owner, lines) = (text(0)?, text(1)?, text(2)?);
                let events: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                past.extend(Past::of(&id, &owner, &events));
            }
            Ok(past)
        })
    }
}
