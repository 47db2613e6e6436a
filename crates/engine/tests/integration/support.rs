//! How tests find servers, ask and wait.

use std::time::Duration;

use querymend_engine::{CancelFlag, Engine, Error, Limits};
use querymend_sql::{Approved, Policy, ReviewContext, Rows, review};
use querymend_testing::hang_timeout;

/// Folder with a script for each server.
pub const ENGINE_SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/engines");

/// Returns whether `QUERYMEND_TEST_ENGINES` includes a database. It includes all if it is empty.
pub fn is_wanted(name: &str) -> bool {
    let list = std::env::var("QUERYMEND_TEST_ENGINES").unwrap_or_default();
    let mut names = list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).peekable();
    let is_wanted = names.peek().is_none() || names.any(|entry| entry == name);
    if !is_wanted {
        eprintln!("skipped on {name}: QUERYMEND_TEST_ENGINES leaves it out");
    }
    is_wanted
}

/// Returns the address of a server of the tests, if it is wanted and running.
///
/// On CI it must be running, except one that is started on request only.
pub fn address(name: &str) -> Option<String> {
    if !is_wanted(name) {
        return None;
    }
    let address = std::env::var(format!("QUERYMEND_TEST_{}", name.to_uppercase())).ok();
    if address.is_none() {
        let script = std::fs::read_to_string(format!("{ENGINE_SCRIPTS}/{name}.sh")).unwrap();
        let is_required = std::env::var_os("CI").is_some() && !script.contains("\n# Started on request only.\n");
        assert!(!is_required, "{name} is not there; scripts/engines.sh up {name}");
        eprintln!("skipped on {name}: it is not there; scripts/engines.sh up {name}");
    }
    address
}

/// A query that the critic lets through.
pub fn approve(engine: &dyn Engine, sql: &str) -> Approved {
    let policy = Policy::default();
    let review =
        review(sql, &ReviewContext { schema: None, dialect: engine.dialect(), policy: &policy, question: None });
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
    engine.execute(&approve(engine, sql), &limits(), &CancelFlag::new()).await
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
