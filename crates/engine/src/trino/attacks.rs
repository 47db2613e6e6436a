//! Attacks with raw SQL that bypasses query review.
//!
//! It is sent to real servers: the read-only enforcement must hold on its own, and so must each of
//! its two parts.
//!
//! It does not prevent reading everything that the user may read, also in other catalogs, or
//! functions of connectors that pass SQL through to an underlying database
//! (`TABLE(postgresql.system.query(...))`), which wrap it in a query of their own. These are left
//! to query review and to the privileges of the user.

// Tests report missing servers on stderr.
#![allow(clippy::print_stderr)]

use std::time::Instant;

use futures_util::StreamExt;
use querymend_sql::EngineError;
use querymend_sql::dialect::TRINO as DIALECT;
use querymend_testing::is_full_suite;
use querymend_testing::{hang_timeout, lock_server};

use super::*;
use crate::CheckStatus;
use crate::attack_corpus::{AttackTally, RejectionReason, load_server_corpus};

/// Returns engines for the available test servers.
fn test_engines() -> Vec<TrinoEngine> {
    let of = |name: &str| {
        let address = std::env::var(name).ok();
        if address.is_none() {
            eprintln!("skipped: {name} is not set; scripts/engines.sh up trino presto");
        }
        address.map(|address| TrinoEngine::open(&address).unwrap())
    };
    ["QUERYMEND_TEST_TRINO", "QUERYMEND_TEST_PRESTO"].into_iter().filter_map(of).collect()
}

/// Returns limits that are sufficient for any server on any machine.
fn limits() -> Limits {
    Limits { time: hang_timeout(), ..Limits::default() }
}

async fn query_rows(engine: &TrinoEngine, sql: &str) -> Vec<Vec<Cell>> {
    engine.query_all(sql, hang_timeout()).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Returns all state that a write could change.
async fn server_state(engine: &TrinoEngine) -> Vec<Vec<Vec<Cell>>> {
    let mut state = Vec::new();
    // Presto has no table comments.
    let remarks = match engine.client.settings.flavor.scheme {
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
        state.push(query_rows(engine, sql).await);
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

/// Statements that write nothing, but would change how the next query is interpreted.
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
async fn rejects_writes_that_bypass_the_review() {
    let _lock = lock_server("trino");
    for engine in test_engines() {
        let before = server_state(&engine).await;
        for sql in WRITES {
            // Bypasses the keyword check to test the server's transaction alone.
            let outcome = engine.execute_read_only(sql, &limits(), &CancelFlag::new()).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{}: {sql}: {outcome:?}", engine.name());
        }
        for sql in SETTINGS {
            let outcome = engine.execute_read_only(sql, &limits(), &CancelFlag::new()).await;
            assert!(matches!(outcome, Ok(_) | Err(Error::Rejected(_))), "{}: {sql}: {outcome:?}", engine.name());
        }
        assert_eq!(server_state(&engine).await, before, "{}", engine.name());
    }
}

#[test]
fn never_sends_text_that_does_not_begin_as_a_query() {
    let several = |sql: &&&str| !sql.starts_with("SELECT") && !sql.starts_with("WITH");
    for sql in WRITES.iter().chain(SETTINGS).filter(several) {
        assert!(read_only::check_is_query(sql).is_err(), "{sql}");
    }
}

#[tokio::test]
async fn abandoned_queries_end_on_the_server() {
    let endless = "SELECT count(*) AS marked_for_ending FROM tpch.sf1000.lineitem AS a CROSS JOIN tpch.sf1000.lineitem AS b \
                   WHERE a.comment < b.comment";
    let running = "SELECT query_id FROM system.runtime.queries WHERE state NOT IN ('FINISHED', 'FAILED') \
                   AND query LIKE '%marked_for_ending%' AND query NOT LIKE '%runtime%'";
    for engine in test_engines() {
        let until = async |runs: bool| {
            let wait = async {
                while query_rows(&engine, running).await.is_empty() == runs {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let waited = tokio::time::timeout(hang_timeout(), wait).await;
            waited.unwrap_or_else(|_| panic!("{}: whether the query runs should be {runs}", engine.name()));
        };
        let short = Limits { time: Duration::from_millis(700), ..Limits::default() };
        let outcome = engine.execute_read_only(endless, &short, &CancelFlag::new()).await;
        assert_eq!(outcome, Err(Error::TimedOut { after: short.time }));
        until(false).await;
        let (limits, cancel) = (Limits { time: 2 * hang_timeout(), ..Limits::default() }, CancelFlag::new());
        tokio::select! {
            outcome = engine.execute_read_only(endless, &limits, &cancel) => panic!("{outcome:?}"),
            () = until(true) => {}
        }
        until(false).await;
    }
}

#[test]
fn reconnects_in_each_new_runtime() {
    for engine in test_engines() {
        for _ in 0..3 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            assert_eq!(runtime.block_on(query_rows(&engine, "SELECT 1")), [[Cell::Integer(1)]]);
        }
    }
}

#[tokio::test]
async fn checks_connection_health() {
    for engine in test_engines() {
        let checks = engine.check_health().await.unwrap();
        let standing = |what: &str| checks.iter().find(|check| check.name == what).map(|check| check.status);
        assert_eq!(standing("connection"), Some(CheckStatus::Passed), "{checks:?}");
        assert_eq!(standing("read-only"), Some(CheckStatus::Passed), "{checks:?}");
        assert_eq!(standing("rights"), Some(CheckStatus::Warning), "{checks:?}");
        assert!(!format!("{checks:?}").contains(":reader@"));
    }
}

#[tokio::test]
async fn finds_catalogs_and_schemas_or_reports_them_missing() {
    let _lock = lock_server("trino");
    for engine in test_engines() {
        let name = engine.name().to_string();
        let variable = if name.starts_with("trino") { "QUERYMEND_TEST_TRINO" } else { "QUERYMEND_TEST_PRESTO" };
        let address = std::env::var(variable).unwrap();
        for (there, not_there, expected) in
            [("/memory/default", "/nowhere/default", "nowhere"), ("/memory/default", "/memory/nowhere", "nowhere")]
        {
            let engine = TrinoEngine::open(&address.replacen(there, not_there, 1)).unwrap();
            let error = engine.test_connection().await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        let schema = engine.schema().await.unwrap();
        let things = schema.table("things").unwrap();
        assert_eq!((schema.tables().len(), things.schema.as_deref()), (3, None));
        let remarks = (things.comment.as_deref(), things.columns[2].comment.as_deref());
        let expected = if name.starts_with("trino") { (Some("What there is"), Some("in kg")) } else { (None, None) };
        assert_eq!(remarks, expected);
        // Without a schema in the address, all of them are visible.
        let engine = TrinoEngine::open(&address.replacen("/memory/default", "/memory", 1)).unwrap();
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
async fn sends_nothing_without_a_trusted_certificate() {
    for engine in test_engines() {
        let settings = &engine.client.settings;
        let port = settings.base_url.port().unwrap();
        // The server's certificate is unknown, or it does not support TLS at all.
        let engine =
            TrinoEngine::open(&format!("trino://me:hunter2@127.0.0.1:{port}/memory/default?tls=true")).unwrap();
        let error = engine.test_connection().await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
        assert!(error.to_string().contains("cannot establish a TLS connection"), "{error}");
        assert!(error.hint().unwrap().contains("sslrootcert") && !format!("{error:?}").contains("hunter2"));
    }
}

// Attack corpus on Trino.
//
// It is sent once by the engine, and once to the server's transaction alone.

/// Number of tables to create; the server is slow at it.
const MAX_TABLES: usize = 60;
/// Number of tables in a quick run, which also sends only part of the statements.
const MAX_QUICK_TABLES: usize = 24;
/// Number of concurrent statements.
const CONCURRENCY: usize = 8;

fn rejection_reason(error: &EngineError) -> RejectionReason {
    match error.code.as_str() {
        "READ_ONLY_VIOLATION" => RejectionReason::ReadOnly,
        _ => RejectionReason::InvalidQuery,
    }
}

/// Runs a statement, and retries while the server is overloaded.
async fn execute_with_retry(
    engine: &TrinoEngine,
    sql: &str,
    limits: &Limits,
    cancel: &CancelFlag,
) -> Result<Rows, Error> {
    let begun = Instant::now();
    loop {
        let outcome = engine.execute_read_only(sql, limits, cancel).await;
        let is_busy = matches!(outcome, Err(Error::Unavailable { transient: true, .. }));
        if !is_busy || begun.elapsed() > hang_timeout() {
            return outcome;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn drop_corpus_tables(engine: &TrinoEngine) {
    let there = "SELECT schema_name FROM memory.information_schema.schemata WHERE schema_name = 'corpus'";
    if query_rows(engine, there).await.is_empty() {
        return;
    }
    for row in
        query_rows(engine, "SELECT table_name FROM memory.information_schema.tables WHERE table_schema = 'corpus'")
            .await
    {
        let Some(Cell::Text(name)) = row.first() else { continue };
        query_rows(engine, &format!("DROP TABLE memory.corpus.{}", DIALECT.quote_identifier(name))).await;
    }
    query_rows(engine, "DROP SCHEMA memory.corpus").await;
}

#[tokio::test]
async fn corpus_writes_nothing_to_trino() {
    let Some(corpus) = load_server_corpus() else { return };
    let _lock = lock_server("trino");
    for admin in test_engines().into_iter().filter(|engine| engine.client.settings.flavor.scheme == "trino") {
        drop_corpus_tables(&admin).await;
        query_rows(&admin, "CREATE SCHEMA memory.corpus").await;
        let tables = corpus.largest_tables(if is_full_suite() { MAX_TABLES } else { MAX_QUICK_TABLES });
        for (name, columns) in &tables {
            let columns: Vec<String> =
                columns.iter().take(40).map(|column| format!("{} VARCHAR", DIALECT.quote_identifier(column))).collect();
            query_rows(
                &admin,
                &format!("CREATE TABLE memory.corpus.{} ({})", DIALECT.quote_identifier(name), columns.join(", ")),
            )
            .await;
        }
        let counts: Vec<String> = tables
            .iter()
            .map(|(name, _)| {
                format!(
                    "SELECT {}, count(*) FROM memory.corpus.{}",
                    introspect::quote_literal(name),
                    DIALECT.quote_identifier(name)
                )
            })
            .collect();
        let counts = format!("{} ORDER BY 1", counts.join(" UNION ALL "));
        let before = (server_state(&admin).await, query_rows(&admin, &counts).await);
        let address = std::env::var("QUERYMEND_TEST_TRINO").unwrap().replacen("/memory/default", "/memory/corpus", 1);
        let engine = TrinoEngine::open(&address).unwrap();
        let limits = Limits { time: Duration::from_secs(20), ..Limits::default() };
        let cancel = CancelFlag::new();
        for (what, sends_all) in [("trino", false), ("trino, its transaction alone", true)] {
            let (engine, limits, cancel) = (&engine, &limits, &cancel);
            let send = |sql: &'_ String| {
                let sql = sql.clone();
                async move {
                    let outcome = match read_only::check_is_query(&sql) {
                        Err(refused) if !sends_all => Err(refused),
                        _ => execute_with_retry(engine, &sql, limits, cancel).await,
                    };
                    (sql, outcome)
                }
            };
            let sent: Vec<String> = corpus.all_statements().cloned().collect();
            let outcomes: Vec<(String, Result<Rows, Error>)> =
                futures_util::stream::iter(sent.iter().map(send)).buffer_unordered(CONCURRENCY).collect().await;
            let mut tally = AttackTally::default();
            for (sql, outcome) in &outcomes {
                tally.record(sql, outcome, rejection_reason);
            }
            tally.report(what);
            if !sends_all {
                assert!(!tally.executed.iter().any(|sql| corpus.statements.contains(sql)), "{:?}", tally.executed);
            }
            assert_eq!((server_state(&admin).await, query_rows(&admin, &counts).await), before);
        }
        drop_corpus_tables(&admin).await;
    }
}
