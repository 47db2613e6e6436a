//! SQLite files as they are found in the wild.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use querymend_engine::sqlite::SqliteEngine;
use querymend_engine::{CancelFlag, Engine, Error, Limits, open};
use querymend_sql::schema::{ForeignKey, Table, TableKind};
use querymend_sql::{Cell, Policy, ReviewContext, Rows, Schema, review};
use querymend_testing::{hang_timeout, wait_until};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::{approve, ask, eventually, in_time, limits, long_limits};

fn database(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    (folder, file)
}

async fn value(path: &Path, sql: &str) -> Result<Cell, Error> {
    let engine = SqliteEngine::open(path)?;
    Ok(ask(&engine, sql).await?.rows[0][0].clone())
}

async fn schema(sql: &str) -> Schema {
    let (_folder, file) = database(sql);
    SqliteEngine::open(&file).unwrap().schema().await.unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The trouble that a path makes on the way to a schema: its message, its hint and whether it may pass.
async fn trouble(path: &Path) -> (String, String, bool) {
    let outcome = async {
        let engine = open(&path.to_string_lossy())?;
        engine.test_connection().await?;
        engine.schema().await
    };
    let error = outcome.await.unwrap_err();
    let Error::Unavailable { what, hint, transient, .. } = error.clone() else { panic!("{error:?}") };
    assert_eq!((error.to_string(), error.hint(), error.is_transient()), (what.clone(), Some(&*hint), transient));
    (what.replace(&*path.to_string_lossy(), "FILE"), hint, transient)
}

#[tokio::test]
async fn reports_files_that_are_not_databases() {
    let folder = tempfile::tempdir().unwrap();
    let within = |name: &str| folder.path().join(name);
    for (name, length) in [("tiny", 1), ("short", 50), ("page", 600), ("long", 20_000)] {
        fs::write(within(name), "CREATE TABLE t (x);\n".repeat(1_000).split_at(length).0).unwrap();
        assert_eq!(trouble(&within(name)).await.0, "`FILE` is not a SQLite database", "{name}");
    }
    fs::write(within("cut"), b"SQLite format 3\0").unwrap();
    assert_eq!(trouble(&within("cut")).await.0, "`FILE` is not a SQLite database");

    let (what, hint, _) = trouble(&within("missing.db")).await;
    assert_eq!((what.as_str(), hint.as_str()), ("there is no file `FILE`", "check the path; nothing is created"));
    assert_eq!(trouble(&within("no/such/folder.db")).await.0, "there is no file `FILE`");
    assert_eq!(trouble(Path::new(":memory:")).await.0, "there is no file `FILE`");
    // No address that SQLite would understand: the name of a file, and there is none.
    assert_eq!(trouble(Path::new("file:x.db?mode=rwc")).await.0, "there is no file or folder `x.db?mode=rwc`");

    // A folder of files could be asked; where there are none, it says which it looked for.
    let (what, hint, _) = trouble(folder.path()).await;
    assert_eq!(what, "`FILE` is a folder without any CSV, TSV, JSON, JSON lines, Parquet or Excel file");
    assert!(hint.starts_with("files that can be read end in csv, tsv,"), "{hint}");
    fs::write(within("b.db"), "").unwrap();
    assert!(trouble(folder.path()).await.1.contains("such as b.db"));
    let (what, hint, _) = trouble(Path::new(&format!("sqlite:{}", folder.path().display()))).await;
    assert!(what.ends_with("is a folder, not a database file") && hint.contains("such as b.db"), "{what}: {hint}");

    let nul = folder.path().join("a\0b");
    assert!(trouble(&nul).await.0.contains("cannot be opened"));
    assert_eq!(names_in(folder.path()), ["b.db", "cut", "long", "page", "short", "tiny"]);
}

#[cfg(unix)]
#[tokio::test]
async fn rejects_pipes_devices_and_dangling_links_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert_eq!(trouble(&pipe).await.0, "`FILE` is not a regular file");
    assert_eq!(trouble(Path::new("/dev/null")).await.0, "`FILE` is not a regular file");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("gone", &link).unwrap();
    assert_eq!(trouble(&link).await.0, "there is no file `FILE`");
}

#[cfg(unix)]
#[tokio::test]
async fn reports_a_file_without_read_permission() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, file) = database("CREATE TABLE t (x)");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    // Whoever may read everything (root) cannot be kept out, and then there is nothing to see here.
    if fs::File::open(&file).is_err() {
        assert_eq!(trouble(&file).await.0, "`FILE` may not be read");
    }
}

#[tokio::test]
async fn reads_an_empty_file_as_a_database_without_tables() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.db");
    fs::write(&file, "").unwrap();
    let engine = SqliteEngine::open(&file).unwrap();
    engine.test_connection().await.unwrap();
    assert!(engine.schema().await.unwrap().tables().is_empty());
    assert_eq!(ask(&engine, "SELECT 1").await.unwrap().rows, [[Cell::Integer(1)]]);
    assert_eq!(fs::metadata(&file).unwrap().len(), 0);
    assert_eq!(names_in(folder.path()), ["empty.db"]);
}

#[tokio::test]
async fn reports_a_damaged_file() {
    let (_folder, file) = database("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    let mut bytes = fs::read(&file).unwrap();
    bytes[100..4000].fill(0xff);
    fs::write(&file, bytes).unwrap();
    assert_eq!(trouble(&file).await.0, "`FILE` is damaged: database disk image is malformed");
}

#[tokio::test]
async fn waits_for_a_locked_file_then_reports_transient() {
    let (_folder, file) = database("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    let writer = Connection::open(&file).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    let (what, _, transient) = in_time("the lock", trouble(&file)).await;
    assert_eq!((what.as_str(), transient), ("`FILE` is locked by another program", true));
    assert!(begun.elapsed() >= Duration::from_millis(1_500), "{:?}", begun.elapsed());
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(value(&file, "SELECT x FROM t").await.unwrap(), Cell::Integer(1));

    // A short time limit is also a limit on waiting, and a warm connection reports a lock as a fresh one does.
    let engine = SqliteEngine::open(&file).unwrap();
    engine.test_connection().await.unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let query = approve(&engine, "SELECT x FROM t");
    let limits = Limits { time: Duration::from_millis(50), ..Limits::default() };
    let begun = Instant::now();
    let error = loop {
        let error = engine.execute(&query, &limits, &CancelFlag::new()).await.unwrap_err();
        // A wait for the lock that outlasts the limit is always given up like this; one that does not, only where its thread was late.
        let is_late = matches!(error, Error::TimedOut { .. });
        if !is_late || begun.elapsed() > hang_timeout() {
            break error;
        }
    };
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(error.engine_error().unwrap().code, "SQLITE_BUSY");
}

#[tokio::test]
async fn reading_keeps_a_writer_lock_of_the_same_process() {
    let (_folder, file) = database("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    let writer = Connection::open(&file).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(value(&file, "SELECT count(*) FROM t").await.unwrap(), Cell::Integer(1));
    assert_eq!(value(&file, "SELECT count(*) FROM t").await.unwrap(), Cell::Integer(1));
    // Only another program can tell whether the operating system still holds the writer's lock.
    let Ok(other) = std::process::Command::new("sqlite3").arg(&file).arg("INSERT INTO t VALUES (3)").output() else {
        return;
    };
    assert!(!other.status.success(), "the writer's lock was lost");
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(value(&file, "SELECT count(*) FROM t").await.unwrap(), Cell::Integer(2));
}

#[tokio::test]
async fn reads_wal_databases_without_leaving_files() {
    let (folder, file) = database("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    assert_eq!(names_in(folder.path()), ["a.db"]);
    let engine = SqliteEngine::open(&file).unwrap();
    assert_eq!(ask(&engine, "SELECT count(*) FROM t").await.unwrap().rows, [[Cell::Integer(1)]]);
    assert_eq!(engine.schema().await.unwrap().tables().len(), 1);
    assert_eq!(names_in(folder.path()), ["a.db"]);

    // Somebody begins to write: what is committed is seen, though it is only in the log.
    let writer = Connection::open(&file).unwrap();
    writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(ask(&engine, "SELECT count(*) FROM t").await.unwrap().rows, [[Cell::Integer(2)]]);
    writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3)").unwrap();
    assert_eq!(ask(&engine, "SELECT count(*) FROM t").await.unwrap().rows, [[Cell::Integer(2)]]);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(ask(&engine, "SELECT count(*) FROM t").await.unwrap().rows, [[Cell::Integer(3)]]);
    drop(writer);
    assert_eq!(ask(&engine, "SELECT count(*) FROM t").await.unwrap().rows, [[Cell::Integer(3)]]);
    drop(engine);

    // And again at rest, where the writer left nothing but the file.
    Connection::open(&file).unwrap().execute_batch("INSERT INTO t VALUES (4)").unwrap();
    assert_eq!(value(&file, "SELECT count(*) FROM t").await.unwrap(), Cell::Integer(4));
}

/// Copies a database as a crash would leave it: with the files beside it that its writer has not yet dealt with.
fn crashed(mode: &str, kept: &[&str]) -> (TempDir, PathBuf) {
    let (folder, file) =
        database(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t (x); INSERT INTO t VALUES (1)"));
    let writer = Connection::open(&file).unwrap();
    // A cache of one page makes SQLite write to the file before the transaction ends.
    let writes = "PRAGMA cache_size = 1; INSERT INTO t VALUES (2); BEGIN;
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO t SELECT hex(zeroblob(100)) FROM n";
    writer.execute_batch(writes).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for name in kept {
        fs::copy(folder.path().join(name), elsewhere.path().join(name)).unwrap();
    }
    let file = elsewhere.path().join("a.db");
    (elsewhere, file)
}

#[tokio::test]
async fn reports_a_database_with_an_unfinished_write() {
    let (folder, file) = crashed("DELETE", &["a.db", "a.db-journal"]);
    let (what, hint, transient) = trouble(&file).await;
    assert_eq!(what, "`FILE` has an unfinished write, which cannot be recovered read-only");
    assert!(hint.contains("so that it can recover") && !transient);
    // Nothing was mended or thrown away on the quiet.
    assert_eq!(names_in(folder.path()), ["a.db", "a.db-journal"]);
}

#[tokio::test]
async fn reads_a_leftover_wal_log() {
    let (_folder, file) = crashed("WAL", &["a.db", "a.db-wal"]);
    assert_eq!(value(&file, "SELECT count(*) FROM t").await.unwrap(), Cell::Integer(2));
}

#[cfg(unix)]
#[tokio::test]
async fn reads_or_reports_databases_in_read_only_folders() {
    use std::os::unix::fs::PermissionsExt;
    let close = |folder: &TempDir, mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();

    let (resting, file) = database("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    close(&resting, 0o555);
    assert_eq!(value(&file, "SELECT count(*) FROM t").await.unwrap(), Cell::Integer(1));
    close(&resting, 0o755);

    let (left, file) = crashed("WAL", &["a.db", "a.db-wal"]);
    close(&left, 0o555);
    // Whoever may write anywhere (root) cannot be kept out.
    if fs::write(left.path().join("x"), "").is_err() {
        let (what, hint, _) = trouble(&file).await;
        assert_eq!(what, "`FILE` cannot be opened");
        assert!(hint.contains("-wal"), "{hint}");
    }
    close(&left, 0o755);
}

#[tokio::test]
async fn notices_a_replaced_or_removed_file() {
    let (folder, file) = database("CREATE TABLE t (x); INSERT INTO t VALUES ('old')");
    let engine = SqliteEngine::open(&file).unwrap();
    assert_eq!(ask(&engine, "SELECT x FROM t").await.unwrap().rows, [[Cell::Text("old".into())]]);
    let (_other_folder, other) = database("CREATE TABLE t (x); INSERT INTO t VALUES ('new')");
    fs::copy(&other, folder.path().join("b.db")).unwrap();
    fs::rename(folder.path().join("b.db"), &file).unwrap();
    assert_eq!(ask(&engine, "SELECT x FROM t").await.unwrap().rows, [[Cell::Text("new".into())]]);
    fs::remove_file(&file).unwrap();
    assert!(ask(&engine, "SELECT x FROM t").await.unwrap_err().to_string().starts_with("there is no file"));
    assert!(names_in(folder.path()).is_empty());
}

#[tokio::test]
async fn stops_a_dropped_query() {
    let (_folder, file) = database("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    let engine = SqliteEngine::open(&file).unwrap();
    let endless = "WITH RECURSIVE n (i) AS (SELECT x FROM t UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let (query, limits, cancel) = (approve(&engine, endless), long_limits(), CancelFlag::new());
    // As long as a query runs it holds a lock, beside which nobody can have the file alone.
    let writer = Connection::open(&file).unwrap();
    writer.busy_timeout(Duration::ZERO).unwrap();
    let is_read = || writer.execute_batch("BEGIN EXCLUSIVE; COMMIT").is_err();
    tokio::select! {
        outcome = engine.execute(&query, &limits, &cancel) => panic!("{outcome:?}"),
        () = eventually("the query runs", async || is_read()) => {}
    }
    wait_until("the query has ended", || !is_read());
}

#[test]
fn works_without_a_runtime() {
    let (_folder, file) = database("CREATE TABLE t (x); INSERT INTO t VALUES (7)");
    let engine = SqliteEngine::open(&file).unwrap();
    let mut asked = Box::pin(ask(&engine, "SELECT x FROM t"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(answer) = asked.as_mut().poll(&mut context) else { panic!("it waited for a runtime") };
    assert_eq!(answer.unwrap().rows, [[Cell::Integer(7)]]);
}

#[tokio::test]
async fn converts_every_storage_class_to_cells() {
    let (_folder, file) = database("CREATE TABLE t (x)");
    for (sql, cell) in [
        ("SELECT NULL", Cell::Null),
        ("SELECT 9223372036854775807", Cell::Integer(i64::MAX)),
        ("SELECT 0.1", Cell::Number(0.1)),
        ("SELECT 9e999", Cell::Number(f64::INFINITY)),
        // SQLite has no NaN: it is NULL.
        ("SELECT 9e999 - 9e999", Cell::Null),
        ("SELECT 1 / 0", Cell::Null),
        ("SELECT 'naïve'", Cell::Text("naïve".into())),
        ("SELECT CAST(x'61ff62' AS TEXT)", Cell::Text("a\u{fffd}b".into())),
        ("SELECT 'a' || char(0) || 'b'", Cell::Text("a\0b".into())),
        ("SELECT x'00FF1a'", Cell::Binary("00ff1a".into())),
        ("SELECT 1 = 1", Cell::Integer(1)),
        ("SELECT sqrt(4)", Cell::Number(2.0)),
        ("SELECT pow(2, 10)", Cell::Number(1024.0)),
        ("SELECT floor(-1.5)", Cell::Number(-2.0)),
        ("SELECT round(ln(exp(1)), 6)", Cell::Number(1.0)),
    ] {
        assert_eq!(value(&file, sql).await.unwrap(), cell, "{sql}");
    }
}

#[tokio::test]
async fn truncates_before_a_value_over_the_byte_limit() {
    let (_folder, file) =
        database("CREATE TABLE t (x); INSERT INTO t VALUES ('small'), (zeroblob(3000000)), ('after')");
    let engine = SqliteEngine::open(&file).unwrap();
    let limits = Limits { bytes: 1_000_000, ..limits() };
    let rows = engine.execute(&approve(&engine, "SELECT x FROM t"), &limits, &CancelFlag::new()).await.unwrap();
    assert_eq!((rows.rows, rows.truncated), (vec![vec![Cell::Text("small".into())]], true));
}

fn key(columns: &[&str], table: &str, references: &[&str]) -> ForeignKey {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    ForeignKey { columns: owned(columns), table: table.into(), references: owned(references), inferred: false }
}

fn columns(table: &Table) -> Vec<(&str, &str, bool)> {
    table.columns.iter().map(|column| (column.name.as_str(), column.type_name.as_str(), column.nullable)).collect()
}

#[tokio::test]
async fn columns_keep_their_order_types_and_nullability() {
    let schema = schema(
        r#"CREATE TABLE a (id INTEGER PRIMARY KEY, "Mixed Case" varchar(20) NOT NULL, plain, twice INT AS (id * 2), kept INT AS (id) STORED);
           CREATE TABLE b (code TEXT PRIMARY KEY, n INT);
           CREATE TABLE c (x TEXT, y TEXT, PRIMARY KEY (y, x)) WITHOUT ROWID;
           CREATE TABLE d (n INT PRIMARY KEY);
           CREATE VIEW v AS SELECT id, plain AS id FROM a;
           CREATE VIEW broken AS SELECT * FROM gone;
           CREATE VIEW "half broken" AS SELECT missing FROM a;"#,
    )
    .await;
    let table = |name| schema.table(name).unwrap();
    assert_eq!(schema.tables().iter().map(|table| table.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d", "v"]);
    assert_eq!(
        columns(table("a")),
        [
            ("id", "INTEGER", false),
            ("Mixed Case", "varchar(20)", false),
            ("plain", "", true),
            ("twice", "INT", true),
            ("kept", "INT", true)
        ]
    );
    assert_eq!(table("a").primary_key, ["id"]);
    // Only an INTEGER PRIMARY KEY is the row's number; SQLite lets other keys be NULL.
    assert_eq!(columns(table("b")), [("code", "TEXT", true), ("n", "INT", true)]);
    assert_eq!(columns(table("d")), [("n", "INT", true)]);
    assert_eq!(columns(table("c")), [("x", "TEXT", false), ("y", "TEXT", false)]);
    assert_eq!(table("c").primary_key, ["y", "x"]);
    assert_eq!(table("v").kind, TableKind::View);
    assert_eq!(columns(table("v")).len(), 2);
}

#[tokio::test]
async fn resolves_foreign_keys_and_omits_dangling_ones() {
    let schema = schema(
        r#"CREATE TABLE "Parent" (p INTEGER PRIMARY KEY, other TEXT UNIQUE);
           CREATE TABLE pair (x INT, y INT, PRIMARY KEY (y, x));
           CREATE TABLE child (
               first INT REFERENCES parent,
               second TEXT REFERENCES parent (OTHER),
               third INT REFERENCES gone (id),
               fourth INT REFERENCES parent (no_such_column),
               k INT, l INT,
               self INT REFERENCES child (first),
               FOREIGN KEY (k, l) REFERENCES pair,
               FOREIGN KEY (k) REFERENCES pair);"#,
    )
    .await;
    let declared: Vec<ForeignKey> =
        schema.table("child").unwrap().foreign_keys.iter().filter(|key| !key.inferred).cloned().collect();
    assert_eq!(
        declared,
        [
            key(&["first"], "Parent", &["p"]),
            key(&["second"], "Parent", &["other"]),
            key(&["self"], "child", &["first"]),
            key(&["k", "l"], "pair", &["y", "x"]),
        ]
    );
}

#[tokio::test]
async fn counts_only_indexes_that_make_columns_unique() {
    let schema = schema(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c, d, e, UNIQUE (d, c));
         CREATE UNIQUE INDEX whole ON t (e);
         CREATE UNIQUE INDEX again ON t (e DESC);
         CREATE UNIQUE INDEX partial ON t (c) WHERE d > 0;
         CREATE UNIQUE INDEX expression ON t (lower(c));
         CREATE INDEX ordinary ON t (d);",
    )
    .await;
    assert_eq!(schema.table("t").unwrap().unique, [vec!["b"], vec!["d", "c"], vec!["e"]]);
}

#[tokio::test]
async fn lists_virtual_tables_without_their_shadow_tables() {
    let (_folder, file) = database(
        "CREATE VIRTUAL TABLE places USING rtree (id, x0, x1, y0, y1); INSERT INTO places VALUES (1, 0, 1, 0, 1), (2, 5, 6, 5, 6);
         CREATE VIRTUAL TABLE notes USING fts5 (title, body); INSERT INTO notes VALUES ('a', 'some words');
         CREATE VIRTUAL TABLE old_notes USING fts4 (body); INSERT INTO old_notes VALUES ('other words');
         CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT); ANALYZE;",
    );
    let engine = SqliteEngine::open(&file).unwrap();
    let schema = engine.schema().await.unwrap();
    let names: Vec<&str> = schema.tables().iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["places", "notes", "old_notes", "counted"]);
    assert_eq!(
        columns(schema.table("notes").unwrap()).iter().map(|column| column.0).collect::<Vec<_>>(),
        ["title", "body"]
    );
    assert_eq!(schema.table("places").unwrap().columns.len(), 5);
    for (sql, answer) in [
        ("SELECT id FROM places WHERE x0 > 3", Cell::Integer(2)),
        ("SELECT count(*) FROM places", Cell::Integer(2)),
        ("SELECT title FROM notes WHERE notes MATCH 'words'", Cell::Text("a".into())),
        ("SELECT body FROM old_notes WHERE old_notes MATCH 'other'", Cell::Text("other words".into())),
    ] {
        let rows = ask(&engine, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(rows.rows, [[answer]], "{sql}");
    }
}

#[tokio::test]
async fn reads_samples_only_on_request() {
    let (_folder, file) = database(
        "CREATE TABLE t (a TEXT, b INT, c TEXT);
         INSERT INTO t VALUES ('x', 1, NULL), ('y', 2, ''), ('x', 3, hex(zeroblob(99))), ('z', 4, 'ok');",
    );
    let samples = |schema: Schema| -> Vec<Vec<String>> {
        schema.tables()[0].columns.iter().map(|column| column.samples.clone()).collect()
    };
    let without = SqliteEngine::open(&file).unwrap().schema().await.unwrap();
    assert!(samples(without).iter().all(Vec::is_empty));
    let with = SqliteEngine::open(&file).unwrap().introspect_samples(2).schema().await.unwrap();
    assert_eq!(samples(with), [vec!["x", "y"], vec![], vec!["ok"]]);
}

#[tokio::test]
async fn denied_table_is_denied_behind_a_view() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("views.db");
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer
        .execute_batch("CREATE TABLE secret (pw); INSERT INTO secret VALUES (42); CREATE VIEW v AS SELECT pw FROM secret; CREATE TABLE t (a);")
        .unwrap();
    drop(writer);
    let engine = querymend_engine::open(path.to_str().unwrap()).unwrap();
    let schema = engine.schema().await.unwrap();
    let ask = async |policy: Policy| {
        let context =
            ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
        let approved = review("SELECT pw FROM v", &context).approve().unwrap();
        engine.execute(&approved, &limits(), &CancelFlag::new()).await
    };
    assert!(
        ask(Policy { deny_tables: vec!["secret".into()], ..Policy::default() }).await.is_err(),
        "the view shows a denied table"
    );
    assert_eq!(ask(Policy::default()).await.unwrap().rows.len(), 1, "a policy does not outlive its query");
    assert_eq!(
        ask(Policy { allow_tables: Some(vec!["v".into()]), ..Policy::default() }).await.unwrap().rows.len(),
        1,
        "an allowed view may read its tables"
    );
}

#[tokio::test]
async fn accepts_hidden_columns_of_full_text_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fts.db");
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("CREATE VIRTUAL TABLE ft USING fts5(body); INSERT INTO ft VALUES ('hello world');").unwrap();
    drop(writer);
    let engine = querymend_engine::open(path.to_str().unwrap()).unwrap();
    let schema = engine.schema().await.unwrap();
    let policy = Policy::default();
    let context = ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
    let reviewed = review("SELECT body, rank FROM ft WHERE ft MATCH 'hello' ORDER BY rank", &context);
    assert!(reviewed.is_clean(), "{:?}", reviewed.findings);
    let rows = engine.execute(&reviewed.approve().unwrap(), &limits(), &CancelFlag::new()).await.unwrap();
    assert_eq!(rows.rows.len(), 1);
}

/// What `Engine::execute` gives for a query under a policy, however the review looks at its names.
async fn under(engine: &dyn Engine, policy: &Policy, sql: &str) -> Result<Rows, Error> {
    // Approved as if everything could be read: the engine alone must hold.
    let context = ReviewContext { schema: None, dialect: engine.dialect(), policy, question: None };
    let query = review(sql, &context).approve().unwrap_or_else(|refused| panic!("{sql}: {refused}"));
    engine.execute(&query, &limits(), &CancelFlag::new()).await
}

/// Set for the process that [`deadline_and_cancel_end_one_long_instruction`] starts.
const ALONE: &str = "QUERYMEND_TEST_ALONE";

#[tokio::test]
async fn deadline_and_cancel_end_one_long_instruction() {
    // The threads that are left behind compute for hours, so that they have a process which they end with.
    if std::env::var_os(ALONE).is_none() {
        let name = "sqlite::deadline_and_cancel_end_one_long_instruction";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = again.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let (said, wrong) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success() && said.contains("1 passed"), "{said}{wrong}");
        return;
    }
    let (_folder, file) = database("CREATE TABLE t (x)");
    let engine = SqliteEngine::open(&file).unwrap();
    // Compares each of eight million places with seven million bytes.
    let query = approve(&engine, "SELECT instr(zeroblob(15000000) || x'01', zeroblob(7000000) || x'02')");
    let time = Duration::from_millis(300);
    let (short, cancel) = (Limits { time, ..Limits::default() }, CancelFlag::new());
    let outcome = in_time("the limit", engine.execute(&query, &short, &cancel)).await;
    assert_eq!(outcome, Err(Error::TimedOut { after: time }));

    let later = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let limits = long_limits();
    let asked = async { tokio::join!(engine.execute(&query, &limits, &cancel), later).0 };
    assert_eq!(in_time("the cancel", asked).await, Err(Error::Cancelled));
    // The threads that were left behind keep neither the engine nor the end of this test.
    assert_eq!(ask(&engine, "SELECT 7").await.unwrap().rows, [[Cell::Integer(7)]]);
}

#[tokio::test]
async fn denied_table_is_denied_behind_a_virtual_table() {
    let (_folder, file) = database(
        "CREATE TABLE salaries (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO salaries VALUES (1, 'four thousand');
         CREATE VIRTUAL TABLE docs USING fts5 (body); INSERT INTO docs VALUES ('a secret');
         CREATE VIRTUAL TABLE words USING fts5vocab (docs, row);
         CREATE VIRTUAL TABLE old USING fts4 (body); INSERT INTO old VALUES ('an old secret');
         CREATE VIRTUAL TABLE places USING rtree (id, x0, x1); INSERT INTO places VALUES (1, 0, 1);
         CREATE VIRTUAL TABLE pay USING fts5 (body, content='salaries', content_rowid='id');
         INSERT INTO pay (pay) VALUES ('rebuild'); CREATE TABLE docs_of_mine (x); INSERT INTO docs_of_mine VALUES (1);",
    );
    let engine = SqliteEngine::open(&file).unwrap();
    let secret = [
        "SELECT body FROM docs",
        "SELECT c0 FROM docs_content",
        "SELECT hex(block) FROM docs_data",
        "SELECT count(*) FROM docs_idx",
        "SELECT * FROM docs_docsize",
        "SELECT * FROM docs_config",
        "SELECT term FROM words",
        "SELECT c0body FROM old_content",
        "SELECT hex(root) FROM old_segdir",
        "SELECT count(*) FROM old_segments",
        "SELECT * FROM old_stat",
        "SELECT hex(data) FROM places_node",
        "SELECT * FROM places_rowid",
        "SELECT body FROM pay",
        "SELECT rowid FROM pay WHERE pay MATCH 'thousand'",
        "SELECT hex(block) FROM pay_data",
    ];
    let deny = ["docs", "old", "places", "salaries"].map(String::from).to_vec();
    let policy = Policy { deny_tables: deny, ..Policy::default() };
    for sql in secret {
        // Once without a policy first, so that a pooled connection has seen the table.
        under(&engine, &Policy::default(), sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let context = ReviewContext { schema: None, dialect: engine.dialect(), policy: &policy, question: None };
        // What the review refuses by its name never gets here.
        if let Ok(query) = review(sql, &context).approve() {
            let outcome = engine.execute(&query, &limits(), &CancelFlag::new()).await;
            assert!(matches!(outcome, Err(Error::Rejected(_))), "{sql}: {outcome:?}");
        }
    }
    assert_eq!(under(&engine, &policy, "SELECT x FROM docs_of_mine").await.unwrap().rows.len(), 1);
    // What is allowed may use what it is made of.
    let allow = Policy { allow_tables: Some(vec!["docs".into(), "old".into()]), ..Policy::default() };
    for sql in ["SELECT body FROM docs WHERE docs MATCH 'secret'", "SELECT body FROM old WHERE old MATCH 'secret'"] {
        assert_eq!(under(&engine, &allow, sql).await.unwrap().rows.len(), 1, "{sql}");
    }
    // What only gives its argument another form is no table.
    assert_eq!(under(&engine, &allow, "SELECT value FROM json_each('[1, 2]')").await.unwrap().rows.len(), 2);
}

#[tokio::test]
async fn denied_function_is_denied_behind_a_view() {
    let (_folder, file) = database("CREATE VIEW v AS SELECT hex('a') AS x; CREATE VIEW w AS SELECT upper('a') AS x");
    let engine = SqliteEngine::open(&file).unwrap();
    let policy = Policy { deny_functions: vec!["HEX".into()], ..Policy::default() };
    assert!(matches!(under(&engine, &policy, "SELECT x FROM v").await, Err(Error::Rejected(_))));
    assert_eq!(under(&engine, &policy, "SELECT x FROM w").await.unwrap().rows, [[Cell::Text("A".into())]]);
}

/// Returns the least number of steps, in thousands, within which a query is answered.
async fn thousands_of_steps(engine: &dyn Engine, sql: &str) -> u64 {
    let query = approve(engine, sql);
    for thousands in 0..1_000 {
        let limits = Limits { steps: Some(thousands * 1_000), ..limits() };
        match engine.execute(&query, &limits, &CancelFlag::new()).await {
            Err(Error::StepLimit { .. }) => {}
            Ok(_) => return thousands,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("{sql} takes more than a million steps");
}

#[tokio::test]
async fn counts_equal_steps_on_every_connection() {
    let (_folder, file) = database(
        "CREATE TABLE t (x INTEGER, y TEXT);
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO t SELECT i, 'value ' || i FROM n;",
    );
    let sql = "SELECT count(*) FROM t WHERE y = 'nowhere'";
    let fresh = thousands_of_steps(&SqliteEngine::open(&file).unwrap(), sql).await;
    assert!(fresh > 5, "{fresh}");
    let warm = SqliteEngine::open(&file).unwrap();
    for _ in 0..3 {
        assert_eq!(thousands_of_steps(&warm, sql).await, fresh);
    }
    // A connection that was stopped is as good as any.
    assert_eq!(ask(&warm, sql).await.unwrap().rows, [[Cell::Integer(0)]]);
}

#[tokio::test]
async fn step_limit_stops_an_endless_lookup() {
    let (_folder, file) = database("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3), (4), (5), (6), (7), (8);");
    let engine = SqliteEngine::open(&file).unwrap();
    let endless = approve(&engine, "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j");
    let lookup = Limits { time: hang_timeout(), ..Limits::lookup(1) };
    let stopped = in_time("the lookup", engine.execute(&endless, &lookup, &CancelFlag::new())).await.unwrap_err();
    assert!(matches!(stopped, Error::StepLimit { .. }), "{stopped:?}");
    assert!(stopped.to_string().contains("steps") && stopped.hint().is_some() && !stopped.is_transient());
    let small = approve(&engine, "SELECT 1 FROM t WHERE x = 8");
    assert_eq!(engine.execute(&small, &lookup, &CancelFlag::new()).await.unwrap().rows.len(), 1);
}

#[tokio::test]
async fn data_version_changes_with_data_only() {
    for mode in ["DELETE", "WAL"] {
        let (_folder, file) =
            database(&format!("PRAGMA journal_mode = {mode}; CREATE TABLE t (x); INSERT INTO t VALUES (1);"));
        let version = async || SqliteEngine::open(&file).unwrap().data_version().await.unwrap().unwrap();
        let first = version().await;
        assert!(first.identity.starts_with("sqlite:/") && first.identity.ends_with("a.db"), "{mode}: {first:?}");
        value(&file, "SELECT count(*) FROM t").await.unwrap();
        assert_eq!(version().await, first, "{mode}");
        // Same size, and within the same tick of the clock: the file's own counter tells.
        let writer = Connection::open(&file).unwrap();
        writer.execute("UPDATE t SET x = 2", []).unwrap();
        let second = version().await;
        assert_ne!(second.version, first.version, "{mode}");
        writer.execute_batch("CREATE TABLE u (y)").unwrap();
        drop(writer);
        let third = version().await;
        assert!(third.version != second.version && third.identity == first.identity, "{mode}");
    }
}
