//! Attacks with raw SQL that bypasses query review.
//!
//! It is sent to a locked-down connection: the read-only enforcement must hold on its own.

use std::fs;
use std::path::Path;

use querymend_sql::dialect::SQLITE;
use querymend_testing::hang_timeout;

use super::*;
use crate::attack_corpus::{AttackCorpus, AttackTally, RejectionReason, load_corpus};

const SETUP_SQL: &str = "CREATE TABLE canary (song TEXT); INSERT INTO canary VALUES ('tweet'), ('chirp');
     CREATE TABLE id (canary INTEGER PRIMARY KEY); CREATE VIRTUAL TABLE notes USING fts3 (body);
     INSERT INTO notes VALUES ('a word');";

fn create_canary(folder: &Path) -> SqliteEngine {
    let file = folder.join("canary.db");
    Connection::open(&file).unwrap().execute_batch(SETUP_SQL).unwrap();
    SqliteEngine::open(&file).unwrap()
}

/// Runs SQL as `Engine::execute` runs an approved query.
pub(crate) fn execute_raw(engine: &SqliteEngine, sql: &str) -> Result<Rows, Error> {
    let stop = Deadline::new(hang_timeout(), CancelFlag::new());
    engine
        .pool
        .with_connection(&stop, None, |connection, file| execute(connection, file, sql, &Limits::default(), None))
}

pub(crate) fn list_files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn rejects_writes_that_bypass_the_review() {
    let folder = tempfile::tempdir().unwrap();
    let engine = create_canary(folder.path());
    let before = fs::read(folder.path().join("canary.db")).unwrap();
    let outside = folder.path().join("outside.db").display().to_string();
    for sql in [
        "INSERT INTO canary VALUES ('x')",
        "INSERT INTO canary VALUES ('x') RETURNING song",
        "REPLACE INTO canary VALUES ('x')",
        "UPDATE canary SET song = ''",
        "DELETE FROM canary",
        "WITH x AS (SELECT 1) DELETE FROM canary",
        "DROP TABLE canary",
        "ALTER TABLE canary RENAME TO bird",
        "ALTER TABLE canary ADD COLUMN x",
        "CREATE TABLE x (y)",
        "CREATE TABLE x AS SELECT * FROM canary",
        "CREATE INDEX x ON canary (song)",
        "CREATE VIEW x AS SELECT 1",
        "CREATE TRIGGER x AFTER INSERT ON canary BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE x USING fts5 (y)",
        "CREATE TEMP TABLE x (y)",
        "CREATE TEMP VIEW x AS SELECT 1",
        "CREATE TEMP TRIGGER x AFTER INSERT ON canary BEGIN SELECT 1; END",
        &format!("ATTACH '{outside}' AS x"),
        "ATTACH ':memory:' AS x",
        "DETACH main",
        "VACUUM",
        &format!("VACUUM INTO '{outside}'"),
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "BEGIN IMMEDIATE",
        "SAVEPOINT x",
        "COMMIT",
        "PRAGMA writable_schema = ON",
        "PRAGMA query_only = OFF",
        "PRAGMA trusted_schema = ON",
        "PRAGMA journal_mode = WAL",
        "PRAGMA journal_mode",
        "PRAGMA user_version = 7",
        "PRAGMA page_size = 512",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA optimize",
        "PRAGMA incremental_vacuum",
        "PRAGMA temp_store_directory = '/'",
        "SELECT * FROM pragma_journal_mode",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "SELECT readfile('x')",
        "SELECT edit('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT hex(fts3_tokenizer('x', x'00'))",
        "SELECT optimize(notes) FROM notes",
        "INSERT INTO notes (notes) VALUES ('rebuild')",
        "INSERT INTO notes_segments VALUES (9, x'00')",
        "UPDATE sqlite_schema SET sql = ''",
        "DELETE FROM sqlite_schema",
        "EXPLAIN INSERT INTO canary VALUES ('x')",
        "SELECT 1; DROP TABLE canary",
        "SELECT 1;; -- x\n DELETE FROM canary",
        "SELECT 1; not even SQL",
        "SELECT 1\0; DROP TABLE canary",
        "",
        "  -- nothing",
        ";",
        "SELECT ?",
        "SELECT * FROM canary WHERE song = :name",
    ] {
        let outcome = execute_raw(&engine, sql);
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
    }
    assert_eq!(execute_raw(&engine, "SELECT count(*) FROM canary").unwrap().rows, [[Cell::Integer(2)]]);
    assert_eq!(fs::read(folder.path().join("canary.db")).unwrap(), before);
    assert_eq!(list_files(folder.path()), ["canary.db"]);
}

/// Replays a published stacked-query attack (`COMMIT; DROP …`).
///
/// It emptied databases of a PostgreSQL server program that sent SQL unprepared, inside a
/// transaction that it meant to roll back. It succeeds here as well if it is sent that way.
#[test]
fn rejects_stacked_commit_and_drop_table() {
    let folder = tempfile::tempdir().unwrap();
    let engine = create_canary(folder.path());
    let incident = "COMMIT; DROP TABLE canary;";
    let outcome = execute_raw(&engine, incident);
    assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
    assert_eq!(execute_raw(&engine, "SELECT count(*) FROM canary").unwrap().rows, [[Cell::Integer(2)]]);
    let unlocked = Connection::open(folder.path().join("canary.db")).unwrap();
    unlocked.execute_batch(&format!("BEGIN; {incident}")).unwrap();
    assert!(unlocked.prepare("SELECT count(*) FROM canary").is_err());
}

#[test]
fn accepts_reads_that_look_like_writes() {
    let folder = tempfile::tempdir().unwrap();
    let engine = create_canary(folder.path());
    for sql in [
        "SELECT 'DROP TABLE canary; --' AS update_time;",
        "SELECT 1 ; -- done",
        "SELECT 1 /* ; */ ;;",
        "VALUES (1), (2)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
        "SELECT * FROM notes WHERE notes MATCH 'word'",
        "SELECT * FROM pragma_table_info('canary')",
        "SELECT * FROM sqlite_schema",
        "SELECT value FROM json_each('[1, 2]')",
        "EXPLAIN QUERY PLAN SELECT * FROM canary",
        "SELECT row_number() OVER (ORDER BY song) FROM canary",
        "SELECT regexp FROM (SELECT 1 AS regexp)",
    ] {
        let outcome = execute_raw(&engine, sql);
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }
}

#[test]
fn many_statements_do_not_exhaust_the_stack() {
    let folder = tempfile::tempdir().unwrap();
    let engine = create_canary(folder.path());
    let outcome = execute_raw(&engine, &"SELECT 1;".repeat(100_000));
    assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
}

#[test]
fn rejects_oversized_queries_in_bounded_time_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let engine = create_canary(folder.path());
    let nested = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let added = format!("SELECT 1{}", "+1".repeat(10_000));
    let unions = vec!["SELECT 1"; 1_000].join(" UNION ALL ");
    let long = format!("SELECT '{}'", "x".repeat(2 << 20));
    let subqueries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(5_000), ")".repeat(5_000));
    for sql in [nested, added, unions, long, subqueries] {
        let outcome = execute_raw(&engine, &sql);
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{:.40}: {outcome:?}", sql);
    }
    for sql in
        ["SELECT zeroblob(1000000000)", "SELECT length(printf('%999999999d', 1))", "SELECT hex(randomblob(900000000))"]
    {
        let Err(Error::Rejected(error)) = execute_raw(&engine, sql) else { panic!("{sql} was run") };
        assert_eq!(error.code, "SQLITE_TOOBIG", "{sql}");
    }
}

// Attack corpus on SQLite.

pub(crate) fn rejection_reason(error: &EngineError) -> RejectionReason {
    match error.code.as_str() {
        _ if error.message.contains("one statement at a time") => RejectionReason::MultipleStatements,
        "SQLITE_READONLY" | "SQLITE_AUTH" => RejectionReason::ReadOnly,
        _ => RejectionReason::InvalidQuery,
    }
}

fn create_tables(connection: &Connection, corpus: &AttackCorpus) {
    let all = connection.unchecked_transaction().unwrap();
    for (name, columns) in &corpus.tables {
        let columns: Vec<String> = columns.iter().map(|column| SQLITE.quote_identifier(column)).collect();
        let table = SQLITE.quote_identifier(name);
        let made = format!("CREATE TABLE {table} ({}); INSERT INTO {table} DEFAULT VALUES", columns.join(", "));
        all.execute_batch(&made).unwrap_or_else(|error| panic!("{made}: {error}"));
    }
    all.commit().unwrap();
}

#[test]
fn corpus_writes_nothing_to_sqlite() {
    let Some(corpus) = load_corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("corpus.db");
    create_tables(&Connection::open(&file).unwrap(), &corpus);
    let before = fs::read(&file).unwrap();
    let engine = SqliteEngine::open(&file).unwrap();
    let mut tally = AttackTally::default();
    for sql in corpus.all_statements() {
        tally.record(sql, &execute_raw(&engine, sql), rejection_reason);
    }
    tally.report("sqlite");
    assert!(!tally.executed.iter().any(|sql| corpus.statements.contains(sql)), "{:?}", tally.executed);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(list_files(folder.path()), ["corpus.db"]);
}
