//! The tables of a database may change while it is being asked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use querymend::resilience::{Breakers, ManualClock};
use querymend::{AnswerStatus, Config, Querymend};
use querymend_model::ScriptedModel;
use querymend_testing::hang_timeout;
use rusqlite::Connection;

const CITY: &str = "SELECT city FROM shops WHERE city = 'Bonn'";
const TOWN: &str = "SELECT town FROM shops WHERE town = 'Bonn'";
/// `SOONEST` in `src/known.rs`.
const SOONEST: Duration = Duration::from_secs(2);

fn change(file: &Path, sql: &str) {
    let connection = Connection::open(file).unwrap();
    // Values may still be read in the background.
    connection.busy_timeout(hang_timeout()).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// With a clock that stands still until it is moved.
fn asking(file: &Path, said: &[&str], config: Config) -> (Querymend, Arc<ManualClock>) {
    let engine = querymend_engine::open(&file.to_string_lossy()).unwrap();
    let clock = Arc::new(ManualClock::new());
    let breakers = Arc::new(Breakers::new(config.circuit_breaker).with_clock(clock.clone()));
    let script = Arc::new(ScriptedModel::new(said.iter().copied()));
    (Querymend::with_shared_breakers(Arc::from(engine), script, config, breakers), clock)
}

async fn names(querymend: &Querymend) -> Vec<String> {
    let schema = querymend.schema().await.unwrap();
    schema.tables().iter().flat_map(|t| t.columns.iter().map(|c| format!("{}.{}", t.name, c.name))).collect()
}

#[tokio::test]
async fn reloads_schema_after_the_database_rejects_a_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shops.db");
    change(&file, "CREATE TABLE shops (id INTEGER PRIMARY KEY, city TEXT); INSERT INTO shops VALUES (1, 'Bonn')");
    let config = Config::default().with_max_attempts(1);
    let (querymend, clock) = asking(&file, &[CITY, CITY, TOWN], config);
    assert_eq!(querymend.ask("Which shops are in Bonn?").await.status, AnswerStatus::Answered);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    change(&file, "ALTER TABLE shops RENAME COLUMN city TO town");
    // Nothing has shown yet that anything has changed.
    clock.advance(SOONEST / 2);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    assert_ne!(querymend.ask("Which shops are in Bonn?").await.status, AnswerStatus::Answered);
    // Not at once: a database that always disagrees is not read all the time.
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    clock.advance(SOONEST / 2);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.town"]);
    assert_eq!(querymend.ask("Which shops are in Bonn?").await.status, AnswerStatus::Answered);
}

#[tokio::test]
async fn reloads_schema_after_its_ttl() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shops.db");
    change(&file, "CREATE TABLE shops (id INTEGER PRIMARY KEY, city TEXT)");
    let age = Duration::from_secs(60);
    let (querymend, clock) = asking(&file, &[CITY], Config::default().with_schema_cache_ttl(age));
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    let before = querymend.schema().await.unwrap();
    clock.advance(age);
    // What is the same stays the same, with all that was learned about it.
    assert!(Arc::ptr_eq(&before, &querymend.schema().await.unwrap()));
    change(&file, "CREATE TABLE staff (name TEXT)");
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"], "they are not old yet");
    clock.advance(age);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city", "staff.name"]);
}
