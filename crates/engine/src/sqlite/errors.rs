//! Converts errors of SQLite, and attributes them to the query or the file.

use querymend_sql::EngineError;
use rusqlite::ffi;

use super::heap_limit;
use crate::Error;

/// Converts an error; `name` is the name of the database in messages. An interruption becomes [`Error::Cancelled`]; only the caller knows its
/// reason.
pub(super) fn to_error(error: rusqlite::Error, name: &str) -> Error {
    let (code, engine_error) = match error {
        rusqlite::Error::SqlInputError { error, msg, offset, .. } => {
            (error.extended_code, to_engine_error(error.extended_code, msg, usize::try_from(offset).ok()))
        }
        rusqlite::Error::SqliteFailure(error, message) => {
            let message = message.unwrap_or_else(|| ffi::code_to_str(error.extended_code).to_string());
            (error.extended_code, to_engine_error(error.extended_code, message, None))
        }
        other => return Error::Internal(format!("SQLite failed: {other}")),
    };
    let (what, hint) = match code & 0xff {
        ffi::SQLITE_INTERRUPT => return Error::Cancelled,
        // SQLite only reports "out of memory", which sounds as if the machine had none left.
        _ if code == ffi::SQLITE_NOMEM || code == ffi::SQLITE_IOERR_NOMEM => {
            let hint = "ask for less (fewer rows to sort or to join), or raise `limits.memory` in querymend.yaml";
            return Error::Rejected(EngineError {
                message: heap_limit::out_of_memory_message(),
                hint: Some(hint.into()),
                ..engine_error
            });
        }
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL => {
            (format!("`{name}` is locked by another program"), "wait for it to finish, or close it, then try again")
        }
        ffi::SQLITE_NOTADB | ffi::SQLITE_FORMAT => return not_a_database(name, Some(Box::new(engine_error))),
        ffi::SQLITE_CORRUPT => (
            format!("`{name}` is damaged: {}", engine_error.message),
            "run `PRAGMA integrity_check` on a copy of it, or restore a backup",
        ),
        ffi::SQLITE_PERM => {
            (format!("`{name}` may not be read"), "check the permissions of the file and of its folder")
        }
        // The primary code is a query that would write; the extended codes are files that need
        // recovery before they can be read.
        ffi::SQLITE_READONLY if code != ffi::SQLITE_READONLY => (
            format!("`{name}` has an unfinished write, which cannot be recovered read-only"),
            "open it once with the program it belongs to, so that it can recover, then try again",
        ),
        ffi::SQLITE_CANTOPEN => (
            format!("`{name}` cannot be opened"),
            "check the permissions of the file and of its folder; a database with a -wal file beside it can only be read \
             where the folder can be written to",
        ),
        ffi::SQLITE_IOERR => (
            format!("`{name}` cannot be read: {}", engine_error.message),
            "check the disk and the connection to it, then try again",
        ),
        _ => return Error::Rejected(engine_error),
    };
    let transient = matches!(code & 0xff, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL)
        || matches!(code, ffi::SQLITE_IOERR_LOCK | ffi::SQLITE_IOERR_RDLOCK | ffi::SQLITE_IOERR_SHMLOCK);
    Error::Unavailable { what, hint: hint.into(), transient, cause: Some(Box::new(engine_error)) }
}

/// Error for a file that is not a SQLite database.
pub(super) fn not_a_database(name: &str, cause: Option<Box<EngineError>>) -> Error {
    Error::Unavailable {
        what: format!("`{name}` is not a SQLite database"),
        hint:
            "it may be a text file, an encrypted database or one of another kind; the first bytes of a SQLite database \
               are \"SQLite format 3\""
                .into(),
        transient: false,
        cause,
    }
}

fn to_engine_error(code: i32, message: String, position: Option<usize>) -> EngineError {
    EngineError { code: code_name(code), message, hint: None, position }
}

/// Returns the name of an extended result code, or of its primary code if it is not in the table.
fn code_name(code: i32) -> String {
    let find = |code| CODE_NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| format!("SQLITE_{name}"));
    find(code).or_else(|| find(code & 0xff)).unwrap_or_else(|| format!("SQLITE_{code}"))
}

#[rustfmt::skip]
static CODE_NAMES: &[(i32, &str)] = &[
    (ffi::SQLITE_ERROR, "ERROR"),
    (ffi::SQLITE_ERROR_MISSING_COLLSEQ, "ERROR_MISSING_COLLSEQ"),
    (ffi::SQLITE_ERROR_RETRY, "ERROR_RETRY"),
    (ffi::SQLITE_ERROR_SNAPSHOT, "ERROR_SNAPSHOT"),
    (ffi::SQLITE_INTERNAL, "INTERNAL"),
    (ffi::SQLITE_PERM, "PERM"),
    (ffi::SQLITE_ABORT, "ABORT"),
    (ffi::SQLITE_ABORT_ROLLBACK, "ABORT_ROLLBACK"),
    (ffi::SQLITE_BUSY, "BUSY"),
    (ffi::SQLITE_BUSY_RECOVERY, "BUSY_RECOVERY"),
    (ffi::SQLITE_BUSY_SNAPSHOT, "BUSY_SNAPSHOT"),
    (ffi::SQLITE_BUSY_TIMEOUT, "BUSY_TIMEOUT"),
    (ffi::SQLITE_LOCKED, "LOCKED"),
    (ffi::SQLITE_LOCKED_SHAREDCACHE, "LOCKED_SHAREDCACHE"),
    (ffi::SQLITE_LOCKED_VTAB, "LOCKED_VTAB"),
    (ffi::SQLITE_NOMEM, "NOMEM"),
    (ffi::SQLITE_READONLY, "READONLY"),
    (ffi::SQLITE_READONLY_RECOVERY, "READONLY_RECOVERY"),
    (ffi::SQLITE_READONLY_CANTLOCK, "READONLY_CANTLOCK"),
    (ffi::SQLITE_READONLY_ROLLBACK, "READONLY_ROLLBACK"),
    (ffi::SQLITE_READONLY_DBMOVED, "READONLY_DBMOVED"),
    (ffi::SQLITE_READONLY_CANTINIT, "READONLY_CANTINIT"),
    (ffi::SQLITE_READONLY_DIRECTORY, "READONLY_DIRECTORY"),
    (ffi::SQLITE_INTERRUPT, "INTERRUPT"),
    (ffi::SQLITE_IOERR, "IOERR"),
    (ffi::SQLITE_IOERR_READ, "IOERR_READ"),
    (ffi::SQLITE_IOERR_SHORT_READ, "IOERR_SHORT_READ"),
    (ffi::SQLITE_IOERR_WRITE, "IOERR_WRITE"),
    (ffi::SQLITE_IOERR_FSTAT, "IOERR_FSTAT"),
    (ffi::SQLITE_IOERR_RDLOCK, "IOERR_RDLOCK"),
    (ffi::SQLITE_IOERR_NOMEM, "IOERR_NOMEM"),
    (ffi::SQLITE_IOERR_ACCESS, "IOERR_ACCESS"),
    (ffi::SQLITE_IOERR_CHECKRESERVEDLOCK, "IOERR_CHECKRESERVEDLOCK"),
    (ffi::SQLITE_IOERR_LOCK, "IOERR_LOCK"),
    (ffi::SQLITE_IOERR_SHMOPEN, "IOERR_SHMOPEN"),
    (ffi::SQLITE_IOERR_SHMSIZE, "IOERR_SHMSIZE"),
    (ffi::SQLITE_IOERR_SHMLOCK, "IOERR_SHMLOCK"),
    (ffi::SQLITE_IOERR_SHMMAP, "IOERR_SHMMAP"),
    (ffi::SQLITE_IOERR_SEEK, "IOERR_SEEK"),
    (ffi::SQLITE_IOERR_MMAP, "IOERR_MMAP"),
    (ffi::SQLITE_IOERR_GETTEMPPATH, "IOERR_GETTEMPPATH"),
    (ffi::SQLITE_IOERR_AUTH, "IOERR_AUTH"),
    (ffi::SQLITE_IOERR_DATA, "IOERR_DATA"),
    (ffi::SQLITE_IOERR_CORRUPTFS, "IOERR_CORRUPTFS"),
    (ffi::SQLITE_CORRUPT, "CORRUPT"),
    (ffi::SQLITE_CORRUPT_VTAB, "CORRUPT_VTAB"),
    (ffi::SQLITE_CORRUPT_SEQUENCE, "CORRUPT_SEQUENCE"),
    (ffi::SQLITE_CORRUPT_INDEX, "CORRUPT_INDEX"),
    (ffi::SQLITE_NOTFOUND, "NOTFOUND"),
    (ffi::SQLITE_FULL, "FULL"),
    (ffi::SQLITE_CANTOPEN, "CANTOPEN"),
    (ffi::SQLITE_CANTOPEN_ISDIR, "CANTOPEN_ISDIR"),
    (ffi::SQLITE_CANTOPEN_FULLPATH, "CANTOPEN_FULLPATH"),
    (ffi::SQLITE_CANTOPEN_CONVPATH, "CANTOPEN_CONVPATH"),
    (ffi::SQLITE_CANTOPEN_SYMLINK, "CANTOPEN_SYMLINK"),
    (ffi::SQLITE_PROTOCOL, "PROTOCOL"),
    (ffi::SQLITE_EMPTY, "EMPTY"),
    (ffi::SQLITE_SCHEMA, "SCHEMA"),
    (ffi::SQLITE_TOOBIG, "TOOBIG"),
    (ffi::SQLITE_CONSTRAINT, "CONSTRAINT"),
    (ffi::SQLITE_MISMATCH, "MISMATCH"),
    (ffi::SQLITE_MISUSE, "MISUSE"),
    (ffi::SQLITE_NOLFS, "NOLFS"),
    (ffi::SQLITE_AUTH, "AUTH"),
    (ffi::SQLITE_AUTH_USER, "AUTH_USER"),
    (ffi::SQLITE_FORMAT, "FORMAT"),
    (ffi::SQLITE_RANGE, "RANGE"),
    (ffi::SQLITE_NOTADB, "NOTADB"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_error_codes_as_the_sqlite_manual_does() {
        for (code, name) in [
            (1, "SQLITE_ERROR"),
            (5, "SQLITE_BUSY"),
            (517, "SQLITE_BUSY_SNAPSHOT"),
            (266, "SQLITE_IOERR_READ"),
            // Not in the table: name of the primary code.
            (5 | (99 << 8), "SQLITE_BUSY"),
            (77, "SQLITE_77"),
        ] {
            assert_eq!(code_name(code), name);
        }
    }
}
