//! Schema of the file and its migrations.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::errors::{FileStoreFailure, display_path, io_error, newer_version, not_an_example_file};
use crate::Error;

/// SQLite application id that marks our files: "QMEM".
const APPLICATION_ID: i64 = 0x514d_454d;

/// Migrations from schema version n to n + 1, in order. Append-only.
static MIGRATIONS: &[&str] = &["
    CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT INTO about VALUES ('sequence', 0), ('pruned', 0);
    -- `changed` is the number of the last write to a row: by it other programs see what is new.
    CREATE TABLE example (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        changed INTEGER NOT NULL,
        id TEXT NOT NULL UNIQUE,
        database TEXT NOT NULL,
        dialect TEXT NOT NULL,
        standing TEXT NOT NULL,
        provenance TEXT NOT NULL,
        uses INTEGER NOT NULL,
        helped INTEGER NOT NULL,
        hurt INTEGER NOT NULL,
        added INTEGER NOT NULL,
        metric TEXT,
        question TEXT NOT NULL,
        sql TEXT NOT NULL
    );
    CREATE INDEX example_changed ON example (changed);
    CREATE INDEX example_added ON example (added);
    CREATE INDEX example_kind ON example (database, dialect, standing, provenance);
    -- What a search holds in memory; apart from the text, so that it is read quickly.
    CREATE TABLE vector (
        number INTEGER PRIMARY KEY,
        scale REAL NOT NULL,
        skeleton INTEGER NOT NULL,
        words BLOB NOT NULL,
        codes BLOB NOT NULL
    );
    -- The second eight bits of each vector's numbers, read only for the nearest.
    CREATE TABLE rest (number INTEGER PRIMARY KEY, rest BLOB NOT NULL);
    CREATE TABLE removed (changed INTEGER NOT NULL, number INTEGER NOT NULL);
    CREATE INDEX removed_changed ON removed (changed);
    -- The index of large files: centres, and the rows around each. Rows that are in none are found all the same.
    CREATE TABLE list (list INTEGER PRIMARY KEY, scale REAL NOT NULL, codes BLOB NOT NULL, numbers BLOB NOT NULL);
"];

/// Maximum time to wait for another process to release the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);
/// Delay before another attempt to open the file.
const BUSY_RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// Opens a file for writing, creates it if necessary, and migrates it to the current version.
///
/// Files of other applications are left unchanged.
pub(super) fn open(path: &Path) -> Result<Connection, Error> {
    let name = display_path(path);
    if path.is_dir() {
        return Err(Error::Unusable {
            message: format!("`{name}` is a folder"),
            hint: "give the path of a file in it, such as `examples.db`".into(),
        });
    }
    create_file(path, &name)?;
    // SQLite's busy timeout covers writers, but neither the process that switches WAL mode on nor
    // the last one, which deletes the WAL.
    let started = Instant::now();
    loop {
        match open_migrated(path, &name) {
            Err(failure) if failure.is_busy() && started.elapsed() < BUSY_TIMEOUT => thread::sleep(BUSY_RETRY_INTERVAL),
            opened => return opened.map_err(|failure| failure.into_error(&name)),
        }
    }
}

/// Connects to an existing file, verifies that it is ours and migrates it.
fn open_migrated(path: &Path, name: &str) -> Result<Connection, FileStoreFailure> {
    let mut connection = connect(path)?;
    // Nothing may be written before the file is identified. All evidence is read in one
    // transaction, because a file that another process is half-way through creating would look like
    // a foreign one.
    let transaction = connection.transaction()?;
    check_application_id(&transaction, name)?;
    transaction.finish()?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A large transaction grows the WAL; this truncates it afterwards.
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again under the write lock: another process may have created the schema in the
    // meantime.
    check_application_id(&step, name)?;
    let version = schema_version(&step)?;
    if (version as usize) < MIGRATIONS.len() {
        for migration in &MIGRATIONS[version as usize..] {
            step.execute_batch(migration)?;
        }
        step.pragma_update(None, "application_id", APPLICATION_ID)?;
        step.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    }
    step.commit()?;
    Ok(connection)
}

/// Opens another connection to a migrated file, for reading.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    Ok(connection)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Creates an empty file that other users cannot read, because questions may be confidential.
///
/// SQLite creates its companion files with the same permissions.
fn create_file(path: &Path, name: &str) -> Result<(), Error> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|error| io_error(name, &error))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io_error(name, &error)),
    }
}

/// Checks that the file is one of ours, or empty.
fn check_application_id(connection: &Connection, name: &str) -> Result<(), FileStoreFailure> {
    let known = MIGRATIONS.len() as i64;
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = schema_version(connection)?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    match (id, version, tables) {
        (APPLICATION_ID, version, _) if version > known => {
            Err(FileStoreFailure::Reported(newer_version(name, version, known)))
        }
        (APPLICATION_ID, 1.., 1..) | (0, 0, 0) => Ok(()),
        _ => Err(FileStoreFailure::Reported(not_an_example_file(name))),
    }
}

fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
