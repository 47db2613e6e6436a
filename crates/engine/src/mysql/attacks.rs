//! Attacks with raw SQL that bypasses query review.
//!
//! It is sent to a read-only connection as a user with all privileges: the read-only enforcement
//! must hold on its own. It cannot prevent side effects inside a query:
//! - A stored function may set everything that its definer may set, also globally (`SET GLOBAL`).
//!   Tables are safe from it, and session settings are reset. A function of a loaded library may do
//!   anything.
//! - `LOAD_FILE` reads a file of the server, for users with the FILE privilege.
//! - `GET_LOCK` and `LOCK IN SHARE MODE` block other sessions until the query ends.
//! - `SLEEP` and `BENCHMARK` consume time, up to the limits.
//!
//! Query review rejects all of them, and a user with only read privileges cannot create such
//! functions.

// Test helpers panic on failure and report skips on stderr.
#![allow(clippy::print_stderr)]

use std::time::Duration;

use querymend_sql::Cell;
use querymend_sql::EngineError;
use querymend_sql::dialect::MYSQL;
use querymend_testing::{ServerLock, hang_timeout, lock_server};

use super::*;
use crate::attack_corpus::{AttackCorpus, AttackTally, RejectionReason, load_server_corpus};

const SETUP_SQL: [&str; 11] = [
    "CREATE OR REPLACE DATABASE attacked",
    "USE attacked",
    "CREATE TABLE canary (id INT PRIMARY KEY AUTO_INCREMENT, song VARCHAR(20))",
    "INSERT INTO canary (song) VALUES ('tweet'), ('chirp')",
    "CREATE TABLE isam (x INT) ENGINE = MyISAM",
    "CREATE TABLE mem (x INT) ENGINE = MEMORY",
    "CREATE SEQUENCE numbers",
    "CREATE FUNCTION writes() RETURNS INT BEGIN INSERT INTO isam VALUES (1); RETURN 1; END",
    "CREATE FUNCTION counts() RETURNS INT RETURN NEXTVAL(numbers)",
    "CREATE FUNCTION sets() RETURNS INT BEGIN SET SESSION sql_mode = 'ANSI_QUOTES', @a = 7; \
     SET SESSION TRANSACTION READ WRITE; RETURN 1; END",
    "CREATE PROCEDURE commits() BEGIN COMMIT; SET SESSION TRANSACTION READ WRITE; INSERT INTO canary (song) VALUES ('x'); \
     COMMIT; SELECT 1; END",
];

/// Creates the attacked database; returns `None` if there is no server.
///
/// The returned lock serializes the tests, because each of them compares the state of the whole
/// server.
async fn setup() -> Option<(ServerLock, MySqlEngine, Conn)> {
    let Ok(address) = std::env::var("QUERYMEND_TEST_MYSQL") else {
        eprintln!("skipped on mysql: it is not there; scripts/engines.sh up mysql");
        return None;
    };
    let lock = lock_server("mysql");
    let address = address.replace("reader:reader@", "owner:owner@");
    let mut owner = Conn::new(MySqlServer::parse(&address, &|_| None).unwrap().opts).await.unwrap();
    for sql in SETUP_SQL {
        owner.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    Some((lock, MySqlEngine::open(&address.replace("/app", "/attacked")).unwrap(), owner))
}

/// Runs SQL as `Engine::execute` runs an approved query.
async fn execute_raw(engine: &MySqlEngine, sql: &str) -> Result<Rows, Error> {
    execute_raw_within(engine, sql, hang_timeout()).await
}

async fn execute_raw_within(engine: &MySqlEngine, sql: &str, time: Duration) -> Result<Rows, Error> {
    let limits = Limits { time, ..Limits::default() };
    engine.pool.run(&ExecuteQuery { sql, limits: &limits }, &limits, &CancelFlag::new()).await
}

/// Returns all state that an attack could change: tables, users, settings, locks and files.
async fn server_state(owner: &mut Conn) -> Vec<String> {
    let mut state = Vec::new();
    for sql in [
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, AUTO_INCREMENT FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema') ORDER BY 1, 2",
        "CHECKSUM TABLE attacked.canary, attacked.isam, attacked.mem, app.things",
        "SELECT next_not_cached_value FROM attacked.numbers",
        "SELECT User, Host FROM mysql.user ORDER BY 1, 2",
        "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%'",
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1",
        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'attacked' ORDER BY 1",
        "SELECT IS_FREE_LOCK('mine')",
    ] {
        let rows: Vec<Row> = owner.query(sql).await.unwrap();
        state.extend(rows.into_iter().map(|row| format!("{sql}: {:?}", row.unwrap())));
    }
    state.push(format!("{:?}", list_files(owner).await));
    state
}

async fn secure_file_dir(owner: &mut Conn) -> String {
    owner.query_first("SELECT @@secure_file_priv").await.unwrap().unwrap()
}

async fn list_files(owner: &mut Conn) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(secure_file_dir(owner).await).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn rejects_writes_that_bypass_the_review() {
    let Some((_lock, engine, mut owner)) = setup().await else { return };
    // Connections are pooled, so each attack sees the state that the previous one left.
    let before = server_state(&mut owner).await;
    let into = secure_file_dir(&mut owner).await;
    let outfile = format!("SELECT song FROM canary INTO OUTFILE '{into}/stolen'");
    let union = format!("(SELECT 1) UNION (SELECT 2 INTO OUTFILE '{into}/stolen')");
    let dumpfile = format!("SELECT 'x' INTO DUMPFILE '{into}/stolen'");
    let hidden = format!("SELECT 1 /*!50000 INTO OUTFILE '{into}/stolen' */");
    let number = format!("KILL {}", owner.id());
    for sql in [
        "INSERT INTO canary (song) VALUES ('x')",
        "INSERT INTO canary (song) VALUES ('x') RETURNING id",
        "INSERT INTO isam VALUES (1) RETURNING x",
        "INSERT INTO mem VALUES (1)",
        "REPLACE INTO canary VALUES (1, 'x')",
        "REPLACE INTO canary VALUES (1, 'x') RETURNING song",
        "UPDATE canary SET song = ''",
        "DELETE FROM canary",
        "DELETE FROM canary RETURNING song",
        "WITH x AS (SELECT 1) DELETE FROM canary",
        "EXPLAIN DELETE FROM canary",
        "ANALYZE DELETE FROM canary",
        "ANALYZE FORMAT=JSON UPDATE canary SET song = ''",
        "LOAD DATA INFILE '/etc/hostname' INTO TABLE isam",
        "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE isam",
        "TRUNCATE TABLE canary",
        "SELECT writes()",
        "SELECT 1 FROM DUAL WHERE (SELECT writes()) = 1",
        // Sequences.
        "SELECT NEXTVAL(numbers)",
        "SELECT NEXT VALUE FOR numbers",
        "SELECT SETVAL(numbers, 100)",
        "SELECT counts()",
        "DO NEXTVAL(numbers)",
        // DDL, users and server administration, which commit implicitly.
        "CREATE TABLE x (y INT)",
        "CREATE TABLE x AS SELECT * FROM canary",
        "CREATE TEMPORARY TABLE x (y INT)",
        "CREATE TEMPORARY TABLE x AS SELECT 1",
        "CREATE OR REPLACE VIEW x AS SELECT 1",
        "CREATE INDEX x ON canary (song)",
        "CREATE TRIGGER x AFTER INSERT ON canary FOR EACH ROW SET @x = 1",
        "CREATE EVENT x ON SCHEDULE EVERY 1 SECOND DO DELETE FROM canary",
        "CREATE DATABASE x",
        "ALTER TABLE canary ADD COLUMN x INT",
        "RENAME TABLE canary TO bird",
        "DROP TABLE canary",
        "DROP DATABASE attacked",
        "CREATE USER evil@localhost",
        "GRANT ALL ON *.* TO evil@localhost",
        "SET PASSWORD = PASSWORD('x')",
        "OPTIMIZE TABLE canary",
        "ANALYZE TABLE canary",
        "ANALYZE TABLE canary PERSISTENT FOR ALL",
        "REPAIR TABLE isam",
        "CHECK TABLE canary",
        "FLUSH TABLES",
        "FLUSH TABLES WITH READ LOCK",
        "LOCK TABLES canary WRITE",
        "HANDLER canary OPEN",
        "CACHE INDEX isam IN default",
        "RESET QUERY CACHE",
        "INSTALL SONAME 'x'",
        "BACKUP STAGE START",
        "SHUTDOWN",
        &number,
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "START TRANSACTION READ WRITE",
        "XA START 'x'",
        "SET autocommit = 0",
        "SET SESSION TRANSACTION READ WRITE",
        "SET GLOBAL max_connections = 152",
        "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
        "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT 1",
        "SET STATEMENT max_statement_time = 0 FOR SELECT 1",
        "SET ROLE NONE",
        "USE app",
        &outfile,
        &union,
        &dumpfile,
        &hidden,
        "SELECT 1 INTO @x",
        // Stored programs and dynamic SQL.
        "CALL commits()",
        "BEGIN NOT ATOMIC DELETE FROM isam; END",
        "IF 1 THEN DELETE FROM isam; END IF",
        "PREPARE p FROM 'DELETE FROM canary'",
        "EXECUTE IMMEDIATE 'DELETE FROM canary'",
        "DO SLEEP(0)",
        "SIGNAL SQLSTATE '45000'",
        // Multiple statements, parameters and empty queries.
        "SELECT 1; DROP TABLE canary",
        "SELECT 1;; -- x\n DELETE FROM canary",
        "SELECT 1; not even SQL",
        "/*! DELETE FROM canary */",
        "/*M! DELETE FROM canary */",
        "SELECT * FROM canary FOR UPDATE",
        "SELECT ?",
        "SELECT * FROM canary WHERE song = :name",
        "",
        "  -- nothing",
        ";",
    ] {
        let outcome = execute_raw(&engine, sql).await;
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
    }
    let after = server_state(&mut owner).await;
    let changed: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    assert!(before == after, "{changed:?}");
    assert_eq!(execute_raw(&engine, "SELECT count(*) FROM canary").await.unwrap().rows, [[Cell::Integer(2)]]);
}

/// Replays a published stacked-query attack (`COMMIT; DROP …`).
///
/// It emptied databases of a PostgreSQL server program that sent SQL unprepared. It succeeds here
/// as well if it is sent that way; a prepared statement is a single statement.
#[tokio::test]
async fn rejects_stacked_commit_and_drop_database() {
    let Some((_lock, engine, mut owner)) = setup().await else { return };
    let incident = "COMMIT; DROP DATABASE nest;";
    let there = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'nest'";
    for (locked, left) in [(false, 0), (true, 1)] {
        owner.query_drop("CREATE DATABASE IF NOT EXISTS nest").await.unwrap();
        if locked {
            let outcome = execute_raw(&engine, incident).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
            // Also with a query as the first statement.
            let outcome = execute_raw(&engine, &format!("SELECT 1; {incident}")).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
        } else {
            owner.query_drop(format!("START TRANSACTION READ ONLY; {incident}")).await.unwrap();
        }
        assert_eq!(owner.query_first::<u64, _>(there).await.unwrap(), Some(left));
    }
    owner.query_drop("DROP DATABASE nest").await.unwrap();
}

#[tokio::test]
async fn leaks_no_session_state_to_the_next_query() {
    let Some((_lock, engine, mut owner)) = setup().await else { return };
    let look = "SELECT CONNECTION_ID(), @@sql_mode, @@time_zone, @@tx_read_only, @a, IS_FREE_LOCK('mine'), @@sql_select_limit, \
                @@character_set_client, DATABASE(), '\\'', \"text\", LAST_INSERT_ID()";
    let before = execute_raw(&engine, look).await.unwrap().rows;
    for sql in [
        "SELECT @a := 5",
        "SELECT sets()",
        "SELECT GET_LOCK('mine', 0)",
        "SELECT LAST_INSERT_ID(77)",
        "SELECT * FROM canary LOCK IN SHARE MODE",
        "SELECT nonsense",
        "SELECT (SELECT 1 UNION SELECT 2)",
    ] {
        drop(execute_raw(&engine, sql).await);
        // `CONNECTION_ID()` shows that it is the same connection.
        assert_eq!(execute_raw(&engine, look).await.unwrap().rows, before, "{sql}");
    }
    // Settings are pinned in one batch, and a setting that fails is not skipped.
    assert!(owner.query_drop("SET @a = 1; SET SESSION nonsense = 1; SET @b = 1").await.is_err());
    assert!(owner.query_drop("SET @a = 1; SET SESSION nonsense = 1").await.is_err());
    // No locks are held.
    owner.query_drop("SET SESSION innodb_lock_wait_timeout = 1").await.unwrap();
    owner.query_drop("UPDATE canary SET song = 'tweet'").await.unwrap();
}

#[tokio::test]
async fn accepts_reads_that_look_like_writes() {
    let Some((_lock, engine, _owner)) = setup().await else { return };
    for sql in [
        "SELECT 'DROP TABLE canary; --' AS update_time;",
        "SELECT 1 ; -- done",
        "/* a question */ (SELECT 1)",
        "VALUES (1), (2)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
        "EXPLAIN SELECT * FROM canary",
        "SHOW TABLES",
        "SELECT row_number() OVER (ORDER BY song) FROM canary",
        "SELECT song FROM canary WHERE song = 'a :name' OR 5 -'1 :x' = 4",
        "SELECT * FROM information_schema.TABLES LIMIT 1",
    ] {
        let outcome = execute_raw(&engine, sql).await;
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }
    // The driver did not replace it with a placeholder.
    assert_eq!(execute_raw(&engine, "SELECT CONCAT(1 -'1', ' :x')").await.unwrap().rows, [[Cell::Text("0 :x".into())]]);
}

#[tokio::test]
async fn rejects_oversized_queries_in_bounded_time() {
    let Some((_lock, engine, _owner)) = setup().await else { return };
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let subqueries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(5_000), ") AS x".repeat(5_000));
    let long = format!("SELECT '{}'", "x".repeat(20 << 20));
    for sql in [nested, subqueries, long] {
        let outcome = execute_raw(&engine, &sql).await;
        assert!(outcome.is_err(), "{sql:.40}: {outcome:?}");
    }
    assert_eq!(execute_raw(&engine, "SELECT 1").await.unwrap().rows, [[Cell::Integer(1)]]);
}

// Attack corpus on MySQL and MariaDB.

/// Maximum number of columns per table, below the server's row size limit.
const MAX_COLUMNS: usize = 100;

fn rejection_reason(error: &EngineError) -> RejectionReason {
    match error.code.as_str() {
        "1792" => RejectionReason::ReadOnly,
        _ => RejectionReason::InvalidQuery,
    }
}

async fn create_tables(owner: &mut Conn, corpus: &AttackCorpus) {
    for sql in ["CREATE OR REPLACE DATABASE corpus", "USE corpus", "SET sql_mode = ''"] {
        owner.query_drop(sql).await.unwrap();
    }
    for (name, columns) in &corpus.tables {
        let columns: Vec<String> =
            columns.iter().take(MAX_COLUMNS).map(|column| format!("{} TEXT", MYSQL.quote_identifier(column))).collect();
        let table = MYSQL.quote_identifier(name);
        owner.query_drop(format!("CREATE TABLE {table} ({}) ENGINE = MyISAM", columns.join(", "))).await.unwrap();
        owner.query_drop(format!("INSERT INTO {table} () VALUES ()")).await.unwrap();
    }
}

async fn full_state(owner: &mut Conn, corpus: &AttackCorpus) -> Vec<String> {
    let mut state = server_state(owner).await;
    let tables: Vec<String> =
        corpus.tables.keys().map(|name| format!("corpus.{}", MYSQL.quote_identifier(name))).collect();
    for sql in [
        format!("CHECKSUM TABLE {}", tables.join(", ")),
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'corpus' ORDER BY 1, 2".into(),
        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'corpus' ORDER BY 1".into(),
        "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'corpus' ORDER BY 1".into(),
        "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'corpus' ORDER BY 1".into(),
    ] {
        let rows: Vec<Row> = owner.query(sql).await.unwrap();
        state.extend(rows.into_iter().map(|row| format!("{:?}", row.unwrap())));
    }
    state
}

#[tokio::test]
async fn corpus_writes_nothing_to_mysql() {
    let Some(corpus) = load_server_corpus() else { return };
    let Some((_lock, _, mut owner)) = setup().await else { return };
    create_tables(&mut owner, &corpus).await;
    let address = std::env::var("QUERYMEND_TEST_MYSQL").unwrap().replace("reader:reader@", "owner:owner@");
    let engine = MySqlEngine::open(&address.replace("/app", "/corpus")).unwrap();
    let before = full_state(&mut owner, &corpus).await;
    let mut tally = AttackTally::default();
    for sql in corpus.all_statements() {
        tally.record(sql, &execute_raw_within(&engine, sql, Duration::from_secs(10)).await, rejection_reason);
    }
    tally.report("mysql");
    assert!(!tally.executed.iter().any(|sql| corpus.statements.contains(sql)), "{:?}", tally.executed);
    assert_eq!(full_state(&mut owner, &corpus).await, before);
    owner.query_drop("DROP DATABASE corpus").await.unwrap();
}
