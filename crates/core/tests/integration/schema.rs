//! The tables of a database may change while it is being asked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use querymend::guard::{Breakers, ManualClock};
use querymend::{Config, Querymend, Status};
use querymend_model::Script;
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
    let script = Arc::new(Script::new(said.iter().copied()));
    (Querymend::guarded(Arc::from(engine), script, config, breakers), clock)
}

async fn names(querymend: &Querymend) -> Vec<String> {
    let schema = querymend.schema().await.unwrap();
    schema.tables().iter().flat_map(|t| t.columns.iter().map(|c| format!("{}.{}", t.name, c.name))).collect()
}

#[tokio::test]
async fn q01_a_table_that_the_database_has_changed_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shops.db");
    change(&file, "CREATE TABLE shops (id INTEGER PRIMARY KEY, city TEXT); INSERT INTO shops VALUES (1, 'Bonn')");
    let config = Config::default().with_max_attempts(1);
    let (querymend, clock) = asking(&file, &[CITY, CITY, TOWN], config);
    assert_eq!(querymend.ask("Which shops are in Bonn?").await.status, Status::Answered);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    change(&file, "ALTER TABLE shops RENAME COLUMN city TO town");
    // Nothing has shown yet that anything has changed.
    clock.advance(SOONEST / 2);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    assert_ne!(querymend.ask("Which shops are in Bonn?").await.status, Status::Answered);
    // Not at once: a database that always disagrees is not read all the time.
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    clock.advance(SOONEST / 2);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.town"]);
    assert_eq!(querymend.ask("Which shops are in Bonn?").await.status, Status::Answered);
}

#[tokio::test]
async fn q01_tables_that_have_become_old_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shops.db");
    change(&file, "CREATE TABLE shops (id INTEGER PRIMARY KEY, city TEXT)");
    let age = Duration::from_secs(60);
    let (querymend, clock) = asking(&file, &[CITY], Config::default().with_schema_age(age));
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
