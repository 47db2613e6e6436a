//! Conversion of SQLite errors to user-facing store errors.

use std::io;
use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::Error;

/// Failure of an operation on the file.
pub(super) enum FileStoreFailure {
    Sqlite(rusqlite::Error),
    Reported(Error),
}

impl FileStoreFailure {
    pub(super) fn into_error(self, name: &str) -> Error {
        match self {
            Self::Sqlite(error) => to_store_error(name, &error),
            Self::Reported(error) => error,
        }
    }

    /// Returns whether another process holds a lock on the file, which is likely to be temporary.
    pub(super) fn is_busy(&self) -> bool {
        let code = match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Reported(_) => None,
        };
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed))
    }
}

impl From<rusqlite::Error> for FileStoreFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<rusqlite::types::FromSqlError> for FileStoreFailure {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Sqlite(error.into())
    }
}

/// Converts an SQLite error to a store error with a suggested fix.
pub(super) fn to_store_error(name: &str, error: &rusqlite::Error) -> Error {
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            (failure.extended_code, message.clone().unwrap_or_default())
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg.clone()),
        // A column does not have the type that was written to it.
        other => return damaged(name, &other.to_string()),
    };
    match code & 0xff {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL => Error::Unavailable {
            message: format!("`{name}` is being written to by another program"),
            hint: "wait for it to finish, then try again".into(),
        },
        ffi::SQLITE_FULL => Error::Unavailable {
            message: format!("there is no disk space for `{name}` to grow"),
            hint: "free disk space, then try again; stored examples are not lost".into(),
        },
        ffi::SQLITE_NOTADB | ffi::SQLITE_FORMAT => not_an_example_file(name),
        ffi::SQLITE_CORRUPT | ffi::SQLITE_ERROR | ffi::SQLITE_MISMATCH | ffi::SQLITE_CONSTRAINT => {
            damaged(name, &message)
        }
        ffi::SQLITE_PERM | ffi::SQLITE_READONLY | ffi::SQLITE_CANTOPEN | ffi::SQLITE_AUTH => Error::Unusable {
            message: format!("`{name}` cannot be opened for writing"),
            hint: "check the permissions of the file and of its folder".into(),
        },
        ffi::SQLITE_IOERR => Error::Unavailable {
            message: format!("`{name}` cannot be read or written: {message}"),
            hint: "check the disk and its free space, then try again".into(),
        },
        _ => Error::Unavailable {
            message: format!("`{name}` could not be used: {message}"),
            hint: "try again; if it persists, move the file away and seed a new one".into(),
        },
    }
}

/// Converts an operating-system error to a store error.
pub(super) fn io_error(name: &str, error: &io::Error) -> Error {
    let hint = "check the permissions of the file and of its folder, and the free disk space".into();
    Error::Unusable { message: format!("`{name}` cannot be opened: {error}"), hint }
}

/// Creates the error for a corrupt file.
pub(super) fn damaged(name: &str, message: &str) -> Error {
    Error::Unusable {
        message: format!("`{name}` is damaged: {message}"),
        hint: "move it away and seed a new one, or restore a backup; nothing was changed in it".into(),
    }
}

/// Creates the error for a file of another application.
pub(super) fn not_an_example_file(name: &str) -> Error {
    Error::Unusable {
        message: format!("`{name}` contains something other than examples"),
        hint: "give another path; nothing was changed in it".into(),
    }
}

/// Creates the error for a file that was written by a newer version.
pub(super) fn newer_version(name: &str, version: i64, known: i64) -> Error {
    Error::Unusable {
        message: format!(
            "`{name}` was created by a newer version of querymend (its format is {version}, this version supports {known})"
        ),
        hint: "use that version, or export the examples with it and seed another file; nothing was changed in it"
            .into(),
    }
}

/// Creates the error for a file whose vectors come from another embedder.
pub(super) fn embedder_changed(name: &str, theirs: &str, ours: &str) -> Error {
    Error::Unavailable {
        message: format!("another program has changed `{name}` from the embedder `{ours}` to `{theirs}`"),
        hint: "use the same embedder in all programs that share the file, then start this one again".into(),
    }
}

/// Creates the error for an embedder that kept its name but changed its vector length.
pub(super) fn dimensions_changed(name: &str, kept: i64, made: i64) -> Error {
    Error::Unusable {
        message: format!("`{name}` stores vectors of {kept} dimensions, but the embedder returns {made}"),
        hint: "the model of the embedder has changed: restore it, or export the examples and seed another file".into(),
    }
}

/// Formats a path for messages.
pub(super) fn display_path(path: &Path) -> String {
    path.display().to_string()
}
