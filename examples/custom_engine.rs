//! Implements `Engine` for a table in memory: questions about the live data of your own program.
//!
//! ```sh
//! cargo run -p querymend-examples --example custom_engine
//! ```
//!
//! The output is:
//!
//! ```text
//! SELECT queue, avg(seconds) FROM jobs GROUP BY queue ORDER BY 1 -> [["mail",1.0],["video",30.0]]
//! SELECT queue, avg(seconds) FROM jobs GROUP BY queue ORDER BY 1 -> [["mail",1.0],["video",40.0]]
//! ```

#![allow(clippy::print_stdout, reason = "the output of the example")]

use std::sync::{Arc, Mutex, PoisonError};

use querymend::{Config, Querymend};
use querymend_engine::sqlite::InMemoryEngine;
use querymend_engine::{CancelFlag, Engine, EngineFuture, Error, Limits};
use querymend_model::ScriptedModel;
use querymend_sql::{Approved, Cell, Dialect, Rows, Schema, SchemaError, dialect};

/// Data of the program: ID, queue, and run time in seconds.
struct Job(i64, &'static str, f64);

/// The jobs as a table that can be queried.
struct JobTable {
    jobs: Mutex<Vec<Job>>,
    schema: Schema,
}

impl JobTable {
    fn new(jobs: Vec<Job>) -> Result<Self, SchemaError> {
        // Models read names and types, so write them as you would for a colleague.
        let ddl = "CREATE TABLE jobs (job_id INTEGER PRIMARY KEY, queue TEXT, seconds REAL)";
        Ok(Self { jobs: Mutex::new(jobs), schema: Schema::from_ddl(ddl, &dialect::SQLITE)? })
    }

    /// Copies the jobs into an in-memory database, which enforces read-only access and limits.
    ///
    /// An engine for a database server sends `query.sql()` to it instead, and then has to enforce
    /// both by itself: a read-only session, and a result truncated at `limits`.
    fn snapshot(&self) -> Result<InMemoryEngine, Error> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let to_row = |job: &Job| vec![Cell::Integer(job.0), Cell::Text(job.1.into()), Cell::Number(job.2)];
        let table = &self.schema.tables()[0];
        let columns = table.columns.iter().map(|column| column.name.clone()).collect();
        let rows = Rows { columns, rows: jobs.iter().map(to_row).collect(), truncated: false };
        InMemoryEngine::load(&[(table, &rows)])
    }
}

impl Engine for JobTable {
    fn name(&self) -> &str {
        "jobs"
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        Box::pin(async { Ok(self.schema.clone()) })
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        Box::pin(async { self.snapshot()?.probe(query).await })
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        Box::pin(async { self.snapshot()?.execute(query, limits, cancel).await })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = Arc::new(JobTable::new(vec![Job(1, "mail", 0.5), Job(2, "video", 30.0), Job(3, "mail", 1.5)])?);
    // The scripted model misspells a column: the second answer contains a job added in between.
    let sql = "SELECT queue, avg(second) FROM jobs GROUP BY queue ORDER BY 1";
    let querymend = Querymend::new(table.clone(), Arc::new(ScriptedModel::new([sql, sql])), Config::default());

    for _ in 0..2 {
        let answer = querymend.ask("How long does a job of each queue take on average?").await;
        let rows = serde_json::to_string(&answer.rows.unwrap_or_default().rows)?;
        println!("{} -> {rows}", answer.sql.unwrap_or_default());
        table.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(Job(4, "video", 50.0));
    }
    Ok(())
}
