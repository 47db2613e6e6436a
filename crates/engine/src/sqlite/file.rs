//! The file on disk: what it is, whether it can be read, and how to open it without leaving anything beside it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OpenFlags};

use super::lock::House;
use super::{lock, refusal};
use crate::{DataVersion, Error};

const SMALLEST_PAGE: u64 = 512;

/// A database file that was found.
pub(super) struct DatabaseFile {
    /// As the user wrote it, for messages.
    shown: String,
    /// Absolute, so that neither a change of folder nor a name like `file:…` can change what it means.
    path: PathBuf,
}

/// How the file looked at one moment.
///
/// A connection to a database in WAL mode makes SQLite create `-wal` and `-shm` files, even if it only reads. Where
/// they are not there, nobody has the database open: it is then read as if it could not change, which takes no locks
/// and creates nothing, and `at_rest` is how to tell afterwards whether that was true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    identity: (u64, u64),
    at_rest: Option<(u64, Option<SystemTime>)>,
}

impl State {
    /// Whether the file is read without locks.
    pub(super) fn is_unlocked(&self) -> bool {
        self.at_rest.is_some()
    }
}

impl DatabaseFile {
    pub(super) fn find(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        match fs::canonicalize(path) {
            Ok(path) => Ok(Self { shown, path }),
            Err(error) => Err(not_readable(&shown, &error)),
        }
    }

    /// No file: a name for messages about what is only in memory.
    pub(super) fn in_memory(shown: &str) -> Self {
        Self { shown: shown.to_string(), path: PathBuf::new() }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Looks at the file without opening it a second time.
    pub(super) fn state(&self) -> Result<State, Error> {
        let trouble = |error: io::Error| not_readable(&self.shown, &error);
        let metadata = fs::metadata(&self.path).map_err(trouble)?;
        if metadata.is_dir() {
            return Err(Error::unavailable(
                format!("`{}` is a folder, not a database file", self.shown),
                itself(&self.path).unwrap_or_else(|| "name the database file itself".into()),
            ));
        }
        // Opening a pipe would wait for somebody to write into it, and reading a device may do anything.
        if !metadata.is_file() {
            return Err(Error::unavailable(
                format!("`{}` is not a regular file", self.shown),
                "a SQLite database is a file on disk; pipes and devices cannot be read as one",
            ));
        }
        // SQLite takes a file that is too short for its smallest page for an empty database.
        if (1..SMALLEST_PAGE).contains(&metadata.len()) {
            return Err(refusal::not_a_database(&self.shown, None));
        }
        let identity = identity(&metadata);
        let is_wal = says_wal(&self.path, identity).map_err(trouble)?;
        let at_rest = is_wal && !self.has_log();
        let at_rest = at_rest.then(|| (metadata.len(), metadata.modified().ok()));
        Ok(State { identity, at_rest })
    }

    /// Returns what tells this state of the file from any other: where it lies and how long it is, when it was written, the counter
    /// of changes and the schema cookie of its header, and the same of its log. Nothing if the header cannot be read.
    pub(super) fn data_version(&self) -> Result<Option<DataVersion>, Error> {
        let trouble = |error: io::Error| not_readable(&self.shown, &error);
        let metadata = fs::metadata(&self.path).map_err(trouble)?;
        let Some(header) = header(&self.path, identity(&metadata)).map_err(trouble)? else { return Ok(None) };
        // Commits in WAL mode leave the file as it is until the next checkpoint.
        let log = fs::metadata(self.beside("-wal")).ok().filter(|log| log.len() > 0);
        let log = log.map(|log| (log.len(), log.modified().ok()));
        let version =
            format!("{:?} {} {:?} {header:?} {log:?}", identity(&metadata), metadata.len(), metadata.modified().ok());
        Ok(Some(DataVersion { identity: format!("sqlite:{}", self.path.display()), version }))
    }

    /// Whether somebody has the database open in WAL mode, or left a log behind that must be read too.
    fn has_log(&self) -> bool {
        match fs::metadata(self.beside("-wal")) {
            Ok(log) => log.len() > 0 || self.beside("-shm").exists(),
            Err(_) => false,
        }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(ending);
        PathBuf::from(name)
    }

    /// A new connection, locked down.
    pub(super) fn connect(&self, state: &State, patience: Duration) -> Result<(Connection, House), Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = if state.is_unlocked() {
            Connection::open_with_flags(immutable(&self.path), flags | OpenFlags::SQLITE_OPEN_URI)
        } else {
            Connection::open_with_flags(&self.path, flags)
        };
        let ready = opened.and_then(|mut connection| {
            connection.busy_timeout(patience)?;
            let house = lock::lock_down(&mut connection)?;
            Ok((connection, house))
        });
        ready.map_err(|error| refusal::meaning(error, self))
    }

    /// The file was written to each time that it was read.
    pub(super) fn changing(&self) -> Error {
        Error::Unavailable {
            what: format!("`{}` is being written to while it is read", self.shown),
            hint: "wait for the other program to finish, then try again".into(),
            transient: true,
            cause: None,
        }
    }
}

/// Somebody who names a folder is helped most by the names of the databases in it, if there are any.
pub(crate) fn itself(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_database = |name: &String| [".db", ".sqlite", ".sqlite3"].iter().any(|ending| name.ends_with(ending));
    let mut names: Vec<String> = names.filter(is_database).collect();
    names.sort();
    names.truncate(3);
    let such = || format!("name the database file itself, such as {} in that folder", names.join(", "));
    (!names.is_empty()).then(such)
}

fn not_readable(shown: &str, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => {
            Error::unavailable(format!("there is no file `{shown}`"), "check the path; nothing is created")
        }
        ErrorKind::PermissionDenied => Error::unavailable(
            format!("`{shown}` may not be read"),
            "check the permissions of the file and of its folder",
        ),
        _ => Error::unavailable(format!("`{shown}` cannot be opened: {error}"), "check the path"),
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> (u64, u64) {
    // The time of birth is as near to an identity as the standard library comes here.
    let born = metadata.created().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    (0, born.map_or(0, |time| time.as_nanos() as u64))
}

/// The address that makes SQLite read the file as one that cannot change.
fn immutable(path: &Path) -> String {
    let mut address = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => address.push(char::from(byte)),
            _ => address.push_str(&format!("%{byte:02x}")),
        }
    }
    address + "?immutable=1"
}

/// Files whose header was looked at. They stay open until the program ends, on purpose: when a program closes any
/// handle of a file, the operating system drops all locks that the program holds on that file, so that closing ours
/// could pull the lock away under a transaction that the same program has open elsewhere.
static LOOKED_AT: Mutex<Vec<Header>> = Mutex::new(Vec::new());
/// Past this many, headers are no longer looked at, and SQLite may create files beside a database in WAL mode.
const MOST_HEADERS: usize = 256;

struct Header {
    path: PathBuf,
    identity: (u64, u64),
    file: File,
}

/// Whether the header says that the database is in WAL mode.
fn says_wal(path: &Path, identity: (u64, u64)) -> io::Result<bool> {
    Ok(header(path, identity)?.is_some_and(|start| start[19] == 2))
}

/// Length of the part of the header that holds the counter of changes (bytes 24 to 27) and the schema cookie (40 to 43).
const HEADER_BYTES: usize = 44;

/// Returns the beginning of the file; nothing if it is none of SQLite's, or too many files were looked at.
fn header(path: &Path, identity: (u64, u64)) -> io::Result<Option<[u8; HEADER_BYTES]>> {
    let mut headers = LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    // A file that another one has replaced is closed, so that its space on disk is not kept.
    headers.retain(|header| header.path != path || header.identity == identity);
    let known = headers.iter().position(|header| header.path == path);
    if known.is_none() {
        // Nobody asks any more for those that are gone.
        headers.retain(|header| header.path.exists());
    }
    let i = match known {
        Some(i) => i,
        None if headers.len() == MOST_HEADERS => return Ok(None),
        None => {
            headers.push(Header { path: path.to_path_buf(), identity, file: File::open(path)? });
            headers.len() - 1
        }
    };
    let mut file = &headers[i].file;
    let mut start = [0; HEADER_BYTES];
    file.seek(SeekFrom::Start(0))?;
    // A file too short to have a header is empty, or none of SQLite's: SQLite will say so.
    let whole = file.read_exact(&mut start).is_ok();
    Ok((whole && start.starts_with(b"SQLite format 3\0")).then_some(start))
}
