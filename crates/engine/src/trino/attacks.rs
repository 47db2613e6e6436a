//! Raw SQL, past the critic, straight to real servers: the second lock must hold alone, and each of its two halves too.
//!
//! What the lock does not stop: reading whatever the user may read, also in other catalogs, and functions of connectors that
//! hand a text on to a database behind them (`TABLE(postgresql.system.query(...))`), which those wrap in a query of their own.
//! That is for the critic, and for the rights of the user.

// Which servers are missing is said aloud.
#![allow(clippy::print_stderr)]

mod corpus;

use querymend_testing::{exclusive, hang_timeout};

use super::*;
use crate::Standing;

/// The servers that are there.
fn engines() -> Vec<Trino> {
    let of = |name: &str| {
        let address = std::env::var(name).ok();
        if address.is_none() {
            eprintln!("skipped: {name} is not set; scripts/engines.sh up trino presto");
        }
        address.map(|address| Trino::open(&address).unwrap())
    };
    ["QUERYMEND_TEST_TRINO", "QUERYMEND_TEST_PRESTO"].into_iter().filter_map(of).collect()
}

/// Time enough for any server on any machine.
fn limits() -> Limits {
    Limits { time: hang_timeout(), ..Limits::default() }
}

async fn ask(engine: &Trino, sql: &str) -> Vec<Vec<Cell>> {
    engine.ask(sql, hang_timeout()).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// All that a write could change.
async fn state(engine: &Trino) -> Vec<Vec<Vec<Cell>>> {
    let mut state = Vec::new();
    // Presto keeps no remarks about tables.
    let remarks = match engine.server.settings.family.scheme {
        "trino" => {
            "SELECT table_name, comment FROM system.metadata.table_comments WHERE catalog_name = 'memory' ORDER BY 1"
        }
        _ => "SELECT 1",
    };
    for sql in [
        remarks,
        "SHOW CATALOGS",
        "SHOW SESSION LIKE 'query_max%'",
        "SELECT table_schema, table_name, table_type FROM memory.information_schema.tables ORDER BY 1, 2",
        "SELECT table_schema, table_name, column_name, data_type FROM memory.information_schema.columns ORDER BY 1, 2, 3",
        "SELECT schema_name FROM memory.information_schema.schemata ORDER BY 1",
        "SELECT table_name, view_definition FROM memory.information_schema.views ORDER BY 1",
        "SELECT id, name, weight FROM memory.default.things ORDER BY id",
        "SELECT * FROM memory.default.\"größen 表\"",
        "SELECT count(*) FROM memory.other.things",
    ] {
        state.push(ask(engine, sql).await);
    }
    state
}

const WRITES: &[&str] = &[
    "INSERT INTO things VALUES (9, 'x', 1)",
    "INSERT INTO things SELECT 9, 'x', 1",
    "INSERT INTO memory.other.things WITH a AS (SELECT 'x' AS y) SELECT y FROM a",
    "DELETE FROM things",
    "DELETE FROM things WHERE id = 1",
    "UPDATE things SET name = 'x'",
    "MERGE INTO things t USING (VALUES 1) s (a) ON t.id = s.a WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE things",
    "DROP TABLE things",
    "DROP TABLE IF EXISTS things",
    "DROP VIEW heavy",
    "DROP SCHEMA other",
    "DROP SCHEMA other CASCADE",
    "CREATE TABLE x (a INTEGER)",
    "CREATE TABLE IF NOT EXISTS x (a INTEGER)",
    "CREATE TABLE x AS SELECT * FROM things",
    "CREATE TABLE tpch.tiny.x AS SELECT 1 AS a",
    "CREATE TABLE x (LIKE things)",
    "CREATE VIEW x AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW heavy AS SELECT 1 AS id",
    "CREATE MATERIALIZED VIEW x AS SELECT 1 AS a",
    "REFRESH MATERIALIZED VIEW heavy",
    "CREATE SCHEMA x",
    "ALTER SCHEMA other RENAME TO x",
    "ALTER TABLE things RENAME TO x",
    "ALTER TABLE things ADD COLUMN x INTEGER",
    "ALTER TABLE things RENAME COLUMN id TO x",
    "ALTER TABLE things DROP COLUMN weight",
    "ALTER TABLE things EXECUTE optimize",
    "ALTER VIEW heavy RENAME TO x",
    "COMMENT ON TABLE things IS 'x'",
    "COMMENT ON COLUMN things.id IS 'x'",
    "ANALYZE things",
    "GRANT ALL PRIVILEGES ON things TO somebody",
    "REVOKE SELECT ON things FROM somebody",
    "CREATE ROLE x",
    "GRANT x TO somebody",
    "CREATE FUNCTION memory.default.x() RETURNS INTEGER RETURN 1",
    "CREATE CATALOG x USING memory",
    "DROP CATALOG tpch",
    "CALL system.runtime.kill_query('x', 'y')",
    "CALL system.runtime.kill_query(query_id => 'x', message => 'y')",
    "EXPLAIN ANALYZE INSERT INTO things VALUES (9, 'x', 1)",
    "EXPLAIN ANALYZE VERBOSE CREATE TABLE x AS SELECT 1 AS a",
    "EXECUTE IMMEDIATE 'INSERT INTO things VALUES (9, ''x'', 1)'",
    "START TRANSACTION READ WRITE",
    "SELECT 1; DROP TABLE things",
    "SELECT 1;\nINSERT INTO things VALUES (9, 'x', 1);",
    "COMMIT; DROP TABLE things",
    "SELECT 1 --\r; DROP TABLE things",
    "/* SELECT */ DROP TABLE things",
    "-- SELECT 1\rDROP TABLE things",
    "WITH a AS (SELECT 1) DELETE FROM things",
    "WITH a AS (DELETE FROM things) SELECT 1",
    "SELECT * FROM (INSERT INTO things VALUES (9, 'x', 1))",
    "SELECT 1 INTO x",
];

/// They write nothing, but would change how the next query is read.
const SETTINGS: &[&str] = &[
    "SET SESSION query_max_run_time = '1ms'",
    "RESET SESSION query_max_run_time",
    "SET ROLE ALL",
    "SET PATH tpch.tiny",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET SESSION AUTHORIZATION somebody",
    "USE tpch.tiny",
    "PREPARE x FROM SELECT 1",
    "DEALLOCATE PREPARE x",
    "COMMIT",
    "ROLLBACK",
];

#[tokio::test]
async fn c01_f03_writes_are_refused_by_the_engine_alone() {
    let _lock = exclusive("trino");
    for engine in engines() {
        let before = state(&engine).await;
        for sql in WRITES {
            // What the server alone says, in its transaction.
            let outcome = engine.locked(sql, &limits(), &Cancel::new()).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{}: {sql}: {outcome:?}", engine.name());
        }
        for sql in SETTINGS {
            let outcome = engine.locked(sql, &limits(), &Cancel::new()).await;
            assert!(matches!(outcome, Ok(_) | Err(Error::Rejected(_))), "{}: {sql}: {outcome:?}", engine.name());
        }
        assert_eq!(state(&engine).await, before, "{}", engine.name());
    }
}

#[test]
fn c01_what_does_not_begin_as_a_query_is_not_even_sent() {
    let several = |sql: &&&str| !sql.starts_with("SELECT") && !sql.starts_with("WITH");
    for sql in WRITES.iter().chain(SETTINGS).filter(several) {
        assert!(lock::only_queries(sql).is_err(), "{sql}");
    }
}

#[tokio::test]
async fn f03_what_is_given_up_ends_on_the_server_too() {
    let endless = "SELECT count(*) AS marked_for_ending FROM tpch.sf1000.lineitem AS a CROSS JOIN tpch.sf1000.lineitem AS b \
                   WHERE a.comment < b.comment";
    let running = "SELECT query_id FROM system.runtime.queries WHERE state NOT IN ('FINISHED', 'FAILED') \
                   AND query LIKE '%marked_for_ending%' AND query NOT LIKE '%runtime%'";
    for engine in engines() {
        let until = async |runs: bool| {
            let wait = async {
                while ask(&engine, running).await.is_empty() == runs {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let waited = tokio::time::timeout(hang_timeout(), wait).await;
            waited.unwrap_or_else(|_| panic!("{}: whether the query runs should be {runs}", engine.name()));
        };
        let short = Limits { time: Duration::from_millis(700), ..Limits::default() };
        let outcome = engine.locked(endless, &short, &Cancel::new()).await;
        assert_eq!(outcome, Err(Error::TimedOut { after: short.time }));
        until(false).await;
        let (limits, cancel) = (Limits { time: 2 * hang_timeout(), ..Limits::default() }, Cancel::new());
        tokio::select! {
            outcome = engine.locked(endless, &limits, &cancel) => panic!("{outcome:?}"),
            () = until(true) => {}
        }
        until(false).await;
    }
}

#[test]
fn f03_each_runtime_finds_the_server_again() {
    for engine in engines() {
        for _ in 0..3 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            assert_eq!(runtime.block_on(ask(&engine, "SELECT 1")), [[Cell::Integer(1)]]);
        }
    }
}

#[tokio::test]
async fn f03_the_connection_is_looked_over() {
    for engine in engines() {
        let checks = engine.examine().await.unwrap();
        let standing = |what: &str| checks.iter().find(|check| check.what == what).map(|check| check.standing);
        assert_eq!(standing("connection"), Some(Standing::Good), "{checks:?}");
        assert_eq!(standing("read-only lock"), Some(Standing::Good), "{checks:?}");
        assert_eq!(standing("rights"), Some(Standing::Doubtful), "{checks:?}");
        assert!(!format!("{checks:?}").contains(":reader@"));
    }
}

#[tokio::test]
async fn f03_catalogs_and_schemas_are_found_or_said_not_to_be_there() {
    let _lock = exclusive("trino");
    for engine in engines() {
        let name = engine.name().to_string();
        let variable = if name.starts_with("trino") { "QUERYMEND_TEST_TRINO" } else { "QUERYMEND_TEST_PRESTO" };
        let address = std::env::var(variable).unwrap();
        for (there, not_there, said) in
            [("/memory/default", "/nowhere/default", "nowhere"), ("/memory/default", "/memory/nowhere", "nowhere")]
        {
            let engine = Trino::open(&address.replacen(there, not_there, 1)).unwrap();
            let error = engine.test_connection().await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
            assert!(error.to_string().contains(said), "{error}");
        }
        let schema = engine.schema().await.unwrap();
        let things = schema.table("things").unwrap();
        assert_eq!((schema.tables().len(), things.schema.as_deref()), (3, None));
        let remarks = (things.comment.as_deref(), things.columns[2].comment.as_deref());
        let expected = if name.starts_with("trino") { (Some("What there is"), Some("in kg")) } else { (None, None) };
        assert_eq!(remarks, expected);
        // Without a schema, all of them are known by their names.
        let engine = Trino::open(&address.replacen("/memory/default", "/memory", 1)).unwrap();
        engine.test_connection().await.unwrap();
        let schema = engine.schema().await.unwrap();
        let named: Vec<(Option<&str>, &str)> =
            schema.tables().iter().map(|table| (table.schema.as_deref(), table.name.as_str())).collect();
        assert!(
            named.contains(&(Some("default"), "things")) && named.contains(&(Some("other"), "things")),
            "{named:?}"
        );
        assert!(!named.iter().any(|(schema, _)| *schema == Some("information_schema")), "{named:?}");
    }
}

#[tokio::test]
async fn f06_without_a_certificate_that_is_trusted_nothing_is_sent() {
    for engine in engines() {
        let settings = &engine.server.settings;
        let port = settings.base.port().unwrap();
        // Its own certificate is not known; or it has none, as it does no TLS.
        let engine = Trino::open(&format!("trino://me:hunter2@127.0.0.1:{port}/memory/default?tls=true")).unwrap();
        let error = engine.test_connection().await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
        assert!(error.to_string().contains("no secure connection"), "{error}");
        assert!(error.hint().unwrap().contains("sslrootcert") && !format!("{error:?}").contains("hunter2"));
    }
}
