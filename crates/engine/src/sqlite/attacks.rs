//! Raw SQL, past the critic, straight to a locked-down connection: the second lock must hold alone.

pub(crate) mod corpus;

use std::fs;
use std::path::Path;

use querymend_testing::hang_timeout;

use super::*;

const CANARY: &str = "CREATE TABLE canary (song TEXT); INSERT INTO canary VALUES ('tweet'), ('chirp');
     CREATE TABLE id (canary INTEGER PRIMARY KEY); CREATE VIRTUAL TABLE notes USING fts3 (body);
     INSERT INTO notes VALUES ('a word');";

fn canary(folder: &Path) -> Sqlite {
    let file = folder.join("canary.db");
    Connection::open(&file).unwrap().execute_batch(CANARY).unwrap();
    Sqlite::open(&file).unwrap()
}

/// What `Engine::execute` does with an approved query.
pub(crate) fn send(engine: &Sqlite, sql: &str) -> Result<Rows, Error> {
    let stop = Stop::new(hang_timeout(), Cancel::new());
    engine
        .shared
        .with_connection(&stop, None, |connection, file| execute(connection, file, sql, &Limits::default(), None))
}

pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn c01_f03_writes_are_refused_by_the_engine_alone() {
    let folder = tempfile::tempdir().unwrap();
    let engine = canary(folder.path());
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
        let outcome = send(&engine, sql);
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
    }
    assert_eq!(send(&engine, "SELECT count(*) FROM canary").unwrap().rows, [[Cell::Integer(2)]]);
    assert_eq!(fs::read(folder.path().join("canary.db")).unwrap(), before);
    assert_eq!(names_in(folder.path()), ["canary.db"]);
}

/// What emptied databases behind a server for PostgreSQL that sent texts as they came, inside of a transaction that it meant to
/// roll back. Here it does the same, when it is sent that way.
#[test]
fn c01_the_published_incident_commit_and_drop_table() {
    let folder = tempfile::tempdir().unwrap();
    let engine = canary(folder.path());
    let incident = "COMMIT; DROP TABLE canary;";
    let outcome = send(&engine, incident);
    assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
    assert_eq!(send(&engine, "SELECT count(*) FROM canary").unwrap().rows, [[Cell::Integer(2)]]);
    let unlocked = Connection::open(folder.path().join("canary.db")).unwrap();
    unlocked.execute_batch(&format!("BEGIN; {incident}")).unwrap();
    assert!(unlocked.prepare("SELECT count(*) FROM canary").is_err());
}

#[test]
fn c01_reading_is_not_taken_for_writing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = canary(folder.path());
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
        let outcome = send(&engine, sql);
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }
}

#[test]
fn many_statements_do_not_use_up_the_stack() {
    let folder = tempfile::tempdir().unwrap();
    let engine = canary(folder.path());
    let outcome = send(&engine, &"SELECT 1;".repeat(100_000));
    assert!(matches!(outcome, Err(Error::Rejected(_))), "{outcome:?}");
}

#[test]
fn monstrous_queries_are_refused_in_bounded_time_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let engine = canary(folder.path());
    let nested = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let added = format!("SELECT 1{}", "+1".repeat(10_000));
    let unions = vec!["SELECT 1"; 1_000].join(" UNION ALL ");
    let long = format!("SELECT '{}'", "x".repeat(2 << 20));
    let subqueries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(5_000), ")".repeat(5_000));
    for sql in [nested, added, unions, long, subqueries] {
        let outcome = send(&engine, &sql);
        assert!(matches!(outcome, Err(Error::Rejected(_))), "{:.40}: {outcome:?}", sql);
    }
    for sql in
        ["SELECT zeroblob(1000000000)", "SELECT length(printf('%999999999d', 1))", "SELECT hex(randomblob(900000000))"]
    {
        let Err(Error::Rejected(error)) = send(&engine, sql) else { panic!("{sql} was run") };
        assert_eq!(error.code, "SQLITE_TOOBIG", "{sql}");
    }
}
