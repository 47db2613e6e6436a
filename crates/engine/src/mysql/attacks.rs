//! Raw SQL, past the critic, straight to a locked-down connection, as a user who may do everything: the second lock must hold
//! alone.
//!
//! What it cannot hold, because it happens inside of a question, and what that comes to:
//! - A stored function may set what its definer may set, also for the whole server (`SET GLOBAL`). Tables are safe from it, and the
//!   session's settings are taken back. A function of a loaded library may do anything.
//! - `LOAD_FILE` reads a file of the server, for users with the right FILE.
//! - `GET_LOCK` and `LOCK IN SHARE MODE` hold others up, until the query is over.
//! - `SLEEP` and `BENCHMARK` use up time, as much as the limits allow.
//!
//! The critic refuses all of them; a user who may only read cannot make such functions.

// Helpers of tests fail loudly, as tests do.
#![allow(clippy::print_stderr)]

mod corpus;

use std::time::Duration;

use querymend_sql::Cell;
use querymend_testing::{ServerLock, exclusive, hang_timeout};

use super::*;

const SET_UP: [&str; 11] = [
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

/// A database to attack and the way around the engine; none where there is no server. One after another: each compares the whole
/// server with what it was.
async fn attacked() -> Option<(ServerLock, MySql, Conn)> {
    let Ok(address) = std::env::var("QUERYMEND_TEST_MYSQL") else {
        eprintln!("skipped on mysql: it is not there; scripts/engines.sh up mysql");
        return None;
    };
    let lock = exclusive("mysql");
    let address = address.replace("reader:reader@", "owner:owner@");
    let mut owner = Conn::new(Server::read(&address, &|_| None).unwrap().opts).await.unwrap();
    for sql in SET_UP {
        owner.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    Some((lock, MySql::open(&address.replace("/app", "/attacked")).unwrap(), owner))
}

/// What `Engine::execute` does with an approved query.
async fn send(engine: &MySql, sql: &str) -> Result<Rows, Error> {
    send_within(engine, sql, hang_timeout()).await
}

async fn send_within(engine: &MySql, sql: &str, time: Duration) -> Result<Rows, Error> {
    let limits = Limits { time, ..Limits::default() };
    engine.pool.run(&Run { sql, limits: &limits }, &limits, &Cancel::new()).await
}

/// All that an attack could leave behind: tables, users, settings, locks, files.
async fn state(owner: &mut Conn) -> Vec<String> {
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
    state.push(format!("{:?}", files(owner).await));
    state
}

async fn folder(owner: &mut Conn) -> String {
    owner.query_first("SELECT @@secure_file_priv").await.unwrap().unwrap()
}

async fn files(owner: &mut Conn) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder(owner).await).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn c01_f03_writes_are_refused_by_the_engine_alone() {
    let Some((_lock, engine, mut owner)) = attacked().await else { return };
    // Connections are kept for the next query, so that each attack finds what the one before has left.
    let before = state(&mut owner).await;
    let into = folder(&mut owner).await;
    let outfile = format!("SELECT song FROM canary INTO OUTFILE '{into}/stolen'");
    let union = format!("(SELECT 1) UNION (SELECT 2 INTO OUTFILE '{into}/stolen')");
    let dumpfile = format!("SELECT 'x' INTO DUMPFILE '{into}/stolen'");
    let hidden = format!("SELECT 1 /*!50000 INTO OUTFILE '{into}/stolen' */");
    let number = format!("KILL {}", owner.id());
    for sql in [
        // Rows.
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
        // Numbers that are given out once.
        "SELECT NEXTVAL(numbers)",
        "SELECT NEXT VALUE FOR numbers",
        "SELECT SETVAL(numbers, 100)",
        "SELECT counts()",
        "DO NEXTVAL(numbers)",
        // Tables, users, the server. They commit by themselves what was begun before.
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
        // Transactions and settings.
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
        // Files and variables.
        &outfile,
        &union,
        &dumpfile,
        &hidden,
        "SELECT 1 INTO @x",
        // Programs.
        "CALL commits()",
        "BEGIN NOT ATOMIC DELETE FROM isam; END",
        "IF 1 THEN DELETE FROM isam; END IF",
        "PREPARE p FROM 'DELETE FROM canary'",
        "EXECUTE IMMEDIATE 'DELETE FROM canary'",
        "DO SLEEP(0)",
        "SIGNAL SQLSTATE '45000'",
        // More than one, and less.
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
        let outcome = send(&engine, sql).await;
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
    }
    let after = state(&mut owner).await;
    let changed: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    assert!(before == after, "{changed:?}");
    assert_eq!(send(&engine, "SELECT count(*) FROM canary").await.unwrap().rows, [[Cell::Integer(2)]]);
}

/// What emptied databases behind a server for PostgreSQL that sent texts as they came. The same is true of this one, when it is asked
/// that way; a text that is prepared is one statement.
#[tokio::test]
async fn c01_the_published_incident_commit_and_drop_database() {
    let Some((_lock, engine, mut owner)) = attacked().await else { return };
    let incident = "COMMIT; DROP DATABASE nest;";
    let there = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'nest'";
    for (locked, left) in [(false, 0), (true, 1)] {
        owner.query_drop("CREATE DATABASE IF NOT EXISTS nest").await.unwrap();
        if locked {
            let outcome = send(&engine, incident).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
            // Also if it begins like a question.
            let outcome = send(&engine, &format!("SELECT 1; {incident}")).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
        } else {
            owner.query_drop(format!("START TRANSACTION READ ONLY; {incident}")).await.unwrap();
        }
        assert_eq!(owner.query_first::<u64, _>(there).await.unwrap(), Some(left));
    }
    owner.query_drop("DROP DATABASE nest").await.unwrap();
}

#[tokio::test]
async fn c01_f03_no_query_leaves_anything_for_the_next() {
    let Some((_lock, engine, mut owner)) = attacked().await else { return };
    let look = "SELECT CONNECTION_ID(), @@sql_mode, @@time_zone, @@tx_read_only, @a, IS_FREE_LOCK('mine'), @@sql_select_limit, \
                @@character_set_client, DATABASE(), '\\'', \"text\", LAST_INSERT_ID()";
    let before = send(&engine, look).await.unwrap().rows;
    for sql in [
        "SELECT @a := 5",
        "SELECT sets()",
        "SELECT GET_LOCK('mine', 0)",
        "SELECT LAST_INSERT_ID(77)",
        "SELECT * FROM canary LOCK IN SHARE MODE",
        "SELECT nonsense",
        "SELECT (SELECT 1 UNION SELECT 2)",
    ] {
        drop(send(&engine, sql).await);
        // On the same connection, which its number shows.
        assert_eq!(send(&engine, look).await.unwrap().rows, before, "{sql}");
    }
    // Settings are pinned all at once, and one that cannot be is not passed over.
    assert!(owner.query_drop("SET @a = 1; SET SESSION nonsense = 1; SET @b = 1").await.is_err());
    assert!(owner.query_drop("SET @a = 1; SET SESSION nonsense = 1").await.is_err());
    // Nothing is held.
    owner.query_drop("SET SESSION innodb_lock_wait_timeout = 1").await.unwrap();
    owner.query_drop("UPDATE canary SET song = 'tweet'").await.unwrap();
}

#[tokio::test]
async fn c01_reading_is_not_taken_for_writing() {
    let Some((_lock, engine, _owner)) = attacked().await else { return };
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
        let outcome = send(&engine, sql).await;
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }
    // The driver has not put a question mark there.
    assert_eq!(send(&engine, "SELECT CONCAT(1 -'1', ' :x')").await.unwrap().rows, [[Cell::Text("0 :x".into())]]);
}

#[tokio::test]
async fn monstrous_queries_are_refused_in_bounded_time() {
    let Some((_lock, engine, _owner)) = attacked().await else { return };
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let subqueries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(5_000), ") AS x".repeat(5_000));
    let long = format!("SELECT '{}'", "x".repeat(20 << 20));
    for sql in [nested, subqueries, long] {
        let outcome = send(&engine, &sql).await;
        assert!(outcome.is_err(), "{sql:.40}: {outcome:?}");
    }
    assert_eq!(send(&engine, "SELECT 1").await.unwrap().rows, [[Cell::Integer(1)]]);
}
