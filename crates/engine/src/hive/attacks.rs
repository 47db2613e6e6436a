#![allow(clippy::print_stderr)]
//! Raw SQL, past the critic, on the way that approved queries take: the second lock must hold alone.
//!
//! What it cannot refuse, because it is a query to Spark as any other: whatever a function does that somebody has registered on
//! the server, and whatever a view does that is already there. The critic knows neither to be harmless.

mod corpus;

use std::sync::Arc;
use std::time::Duration;

use querymend_sql::Cell;
use querymend_testing::{exclusive, hang_timeout};

use super::*;

/// The server of the tests, if there is one.
fn server() -> Option<Hive> {
    let Ok(address) = std::env::var("QUERYMEND_TEST_SPARK") else {
        eprintln!("skipped on spark: it is not there; scripts/engines.sh up spark");
        return None;
    };
    Some(Hive::open(&address).unwrap())
}

/// What `Engine::execute` does with an approved query.
fn send(engine: &Hive, sql: &str) -> Result<Rows, Error> {
    let stop = Stop::new(hang_timeout(), Cancel::new());
    engine.shared.with_session(&stop, |session, stop| {
        lock::execute(session, sql, &Limits::default(), stop).map(|gathered| gathered.taking.done())
    })
}

/// What `Engine::probe` does.
fn probe(engine: &Hive, sql: &str) -> Result<(), Error> {
    let stop = Stop::new(hang_timeout(), Cancel::new());
    engine.shared.with_session(&stop, |session, stop| lock::probe(session, sql, stop))
}

/// Statements of the server's own, past the lock: only to see what is there.
fn seen(engine: &Hive, sql: &str) -> Vec<Vec<Cell>> {
    let stop = Stop::new(hang_timeout(), Cancel::new());
    let rows = engine.shared.with_session(&stop, |session, stop| {
        let operation = session.run(sql, stop)?;
        let gathered = session.gather(&operation, &Limits::default(), stop)?;
        session.let_go(&operation, false);
        Ok(gathered.taking.done().rows)
    });
    rows.unwrap()
}

fn state(engine: &Hive) -> Vec<Vec<Vec<Cell>>> {
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
    .map(|sql| seen(engine, sql))
    .collect()
}

#[test]
fn c01_f03_writes_are_refused_by_the_engine_alone() {
    let Some(engine) = server() else { return };
    let _lock = exclusive("spark");
    let before = state(&engine);
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
        // Two at once, and ways out of the brackets.
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
        for outcome in [send(&engine, sql).map(drop), probe(&engine, sql)] {
            // Some are queries that are not well formed, and the probe asks something else of them; none may run.
            let harmless = outcome.is_ok() && sql.starts_with("SELECT 1 -- ");
            assert!(harmless || matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
        }
    }
    assert_eq!(state(&engine), before);
    assert!(!std::path::Path::new("/tmp/querymend-attack").exists());
}

#[test]
fn c01_f03_queries_reach_neither_code_nor_files_nor_variables_of_the_server() {
    let Some(engine) = server() else { return };
    let _lock = exclusive("spark");
    let before = state(&engine);
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
        // Letters whose upper case, by which the server reads words, is an S or an I.
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
        let outcome = send(&engine, sql);
        let Err(Error::Rejected(error)) = outcome else { panic!("{sql}: {outcome:?}") };
        // Spark itself would run these.
        assert_eq!(
            error.message.contains("through programs"),
            sql.to_uppercase().contains(" USING '"),
            "{sql}: {error:?}"
        );
    }
    let text = "${env:PATH} ${system:user.home} ${spark.sql.warehouse.dir}";
    assert_eq!(send(&engine, &format!("SELECT '{text}'")).unwrap().rows, [[Cell::Text(text.into())]]);
    assert_eq!(state(&engine), before);
    assert!(!std::path::Path::new("/tmp/querymend-attack").exists());
}

#[test]
fn f03_queries_that_look_odd_are_run_as_they_are() {
    let Some(engine) = server() else { return };
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
        assert_eq!(send(&engine, sql).unwrap().rows, expected, "{sql}");
    }
}

#[tokio::test]
async fn l12_a_query_that_already_runs_can_be_cancelled() {
    let Some(engine) = server() else { return };
    engine.test_connection().await.unwrap();
    let endless =
        "SELECT count(*) FROM range(1000000000000) a CROSS JOIN range(1000000000000) b WHERE a.id * b.id = -1";
    let cancel = Cancel::new();
    let (shared, flag) = (Arc::clone(&engine.shared), cancel.clone());
    let running = std::thread::spawn(move || {
        let stop = Stop::new(2 * hang_timeout(), flag);
        shared.with_session(&stop, |session, stop| {
            lock::execute(session, endless, &Limits::default(), stop).map(|gathered| gathered.taking.done())
        })
    });
    // Nobody tells when the server runs it. One that has not begun by then is not begun any more, which comes to the same.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    cancel.cancel();
    assert_eq!(running.join().unwrap(), Err(Error::Cancelled));
    assert_eq!(send(&engine, "SELECT 7").unwrap().rows, [[Cell::Integer(7)]]);
}
