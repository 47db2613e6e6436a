//! SQLite: what it prepares is read-only by its own word, nothing stands behind it, and its authorizer is asked for reading alone.

use std::sync::{Arc, Mutex};

use querymend_engine::open;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Batch, Connection};

use super::material::Material;
use super::{Seen, Tally, approved, files, open_folder, wanted};

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

#[tokio::test]
async fn c01_what_is_approved_is_one_read_to_sqlite() {
    if !wanted("sqlite") {
        return;
    }
    let folder = open_folder();
    let file = folder.path().join("canary.db");
    Connection::open(&file).unwrap().execute_batch(CANARY).unwrap();
    let before = files(folder.path());
    let unlocked = Unlocked::open(&file);
    let engine = open(&file.to_string_lossy()).unwrap();
    let schema = engine.schema().await.unwrap();
    let mut tally = Tally::new("sqlite");
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
fn what_is_no_read_to_sqlite_is_seen() {
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
