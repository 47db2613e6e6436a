#![allow(clippy::print_stderr)]
//! Attacks with raw SQL that bypasses query review: the read-only enforcement must hold on its own.
//!
//! It cannot reject effects that look like an ordinary query to Spark: those of functions that were
//! registered on the server, and those of existing views. Query review does not treat either as
//! safe.

use std::sync::Arc;
use std::time::Duration;

use querymend_sql::Cell;
use querymend_sql::EngineError;
use querymend_sql::dialect::SPARK;
use querymend_testing::{hang_timeout, lock_server};

use super::*;
use crate::attack_corpus::{AttackTally, RejectionReason, load_server_corpus};

/// Connects to the test server, if there is one.
fn spark_engine() -> Option<HiveEngine> {
    let Ok(address) = std::env::var("QUERYMEND_TEST_SPARK") else {
        eprintln!("skipped on spark: it is not there; scripts/engines.sh up spark");
        return None;
    };
    Some(HiveEngine::open(&address).unwrap())
}

/// Runs SQL as `Engine::execute` runs an approved query.
fn execute_raw(engine: &HiveEngine, sql: &str) -> Result<Rows, Error> {
    let stop = Deadline::new(hang_timeout(), CancelFlag::new());
    engine.pool.with_session(&stop, |session, stop| {
        read_only::execute(session, sql, &Limits::default(), stop).map(|gathered| gathered.collector.into_rows())
    })
}

/// Probes SQL as `Engine::probe` does.
fn probe_raw(engine: &HiveEngine, sql: &str) -> Result<(), Error> {
    let stop = Deadline::new(hang_timeout(), CancelFlag::new());
    engine.pool.with_session(&stop, |session, stop| read_only::probe(session, sql, stop))
}

/// Runs a statement without read-only enforcement, to inspect the server's state.
fn run_unchecked(engine: &HiveEngine, sql: &str) -> Vec<Vec<Cell>> {
    let stop = Deadline::new(hang_timeout(), CancelFlag::new());
    let rows = engine.pool.with_session(&stop, |session, stop| {
        let operation = session.execute(sql, stop)?;
        let gathered = session.fetch_rows(&operation, &Limits::default(), stop)?;
        session.release_operation(&operation, false);
        Ok(gathered.collector.into_rows().rows)
    });
    rows.unwrap()
}

fn server_state(engine: &HiveEngine) -> Vec<Vec<Vec<Cell>>> {
    [
        "SHOW DATABASES",
        "SHOW TABLES",
        "SHOW VIEWS",
        "SHOW USER FUNCTIONS",
        "DESCRIBE things",
        "SELECT * FROM things ORDER BY id",
        "SET",
        "LIST JARS",
    ]
    .iter()
    .map(|sql| run_unchecked(engine, sql))
    .collect()
}

#[test]
fn rejects_writes_that_bypass_the_review() {
    let Some(engine) = spark_engine() else { return };
    let _lock = lock_server("spark");
    let before = server_state(&engine);
    for sql in [
        "INSERT INTO things VALUES (4, 'x', 1)",
        "INSERT OVERWRITE things SELECT * FROM things WHERE false",
        "INSERT OVERWRITE DIRECTORY '/tmp/querymend-attack' USING csv SELECT 1",
        "INSERT OVERWRITE LOCAL DIRECTORY '/tmp/querymend-attack' SELECT 1",
        "WITH x AS (SELECT 4 AS id, 'x' AS name, 1 AS weight) INSERT INTO things SELECT * FROM x",
        "FROM things INSERT INTO things SELECT *",
        "FROM things INSERT INTO things SELECT * INSERT INTO things SELECT *",
        "UPDATE things SET name = ''",
        "DELETE FROM things",
        "MERGE INTO things USING things AS u ON things.id = u.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE things",
        "DROP TABLE things",
        "DROP DATABASE default CASCADE",
        "ALTER TABLE things RENAME TO thongs",
        "ALTER TABLE things ADD COLUMNS (x INT)",
        "ALTER TABLE things SET TBLPROPERTIES ('a' = 'b')",
        "ALTER DATABASE default SET DBPROPERTIES ('a' = 'b')",
        "COMMENT ON TABLE things IS 'x'",
        "CREATE TABLE attack (x INT)",
        "CREATE TABLE attack AS SELECT * FROM things",
        "CREATE EXTERNAL TABLE attack (x STRING) LOCATION '/etc'",
        "CREATE DATABASE attack",
        "CREATE VIEW attack AS SELECT 1",
        "CREATE TEMPORARY VIEW attack AS SELECT 1",
        "CREATE GLOBAL TEMPORARY VIEW attack AS SELECT 1",
        "CREATE TEMPORARY VIEW attack USING csv OPTIONS (path '/etc/passwd')",
        "CREATE FUNCTION attack AS 'java.lang.Object'",
        "CREATE TEMPORARY FUNCTION attack AS 'java.lang.Object'",
        "DROP TEMPORARY FUNCTION reflect",
        "CREATE OR REPLACE TEMPORARY FUNCTION reflect AS 'org.apache.hadoop.hive.ql.udf.UDFLength'",
        "LOAD DATA LOCAL INPATH '/etc/passwd' INTO TABLE things",
        "CACHE TABLE things",
        "CACHE TABLE attack AS SELECT 1",
        "UNCACHE TABLE IF EXISTS things",
        "CLEAR CACHE",
        "REFRESH TABLE things",
        "REFRESH '/tmp'",
        "ANALYZE TABLE things COMPUTE STATISTICS",
        "MSCK REPAIR TABLE things",
        "SET spark.sql.runSQLOnFiles=true",
        "SET spark.sql.variable.substitute=true",
        "SET spark.sql.ansi.doubleQuotedIdentifiers=true",
        "SET TIME ZONE 'Europe/Berlin'",
        "SET",
        "RESET",
        "RESET spark.sql.runSQLOnFiles",
        "USE global_temp",
        "ADD JAR /tmp/x.jar",
        "ADD FILE /etc/passwd",
        "LIST JARS",
        "DFS -rm -r /",
        "!touch /tmp/querymend-attack",
        "EXPLAIN INSERT INTO things VALUES (4, 'x', 1)",
        "EXPLAIN SELECT 1",
        "DESCRIBE things",
        "SHOW TABLES",
        "SHOW CREATE TABLE things",
        "GRANT ALL ON things TO PUBLIC",
        "EXECUTE IMMEDIATE 'DROP TABLE things'",
        "BEGIN DROP TABLE things; END",
        "DECLARE VARIABLE x INT",
        // Multiple statements, and attempts to escape from the subquery.
        "SELECT 1; DROP TABLE things",
        "SELECT 1;;DROP TABLE things;",
        "SELECT 1) ; DROP TABLE things --",
        "SELECT 1); DROP TABLE things; SELECT * FROM (SELECT 1",
        "SELECT 1) INSERT INTO things SELECT * FROM (SELECT 4, 'x', 1",
        "SELECT 1 /*",
        "SELECT 1 -- \\",
        "SELECT 1 */ ; DROP TABLE things /*",
        "(SELECT 1) INSERT INTO things",
        "SELECT * INTO attack FROM things",
        ") SELECT 1",
        "",
        " ; ",
        "-- nothing",
        "SELECT 1\0",
    ] {
        for outcome in [execute_raw(&engine, sql).map(drop), probe_raw(&engine, sql)] {
            // Some are malformed queries, which the probe sends in another form; none may run.
            let harmless = outcome.is_ok() && sql.starts_with("SELECT 1 -- ");
            assert!(harmless || matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
        }
    }
    assert_eq!(server_state(&engine), before);
    assert!(!std::path::Path::new("/tmp/querymend-attack").exists());
}

#[test]
fn blocks_access_to_server_code_files_and_variables() {
    let Some(engine) = spark_engine() else { return };
    let _lock = lock_server("spark");
    let before = server_state(&engine);
    for sql in [
        "SELECT reflect('java.lang.System', 'setProperty', 'querymend.attack', 'x')",
        "SELECT java_method('java.lang.System', 'getProperty', 'user.home')",
        "SELECT `REFLECT`('java.lang.System', 'getProperty', 'user.home')",
        "SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')",
        "SELECT system.builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
        "SELECT builtin.java_method('java.lang.System', 'getProperty', 'user.home')",
        "SELECT spark_catalog.default.reflect('java.lang.System', 'getProperty', 'user.home')",
        "SELECT IDENTIFIER('java_' || 'method')('java.lang.System', 'getProperty', 'user.home')",
        "SELECT * FROM VALUES (java_method('java.lang.System', 'getProperty', 'user.home'))",
        "SELECT id FROM things WHERE reflect('java.lang.System', 'getProperty', 'user.home') <> ''",
        "SELECT reflect2('a', 'length')",
        "SELECT in_file('a', '/etc/passwd')",
        "SELECT TRANSFORM (id) USING 'cat' AS (x) FROM things",
        // Characters whose uppercase form is S or I: the server uppercases SQL before it recognizes
        // keywords.
        "SELECT TRANSFORM (id) U\u{17f}ING 'cat' AS (x STRING) FROM things",
        "SELECT TRANSFORM (id) us\u{131}ng 'cat' AS (x STRING) FROM things",
        "SELECT TRANSFORM/**/(id) USING 'touch /tmp/querymend-attack' AS x FROM things",
        "SELECT * FROM (SELECT transform(id) using 'cat' AS x FROM things) AS t",
        "FROM things MAP id USING 'cat' AS x",
        "FROM things REDUCE id USING 'cat' AS x",
        "WITH t AS (SELECT TRANSFORM (id) USING 'cat' AS x FROM things) SELECT count(*) FROM t",
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM text.`file:///etc/passwd`",
        "SELECT * FROM binaryFile.`/etc`",
        "SELECT * FROM parquet.`/tmp`",
        "SELECT * FROM spark_catalog.text.`/etc/passwd`",
    ] {
        let outcome = execute_raw(&engine, sql);
        let Err(Error::Rejected(error)) = outcome else { panic!("{sql}: {outcome:?}") };
        // Spark itself would run these.
        assert_eq!(
            error.message.contains("through programs"),
            sql.to_uppercase().contains(" USING '"),
            "{sql}: {error:?}"
        );
    }
    let text = "${env:PATH} ${system:user.home} ${spark.sql.warehouse.dir}";
    assert_eq!(execute_raw(&engine, &format!("SELECT '{text}'")).unwrap().rows, [[Cell::Text(text.into())]]);
    assert_eq!(server_state(&engine), before);
    assert!(!std::path::Path::new("/tmp/querymend-attack").exists());
}

#[test]
fn runs_unusual_queries_unchanged() {
    let Some(engine) = spark_engine() else { return };
    for (sql, rows) in [
        ("SELECT 1 ; ", vec![1]),
        ("SELECT 1 -- said", vec![1]),
        ("(SELECT 1)", vec![1]),
        ("VALUES (1), (2)", vec![1, 2]),
        ("WITH x AS (SELECT 3 AS a) SELECT a FROM x", vec![3]),
        ("SELECT id FROM things ORDER BY id DESC", vec![3, 2, 1]),
        ("SELECT id FROM things ORDER BY weight NULLS FIRST LIMIT 2", vec![2, 3]),
        ("FROM things SELECT id WHERE id = 2", vec![2]),
        ("SELECT a.id FROM things a JOIN things b USING (id) WHERE map(1, 2)[1] = 2 AND id = 1", vec![1]),
    ] {
        let expected: Vec<Vec<Cell>> = rows.into_iter().map(|number| vec![Cell::Integer(number)]).collect();
        assert_eq!(execute_raw(&engine, sql).unwrap().rows, expected, "{sql}");
    }
}

#[tokio::test]
async fn cancels_a_running_query() {
    let Some(engine) = spark_engine() else { return };
    engine.test_connection().await.unwrap();
    let endless =
        "SELECT count(*) FROM range(1000000000000) a CROSS JOIN range(1000000000000) b WHERE a.id * b.id = -1";
    let cancel = CancelFlag::new();
    let (shared, flag) = (Arc::clone(&engine.pool), cancel.clone());
    let running = std::thread::spawn(move || {
        let stop = Deadline::new(2 * hang_timeout(), flag);
        shared.with_session(&stop, |session, stop| {
            read_only::execute(session, endless, &Limits::default(), stop)
                .map(|gathered| gathered.collector.into_rows())
        })
    });
    // The server does not report when execution starts. A query that has not started by then is
    // never started, which is equivalent.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    cancel.cancel();
    assert_eq!(running.join().unwrap(), Err(Error::Cancelled));
    assert_eq!(execute_raw(&engine, "SELECT 7").unwrap().rows, [[Cell::Integer(7)]]);
}

// Attack corpus on Spark.
//
// The enforcement is Spark's grammar: only a query parses inside the parentheses, before any table
// is looked up. Spark therefore rejects most statements as syntax errors, and these count as
// read-only rejections.

/// Number of tables to create; the server is slow at it.
const MAX_TABLES: usize = 12;
/// Number of concurrent statements, one per session.
const CONCURRENCY: usize = 4;

fn rejection_reason(error: &EngineError) -> RejectionReason {
    let words = &error.message;
    if words.contains("PARSE_SYNTAX_ERROR") || error.code == "PARSE_SYNTAX_ERROR" || error.code == "25006" {
        RejectionReason::ReadOnly
    } else {
        RejectionReason::InvalidQuery
    }
}

#[test]
fn corpus_writes_nothing_to_spark() {
    let Some(corpus) = load_server_corpus() else { return };
    let Some(admin) = spark_engine() else { return };
    let _lock = lock_server("spark");
    run_unchecked(&admin, "DROP DATABASE IF EXISTS corpus CASCADE");
    run_unchecked(&admin, "CREATE DATABASE corpus");
    let tables = corpus.largest_tables(MAX_TABLES);
    for (name, columns) in &tables {
        let columns: Vec<String> =
            columns.iter().map(|column| format!("{} STRING", SPARK.quote_identifier(column))).collect();
        run_unchecked(
            &admin,
            &format!("CREATE TABLE corpus.{} ({}) USING parquet", SPARK.quote_identifier(name), columns.join(", ")),
        );
    }
    let all_of_it = || {
        let mut all = server_state(&admin);
        for sql in ["SHOW TABLES IN corpus", "SHOW VIEWS IN corpus", "SHOW USER FUNCTIONS IN corpus"] {
            all.push(run_unchecked(&admin, sql));
        }
        for (name, _) in &tables {
            all.push(run_unchecked(&admin, &format!("SELECT count(*) FROM corpus.{}", SPARK.quote_identifier(name))));
            all.push(run_unchecked(&admin, &format!("DESCRIBE corpus.{}", SPARK.quote_identifier(name))));
        }
        all
    };
    let before = all_of_it();
    let address = std::env::var("QUERYMEND_TEST_SPARK").unwrap().replacen("/default", "/corpus", 1);
    let engine = HiveEngine::open(&address).unwrap();
    let sent: Vec<&String> = corpus.all_statements().collect();
    let outcomes: Vec<(&String, Result<Rows, Error>)> = std::thread::scope(|threads| {
        let working: Vec<_> = sent
            .chunks(sent.len().div_ceil(CONCURRENCY))
            .map(|some| {
                let (some, engine) = (some.to_vec(), &engine);
                threads.spawn(move || some.into_iter().map(|sql| (sql, execute_raw(engine, sql))).collect::<Vec<_>>())
            })
            .collect();
        working.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut tally = AttackTally::default();
    for (sql, outcome) in &outcomes {
        tally.record(sql, outcome, rejection_reason);
    }
    tally.report("spark");
    assert!(!tally.executed.iter().any(|sql| corpus.statements.contains(sql)), "{:?}", tally.executed);
    assert_eq!(all_of_it(), before);
    run_unchecked(&admin, "DROP DATABASE corpus CASCADE");
}
