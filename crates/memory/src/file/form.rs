//! The form of the file: what it is made of, and how a file of an older version becomes one of this version.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::refusal::{Trouble, from_system, not_ours, shown, too_new};
use crate::Error;

/// "QMEM": by which a file is known to be ours.
const OURS: i64 = 0x514d_454d;

/// What makes a file of version n one of version n + 1, in order. Only ever added to.
static STEPS: &[&str] = &["
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

/// So long another program is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// So long is waited before the file is opened once more.
const PAUSE: Duration = Duration::from_millis(2);

/// Opens a file for writing, makes it where there is none, and brings it to this version. Whatever is no file of ours is
/// left as it is.
pub(super) fn open(path: &Path) -> Result<Connection, Error> {
    let name = shown(path);
    if path.is_dir() {
        return Err(Error::Unusable {
            message: format!("`{name}` is a folder"),
            hint: "give the path of a file in it, such as `examples.db`".into(),
        });
    }
    make(path, &name)?;
    // SQLite waits for whoever writes, but not for the one who turns the log on, nor for the last one who clears it away.
    let begun = Instant::now();
    loop {
        match ready(path, &name) {
            Err(trouble) if trouble.is_busy() && begun.elapsed() < PATIENCE => thread::sleep(PAUSE),
            opened => return opened.map_err(|trouble| trouble.told(&name)),
        }
    }
}

/// A connection to a file that is there, once it is known to be ours and is of this version.
fn ready(path: &Path, name: &str) -> Result<Connection, Trouble> {
    let mut connection = connect(path)?;
    // Nothing may be written before it is known whose file it is. All that says so is read in one step: another program may
    // be making the file in this moment, and half of what it wrote would look like somebody else's.
    let look = connection.transaction()?;
    is_ours(&look, name)?;
    look.finish()?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A large addition grows the log by as much; it is cut back afterwards.
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again now that no other program can write: it may have made the file just now.
    is_ours(&step, name)?;
    let version = version(&step)?;
    if (version as usize) < STEPS.len() {
        for made in &STEPS[version as usize..] {
            step.execute_batch(made)?;
        }
        step.pragma_update(None, "application_id", OURS)?;
        step.pragma_update(None, "user_version", STEPS.len() as i64)?;
    }
    step.commit()?;
    Ok(connection)
}

/// Another connection to a file that was opened before, for reading.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    Ok(connection)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// An empty file that others cannot read: questions may tell more than their askers would have others read. SQLite gives the
/// files that it puts beside it the same permissions.
fn make(path: &Path, name: &str) -> Result<(), Error> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|error| from_system(name, &error))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(from_system(name, &error)),
    }
}

/// That it is a file of ours, or an empty one.
fn is_ours(connection: &Connection, name: &str) -> Result<(), Trouble> {
    let known = STEPS.len() as i64;
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = version(connection)?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    match (id, version, tables) {
        (OURS, version, _) if version > known => Err(Trouble::Told(too_new(name, version, known))),
        (OURS, 1.., 1..) | (0, 0, 0) => Ok(()),
        _ => Err(Trouble::Told(not_ours(name))),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
