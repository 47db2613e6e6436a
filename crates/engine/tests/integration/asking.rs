//! How tests ask and wait.

use std::time::Duration;

use querymend_engine::{Cancel, Engine, Error, Limits};
use querymend_sql::{Approved, Context, Policy, Rows, review};
use querymend_testing::hang_timeout;

/// A query that the critic lets through.
pub fn approve(engine: &dyn Engine, sql: &str) -> Approved {
    let policy = Policy::default();
    let review = review(sql, &Context { schema: None, dialect: engine.dialect(), policy: &policy, question: None });
    review.approve().unwrap_or_else(|refused| panic!("{sql}: {refused}"))
}

/// Returns the default limits with time enough for any server on any machine. What has to end in time is tested with a limit of its
/// own.
pub fn limits() -> Limits {
    Limits { time: hang_timeout(), ..Limits::default() }
}

/// Returns the default limits with more time than any test waits, for queries without end that something else than the clock has to
/// stop. A server that misses that still ends them some day.
pub fn long_limits() -> Limits {
    Limits { time: 2 * hang_timeout(), ..Limits::default() }
}

/// Runs a query.
pub async fn ask(engine: &dyn Engine, sql: &str) -> Result<Rows, Error> {
    engine.execute(&approve(engine, sql), &limits(), &Cancel::new()).await
}

/// Waits for what must come, and panics with `what` if it does not.
pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(hang_timeout(), work).await;
    done.unwrap_or_else(|_| panic!("timed out after {:?}: {what}", hang_timeout()))
}

/// Asks again and again until a condition holds, and panics with `what` if it never does.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    in_time(what, wait).await;
}
