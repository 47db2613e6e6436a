//! The tables of a database may change while it is being asked.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use querymend::{Config, Querymend, Status};
use querymend_model::Script;
use rusqlite::Connection;

const CITY: &str = "SELECT city FROM shops WHERE city = 'Bonn'";
const TOWN: &str = "SELECT town FROM shops WHERE town = 'Bonn'";

fn change(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

fn asking(file: &Path, said: &[&str], config: Config) -> Querymend {
    let engine = querymend_engine::open(&file.to_string_lossy()).unwrap();
    Querymend::new(Arc::from(engine), Arc::new(Script::new(said.iter().copied())), config)
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
    let querymend = asking(&file, &[CITY, CITY, TOWN], config);
    assert_eq!(querymend.ask("Which shops are in Bonn?").await.status, Status::Answered);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    change(&file, "ALTER TABLE shops RENAME COLUMN city TO town");
    // Nothing has shown yet that anything has changed.
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    // Not at once: a database that always disagrees is not read all the time.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_ne!(querymend.ask("Which shops are in Bonn?").await.status, Status::Answered);
    assert_eq!(names(&querymend).await, ["shops.id", "shops.town"]);
    assert_eq!(querymend.ask("Which shops are in Bonn?").await.status, Status::Answered);
}

#[tokio::test]
async fn q01_tables_that_have_become_old_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shops.db");
    change(&file, "CREATE TABLE shops (id INTEGER PRIMARY KEY, city TEXT)");
    let querymend = asking(&file, &[CITY], Config::default().with_schema_age(Duration::from_millis(50)));
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city"]);
    let before = querymend.schema().await.unwrap();
    tokio::time::sleep(Duration::from_millis(80)).await;
    // What is the same stays the same, with all that was learned about it.
    assert!(Arc::ptr_eq(&before, &querymend.schema().await.unwrap()));
    change(&file, "CREATE TABLE staff (name TEXT)");
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(names(&querymend).await, ["shops.id", "shops.city", "staff.name"]);
}
