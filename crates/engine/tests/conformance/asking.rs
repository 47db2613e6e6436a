//! How tests ask.

use std::time::Duration;

use querymend_engine::{Cancel, Engine, Error, Limits};
use querymend_sql::{Approved, Context, Policy, Rows, review};

/// A query that the critic lets through.
pub fn approve(engine: &dyn Engine, sql: &str) -> Approved {
    let policy = Policy::default();
    let review = review(sql, &Context { schema: None, dialect: engine.dialect(), policy: &policy, question: None });
    review.approve().unwrap_or_else(|refused| panic!("{sql}: {refused}"))
}

/// Long enough for any server on any machine; what has to end in time is tested with a limit of its own.
const PATIENT: Duration = Duration::from_secs(300);

/// Runs a query.
pub async fn ask(engine: &dyn Engine, sql: &str) -> Result<Rows, Error> {
    let limits = Limits { time: PATIENT, ..Limits::default() };
    engine.execute(&approve(engine, sql), &limits, &Cancel::new()).await
}
