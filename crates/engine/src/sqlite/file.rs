//! Database file on disk: its state, and how to open it without creating files next to it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OpenFlags};

use super::read_only::ActivePolicy;
use super::{errors, read_only};
use crate::{DataVersion, Error};

const MIN_PAGE_BYTES: u64 = 512;

pub(super) struct DatabaseFile {
    /// Path as given by the user, for messages.
    display_path: String,
    /// Absolute path.
    ///
    /// Neither a change of directory nor a name like `file:…` can change its meaning.
    path: PathBuf,
}

/// State of the file at one point in time.
///
/// A connection to a database in WAL mode makes SQLite create `-wal` and `-shm` files, even if it
/// only reads. If they do not exist, no other process has the database open: it is then read as
/// immutable, which takes no locks and creates nothing, and `unlocked_version` reveals afterwards
/// whether it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileState {
    identity: (u64, u64),
    unlocked_version: Option<(u64, Option<SystemTime>)>,
}

impl FileState {
    /// Returns whether the file is read without locks.
    pub(super) fn is_unlocked(&self) -> bool {
        self.unlocked_version.is_some()
    }
}

impl DatabaseFile {
    pub(super) fn find(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        match fs::canonicalize(path) {
            Ok(path) => Ok(Self { display_path: shown, path }),
            Err(error) => Err(read_error(&shown, &error)),
        }
    }

    /// Creates a placeholder for an in-memory database, with a name for messages.
    pub(super) fn in_memory(shown: &str) -> Self {
        Self { display_path: shown.to_string(), path: PathBuf::new() }
    }

    pub(super) fn display_path(&self) -> &str {
        &self.display_path
    }

    /// Reads the state of the file without opening it again.
    pub(super) fn state(&self) -> Result<FileState, Error> {
        let to_error = |error: io::Error| read_error(&self.display_path, &error);
        let metadata = fs::metadata(&self.path).map_err(to_error)?;
        if metadata.is_dir() {
            return Err(Error::unavailable(
                format!("`{}` is a folder, not a database file", self.display_path),
                suggest_database_file(&self.path).unwrap_or_else(|| "name the database file itself".into()),
            ));
        }
        // Opening a pipe would block until it has a writer, and reading a device may have any
        // effect.
        if !metadata.is_file() {
            return Err(Error::unavailable(
                format!("`{}` is not a regular file", self.display_path),
                "a SQLite database is a file on disk; pipes and devices cannot be read as one",
            ));
        }
        // SQLite treats a file shorter than its smallest page as an empty database.
        if (1..MIN_PAGE_BYTES).contains(&metadata.len()) {
            return Err(errors::not_a_database(&self.display_path, None));
        }
        let identity = identity(&metadata);
        let is_wal = is_wal_mode(&self.path, identity).map_err(to_error)?;
        let at_rest = is_wal && !self.has_wal();
        let at_rest = at_rest.then(|| (metadata.len(), metadata.modified().ok()));
        Ok(FileState { identity, unlocked_version: at_rest })
    }

    /// Returns a version that identifies the file's contents.
    ///
    /// It consists of the file's identity, size and modification time, the change counter and
    /// schema cookie of its header, and the size and modification time of its write-ahead log.
    /// Returns `None` if the header cannot be read.
    pub(super) fn data_version(&self) -> Result<Option<DataVersion>, Error> {
        let to_error = |error: io::Error| read_error(&self.display_path, &error);
        let metadata = fs::metadata(&self.path).map_err(to_error)?;
        let Some(header) = read_header(&self.path, identity(&metadata)).map_err(to_error)? else { return Ok(None) };
        // Commits in WAL mode do not change the file until the next checkpoint.
        let log = fs::metadata(self.sibling("-wal")).ok().filter(|log| log.len() > 0);
        let log = log.map(|log| (log.len(), log.modified().ok()));
        let version =
            format!("{:?} {} {:?} {header:?} {log:?}", identity(&metadata), metadata.len(), metadata.modified().ok());
        Ok(Some(DataVersion { identity: format!("sqlite:{}", self.path.display()), version }))
    }

    /// Returns whether the database is open elsewhere in WAL mode, or has a leftover log to read.
    fn has_wal(&self) -> bool {
        match fs::metadata(self.sibling("-wal")) {
            Ok(log) => log.len() > 0 || self.sibling("-shm").exists(),
            Err(_) => false,
        }
    }

    fn sibling(&self, ending: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(ending);
        PathBuf::from(name)
    }

    /// Opens a new connection and locks it down.
    pub(super) fn connect(
        &self,
        state: &FileState,
        busy_timeout: Duration,
    ) -> Result<(Connection, ActivePolicy), Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = if state.is_unlocked() {
            Connection::open_with_flags(immutable_uri(&self.path), flags | OpenFlags::SQLITE_OPEN_URI)
        } else {
            Connection::open_with_flags(&self.path, flags)
        };
        let ready = opened.and_then(|mut connection| {
            connection.busy_timeout(busy_timeout)?;
            let active_policy = read_only::lock_down(&mut connection)?;
            Ok((connection, active_policy))
        });
        ready.map_err(|error| errors::to_error(error, &self.display_path))
    }

    /// Error for a file that was written to during every attempt to read it.
    pub(super) fn concurrent_write_error(&self) -> Error {
        Error::Unavailable {
            what: format!("`{}` is being written to while it is read", self.display_path),
            hint: "wait for the other program to finish, then try again".into(),
            transient: true,
            cause: None,
        }
    }
}

/// Suggests the database files in a folder, if there are any.
pub(crate) fn suggest_database_file(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_database = |name: &String| [".db", ".sqlite", ".sqlite3"].iter().any(|ending| name.ends_with(ending));
    let mut names: Vec<String> = names.filter(is_database).collect();
    names.sort();
    names.truncate(3);
    let such = || format!("name the database file itself, such as {} in that folder", names.join(", "));
    (!names.is_empty()).then(such)
}

fn read_error(shown: &str, error: &io::Error) -> Error {
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
    // Creation time is the closest to an identity that the standard library offers here.
    let born = metadata.created().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    (0, born.map_or(0, |time| time.as_nanos() as u64))
}

/// Returns a URI that makes SQLite treat the file as immutable.
fn immutable_uri(path: &Path) -> String {
    let mut address = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => address.push(char::from(byte)),
            _ => address.push_str(&format!("%{byte:02x}")),
        }
    }
    address + "?immutable=1"
}

/// Files whose header was read. They intentionally stay open until the process ends.
///
/// POSIX drops all locks that a process holds on a file when it closes any handle of it, so that
/// closing ours could release the lock of a transaction that the same process has open elsewhere.
static OPEN_HEADERS: Mutex<Vec<OpenHeader>> = Mutex::new(Vec::new());
/// Maximum number of open headers. Beyond it, headers are not read, and SQLite may create files
/// next to a database in WAL mode.
const MAX_OPEN_HEADERS: usize = 256;

struct OpenHeader {
    path: PathBuf,
    identity: (u64, u64),
    file: File,
}

/// Returns whether the header declares WAL mode.
fn is_wal_mode(path: &Path, identity: (u64, u64)) -> io::Result<bool> {
    Ok(read_header(path, identity)?.is_some_and(|start| start[19] == 2))
}

/// Length of the header up to the change counter (bytes 24 to 27) and the schema cookie (40 to 43).
const HEADER_BYTES: usize = 44;

/// Returns the beginning of the header.
///
/// Returns `None` if it is not a SQLite file or too many files are open.
fn read_header(path: &Path, identity: (u64, u64)) -> io::Result<Option<[u8; HEADER_BYTES]>> {
    let mut headers = OPEN_HEADERS.lock().unwrap_or_else(PoisonError::into_inner);
    // A replaced file is closed, so that its disk space is freed.
    headers.retain(|header| header.path != path || header.identity == identity);
    let known = headers.iter().position(|header| header.path == path);
    if known.is_none() {
        // Deleted files are not queried again.
        headers.retain(|header| header.path.exists());
    }
    let i = match known {
        Some(i) => i,
        None if headers.len() == MAX_OPEN_HEADERS => return Ok(None),
        None => {
            headers.push(OpenHeader { path: path.to_path_buf(), identity, file: File::open(path)? });
            headers.len() - 1
        }
    };
    let mut file = &headers[i].file;
    let mut start = [0; HEADER_BYTES];
    file.seek(SeekFrom::Start(0))?;
    // A file without a complete header is empty or not a database; SQLite reports that.
    let whole = file.read_exact(&mut start).is_ok();
    Ok((whole && start.starts_with(b"SQLite format 3\0")).then_some(start))
}
