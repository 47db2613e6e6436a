//! Scores answers by running them and the gold queries on the same database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use querymend::{Answer, AnswerStatus};
use querymend_engine::{CancelFlag, Engine, Limits, open};
use querymend_sql::{Policy, ReviewContext, Rows, Schema, diff, review};

use crate::EvalCase;
use crate::execution_match::MatchOptions;

/// Score of an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnswerScore {
    /// `true` if the first draft, as written, returns the rows of a gold query; `None` if it could
    /// not be judged.
    pub first_draft_right: Option<bool>,
    /// `true` if the answer returns the rows of a gold query; `None` if it could not be judged.
    pub answer_right: Option<bool>,
    /// Reason why the answer could not be judged; `None` if it was judged.
    pub unjudged: Option<String>,
}

/// Scorer with open databases and matching options.
pub struct AnswerScorer {
    matching: MatchOptions,
    limits: Limits,
    databases: Mutex<HashMap<String, Arc<GoldDatabase>>>,
}

/// Open database with its schema.
struct GoldDatabase {
    engine: Box<dyn Engine>,
    schema: Schema,
}

impl AnswerScorer {
    pub fn new(matching: MatchOptions, limits: Limits) -> Self {
        Self { matching, limits, databases: Mutex::default() }
    }

    /// Scores an answer against the gold queries of its question.
    pub async fn score(&self, case: &EvalCase, answer: &Answer) -> AnswerScore {
        if case.gold.is_empty() {
            return AnswerScore { unjudged: Some("there is no gold query".into()), ..AnswerScore::default() };
        }
        let database = match self.open_database(&case.database).await {
            Ok(database) => database,
            Err(reason) => return AnswerScore { unjudged: Some(reason), ..AnswerScore::default() },
        };
        let mut gold: Vec<(&str, Rows)> = Vec::new();
        let mut reason = String::new();
        for sql in &case.gold {
            match self.run_query(&database, sql).await {
                Ok(rows) if rows.truncated => reason = "the gold query gives more rows than are compared".into(),
                Ok(rows) => gold.push((sql, rows)),
                Err(error) => reason = format!("the gold query does not run: {error}"),
            }
        }
        if gold.is_empty() {
            return AnswerScore { unjudged: Some(reason), ..AnswerScore::default() };
        }
        let dialect = database.engine.dialect();
        let matches_gold =
            |rows: &Rows| gold.iter().any(|(sql, gold)| self.matching.rows_match(gold, rows, sql, dialect));
        let written = answer.attempts.first().map(|attempt| attempt.sql.as_str());
        let first = match written {
            Some(sql) => self.run_query(&database, sql).await.is_ok_and(|rows| matches_gold(&rows)),
            None => false,
        };
        let last = match (answer.status, &answer.sql, &answer.rows) {
            // Fallback rows are combined locally; no single query reproduces them.
            (AnswerStatus::Answered, _, Some(rows)) if answer.fallback => matches_gold(rows),
            (AnswerStatus::Answered, Some(sql), _) if Some(sql.as_str()) == written => first,
            (AnswerStatus::Answered, Some(sql), _) => {
                self.run_query(&database, sql).await.is_ok_and(|rows| matches_gold(&rows))
            }
            _ => false,
        };
        AnswerScore { first_draft_right: Some(first), answer_right: Some(last), unjudged: None }
    }

    /// Runs a query exactly as written: a query that needs a repair to run is not the one to judge.
    async fn run_query(&self, database: &GoldDatabase, sql: &str) -> Result<Rows, String> {
        let policy = Policy::default();
        let dialect = database.engine.dialect();
        let context = ReviewContext { schema: Some(&database.schema), dialect, policy: &policy, question: None };
        let approved = review(sql, &context).approve().map_err(|refused| refused.to_string())?;
        if !diff::is_same_query(approved.sql(), sql, dialect) {
            return Err("it is not a valid query".into());
        }
        database.engine.execute(&approved, &self.limits, &CancelFlag::new()).await.map_err(|error| error.to_string())
    }

    async fn open_database(&self, address: &str) -> Result<Arc<GoldDatabase>, String> {
        if let Some(database) = self.databases.lock().unwrap_or_else(PoisonError::into_inner).get(address) {
            return Ok(Arc::clone(database));
        }
        let engine = open(address).map_err(|error| error.to_string())?;
        let schema = engine.schema().await.map_err(|error| error.to_string())?;
        let database = Arc::new(GoldDatabase { engine, schema });
        // Two questions may have opened the database concurrently; either instance is fine.
        self.databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(address.to_string(), Arc::clone(&database));
        Ok(database)
    }
}
