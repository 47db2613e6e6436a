//! How tests ask.

use querymend_engine::{Cancel, Engine, Error, Limits};
use querymend_sql::{Approved, Context, Policy, Rows, review};

/// A query that the critic lets through.
pub fn approve(engine: &dyn Engine, sql: &str) -> Approved {
    let policy = Policy::default();
    let review = review(sql, &Context { schema: None, dialect: engine.dialect(), policy: &policy, question: None });
    review.approve().unwrap_or_else(|refused| panic!("{sql}: {refused}"))
}

/// Runs a query.
pub async fn ask(engine: &dyn Engine, sql: &str) -> Result<Rows, Error> {
    engine.execute(&approve(engine, sql), &Limits::default(), &Cancel::new()).await
}
