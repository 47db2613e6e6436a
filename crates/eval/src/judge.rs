//! Runs gold queries and answers on the same database and says which answers are right.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use querymend::{Answer, Status};
use querymend_engine::{Cancel, Engine, Limits, open};
use querymend_sql::{Context, Policy, Rows, Schema, diff, review};

use crate::Case;
use crate::matching::Matching;

/// What a judge says of an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judged {
    /// Whether the first draft, as written, gives the rows of a gold query.
    pub first: Option<bool>,
    /// Whether the answer does.
    pub last: Option<bool>,
    /// Why that cannot be said.
    pub unjudged: Option<String>,
}

/// Databases that are open, and how rows are compared.
pub struct Judge {
    matching: Matching,
    limits: Limits,
    open: Mutex<HashMap<String, Arc<Bench>>>,
}

/// A database and what is in it.
struct Bench {
    engine: Box<dyn Engine>,
    schema: Schema,
}

impl Judge {
    pub fn new(matching: Matching, limits: Limits) -> Self {
        Self { matching, limits, open: Mutex::default() }
    }

    /// Holds an answer against the gold of its question.
    pub async fn judge(&self, case: &Case, answer: &Answer) -> Judged {
        if case.gold.is_empty() {
            return Judged { unjudged: Some("there is no gold query".into()), ..Judged::default() };
        }
        let bench = match self.bench(&case.database).await {
            Ok(bench) => bench,
            Err(reason) => return Judged { unjudged: Some(reason), ..Judged::default() },
        };
        let mut gold: Vec<(&str, Rows)> = Vec::new();
        let mut reason = String::new();
        for sql in &case.gold {
            match self.rows(&bench, sql).await {
                Ok(rows) if rows.truncated => reason = "the gold query gives more rows than are compared".into(),
                Ok(rows) => gold.push((sql, rows)),
                Err(error) => reason = format!("the gold query does not run: {error}"),
            }
        }
        if gold.is_empty() {
            return Judged { unjudged: Some(reason), ..Judged::default() };
        }
        let dialect = bench.engine.dialect();
        let fits = |rows: &Rows| gold.iter().any(|(sql, gold)| self.matching.same(gold, rows, sql, dialect));
        let written = answer.attempts.first().map(|attempt| attempt.sql.as_str());
        let first = match written {
            Some(sql) => self.rows(&bench, sql).await.is_ok_and(|rows| fits(&rows)),
            None => false,
        };
        let last = match (answer.status, &answer.sql, &answer.rows) {
            // Rows that were put together here have no one query that gives them again.
            (Status::Answered, _, Some(rows)) if answer.fallback => fits(rows),
            (Status::Answered, Some(sql), _) if Some(sql.as_str()) == written => first,
            (Status::Answered, Some(sql), _) => self.rows(&bench, sql).await.is_ok_and(|rows| fits(&rows)),
            _ => false,
        };
        Judged { first: Some(first), last: Some(last), unjudged: None }
    }

    /// What a query gives. It is run only as it is written: a query that must be mended to run is not the one that is judged.
    async fn rows(&self, bench: &Bench, sql: &str) -> Result<Rows, String> {
        let policy = Policy::default();
        let dialect = bench.engine.dialect();
        let context = Context { schema: Some(&bench.schema), dialect, policy: &policy, question: None };
        let approved = review(sql, &context).approve().map_err(|refused| refused.to_string())?;
        if !diff::same(approved.sql(), sql, dialect) {
            return Err("it is no query as it stands".into());
        }
        bench.engine.execute(&approved, &self.limits, &Cancel::new()).await.map_err(|error| error.to_string())
    }

    async fn bench(&self, address: &str) -> Result<Arc<Bench>, String> {
        if let Some(bench) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(address) {
            return Ok(Arc::clone(bench));
        }
        let engine = open(address).map_err(|error| error.to_string())?;
        let schema = engine.schema().await.map_err(|error| error.to_string())?;
        let bench = Arc::new(Bench { engine, schema });
        // Two questions may have opened it at once; either will do.
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_string(), Arc::clone(&bench));
        Ok(bench)
    }
}
