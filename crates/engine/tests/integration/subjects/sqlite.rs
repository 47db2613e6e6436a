//! SQLite.

use querymend_sql::Cell;

use super::{Kinds, Subject};

/// `(1, 'one', 1.5)`, `(2, 'zwölf O''Clock', NULL)`, `(3, NULL, -0.25)`, and a table whose names are of other scripts.
const TABLES: &str = "CREATE TABLE things (id INTEGER PRIMARY KEY, name VARCHAR(40), weight DOUBLE PRECISION);
    INSERT INTO things VALUES (1, 'one', 1.5), (2, 'zwölf O''Clock', NULL), (3, NULL, -0.25);
    CREATE TABLE \"größen 表\" (\"naïve col\" INTEGER, \"Σ\" INTEGER); INSERT INTO \"größen 表\" VALUES (7, 8);";

pub fn subject() -> Option<Subject> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("things.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch(TABLES).unwrap();
    Some(Subject {
        name: "sqlite",
        address: format!("sqlite:{}", file.display()),
        endless: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        flood: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, 'padding' FROM n",
        kinds: Kinds {
            largest_integer: "SELECT 9223372036854775807",
            smallest_integer: "SELECT -9223372036854775807 - 1",
            decimal: None,
            float: "SELECT 0.1",
            text: "SELECT 'Ελληνικά, עברית, 日本語, 🦀 and O''Clock'",
            date: Some("SELECT date('2024-02-29')"),
            time: None,
            timestamp: Some("SELECT '2024-02-29 13:14:15.678'"),
            zoned: None,
            truth: None,
            null: "SELECT NULL",
            bytes: Some("SELECT x'0FA0'"),
            list: Some("SELECT json_array(1, 2, NULL)"),
            json: Some("SELECT json_object('a', json_array(1, 'x'))"),
            own: vec![("SELECT 9e999", Cell::Number(f64::INFINITY))],
        },
        has_keys: true,
        server: None,
        folder: Some(folder),
    })
}
