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
        moments: "SELECT '2024-03-15' AS d, '2023-12-31 23:10:05' AS t",
        unicode_table: "größen 表",
        is_slow: false,
        transpile_sample: None,
        connection_counter: None,
        has_keys: true,
        server: None,
        folder: Some(folder),
    })
}

mod attacks {
    //! SQLite: what it prepares is read-only by its own word, nothing stands behind it, and its authorizer is asked for reading alone.

    use std::sync::{Arc, Mutex};

    use querymend_engine::open;
    use querymend_sql::EngineError;
    use rusqlite::fallible_iterator::FallibleIterator;
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
    use rusqlite::limits::Limit;
    use rusqlite::{Batch, Connection};

    use crate::attacks::corpora::Material;
    use crate::attacks::{Seen, Tally, approved, files, open_folder};
    use crate::support::is_wanted;

    const CANARY: &str = "PRAGMA user_version = 42;
    CREATE TABLE canary (id INTEGER PRIMARY KEY, song TEXT);
    INSERT INTO canary VALUES (1, 'tweet'), (2, 'chirp'), (3, NULL);
    CREATE TABLE heard (what TEXT);
    CREATE TRIGGER hears AFTER UPDATE ON canary BEGIN INSERT INTO heard VALUES (new.song); END;
    CREATE VIEW songs AS SELECT song FROM canary;";

    /// A connection without any lock, and what its authorizer was asked for besides reading.
    struct Unlocked {
        connection: Connection,
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Unlocked {
        fn open(file: &std::path::Path) -> Self {
            let mut connection = Connection::open(file).unwrap();
            let asked = Arc::new(Mutex::new(Vec::new()));
            let noted = Arc::clone(&asked);
            connection
                .authorizer(Some(move |context: AuthContext<'_>| {
                    let reads = match context.action {
                        AuthAction::Select
                        | AuthAction::Read { .. }
                        | AuthAction::Recursive
                        | AuthAction::Function { .. } => true,
                        // Behind `pragma_table_info('t')`: the value is the name of what is described.
                        AuthAction::Pragma { pragma_name, pragma_value } => {
                            let described =
                                ["_info", "_xinfo", "_list", "_check"].iter().any(|end| pragma_name.ends_with(end));
                            let works = ["optimize", "wal_checkpoint", "incremental_vacuum", "shrink_memory"]
                                .contains(&pragma_name);
                            !works && (pragma_value.is_none() || described)
                        }
                        _ => false,
                    };
                    if !reads {
                        noted.lock().unwrap().push(format!("{:?}", context.action));
                    }
                    Authorization::Allow
                }))
                .unwrap();
            // Whatever runs for long is stopped: it is not about what comes out. SQLite counts the memory of the whole process, and other
            // tests need some of it: `randomblob(500000000)` is refused here, as the engine refuses it.
            connection.progress_handler(2_000_000, Some(|| true)).unwrap();
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 16 << 20).unwrap();
            Self { connection, asked }
        }

        fn classify(&self, sql: &str) -> Seen {
            self.asked.lock().unwrap().clear();
            let changes = self.connection.total_changes();
            let mut statements = Batch::new(&self.connection, sql);
            let mut statement = match statements.next() {
                Ok(Some(statement)) => statement,
                Ok(None) => return Seen::Otherwise("no statement".into()),
                Err(_) => return Seen::Refused,
            };
            // What cannot be prepared behind it is a second statement too.
            if !matches!(statements.next(), Ok(None)) {
                return Seen::Otherwise("several statements".into());
            }
            if !statement.readonly() {
                return Seen::Otherwise("not read-only".into());
            }
            // Read-only by its own word; whether that is kept shows when it runs.
            let mut rows = statement.raw_query();
            let mut taken = 0;
            let ended = loop {
                match rows.next() {
                    Ok(Some(_)) if taken < 200 => taken += 1,
                    Ok(_) => break Seen::OneRead,
                    Err(_) => break Seen::Refused,
                }
            };
            drop(rows);
            if self.connection.total_changes() != changes || !self.connection.is_autocommit() {
                return Seen::Otherwise("it changed something".into());
            }
            // Also while it ran: that is when pragmas behind functions are prepared.
            if let Some(action) = self.asked.lock().unwrap().first() {
                return Seen::Otherwise(format!("asks for {action}"));
            }
            ended
        }
    }

    fn is_read_only_error(_: &str, error: &EngineError) -> bool {
        matches!(error.code.as_str(), "SQLITE_AUTH" | "SQLITE_READONLY" | "SQLITE_PERM")
    }

    #[tokio::test]
    async fn approved_sql_is_one_read_in_sqlite() {
        if !is_wanted("sqlite") {
            return;
        }
        let folder = open_folder();
        let file = folder.path().join("canary.db");
        Connection::open(&file).unwrap().execute_batch(CANARY).unwrap();
        let before = files(folder.path());
        let unlocked = Unlocked::open(&file);
        let engine = open(&file.to_string_lossy()).unwrap();
        let schema = engine.schema().await.unwrap();
        let mut tally = Tally::new("sqlite", is_read_only_error);
        for text in Material::new("sqlite", folder.path(), folder.path()).texts() {
            tally.tried();
            let Some(query) = approved(&text, engine.dialect(), Some(&schema)) else { continue };
            tally.note(query.sql(), unlocked.classify(query.sql()));
            tally.through_the_door(&*engine, &query).await;
        }
        tally.end();
        assert_eq!(files(folder.path()), before);
    }

    #[test]
    fn classifies_writes_in_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("canary.db");
        Connection::open(&file).unwrap().execute_batch(CANARY).unwrap();
        let unlocked = Unlocked::open(&file);
        assert_eq!(unlocked.classify("SELECT song FROM songs"), Seen::OneRead);
        assert_eq!(unlocked.classify("SELECT nothing FROM songs"), Seen::Refused);
        for sql in [
            "DELETE FROM canary",
            "WITH x AS (SELECT 1) DELETE FROM canary",
            "SELECT 1; SELECT 2",
            "SELECT 1; not even SQL",
            "PRAGMA user_version = 7",
            "SELECT * FROM pragma_optimize",
            "BEGIN",
            "ATTACH ':memory:' AS x",
            "-- nothing",
        ] {
            assert!(matches!(unlocked.classify(sql), Seen::Otherwise(_)), "{sql}: {:?}", unlocked.classify(sql));
        }
    }
}
