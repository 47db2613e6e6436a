//! What SQLite says when it refuses, for people.

use std::io;
use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::Error;

/// What went wrong while the file was used.
pub(super) enum Trouble {
    Refused(rusqlite::Error),
    Told(Error),
}

impl Trouble {
    pub(super) fn told(self, name: &str) -> Error {
        match self {
            Self::Refused(error) => meaning(name, &error),
            Self::Told(error) => error,
        }
    }

    /// Whether another program holds the file, and may let go of it soon.
    pub(super) fn is_busy(&self) -> bool {
        let code = match self {
            Self::Refused(error) => error.sqlite_error_code(),
            Self::Told(_) => None,
        };
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed))
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::types::FromSqlError> for Trouble {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Refused(error.into())
    }
}

/// What is wrong with the file, and what can be done about it.
pub(super) fn meaning(name: &str, error: &rusqlite::Error) -> Error {
    let (code, said) = match error {
        rusqlite::Error::SqliteFailure(failure, said) => (failure.extended_code, said.clone().unwrap_or_default()),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg.clone()),
        // A column that is not what was written into it.
        other => return damaged(name, &other.to_string()),
    };
    match code & 0xff {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL => Error::Unavailable {
            message: format!("`{name}` is being written to by another program"),
            hint: "wait for it to finish, then try again".into(),
        },
        ffi::SQLITE_FULL => Error::Unavailable {
            message: format!("there is no room for `{name}` to grow"),
            hint: "make room on the disk, then try again; nothing that was kept before is lost".into(),
        },
        ffi::SQLITE_NOTADB | ffi::SQLITE_FORMAT => not_ours(name),
        ffi::SQLITE_CORRUPT | ffi::SQLITE_ERROR | ffi::SQLITE_MISMATCH | ffi::SQLITE_CONSTRAINT => damaged(name, &said),
        ffi::SQLITE_PERM | ffi::SQLITE_READONLY | ffi::SQLITE_CANTOPEN | ffi::SQLITE_AUTH => Error::Unusable {
            message: format!("`{name}` cannot be opened for writing"),
            hint: "check the permissions of the file and of its folder".into(),
        },
        ffi::SQLITE_IOERR => Error::Unavailable {
            message: format!("`{name}` cannot be read or written: {said}"),
            hint: "check the disk, and whether it has room, then try again".into(),
        },
        _ => Error::Unavailable {
            message: format!("`{name}` could not be used: {said}"),
            hint: "try again; if it stays so, move the file away and seed a new one".into(),
        },
    }
}

/// The operating system refused.
pub(super) fn from_system(name: &str, error: &io::Error) -> Error {
    let hint = "check the permissions of the file and of its folder, and whether the disk has room".into();
    Error::Unusable { message: format!("`{name}` cannot be opened: {error}"), hint }
}

/// Something in it is not as it was written.
pub(super) fn damaged(name: &str, said: &str) -> Error {
    Error::Unusable {
        message: format!("`{name}` is damaged: {said}"),
        hint: "move it away and seed a new one, or bring back a backup; nothing was changed in it".into(),
    }
}

/// It is a file of something else.
pub(super) fn not_ours(name: &str) -> Error {
    Error::Unusable {
        message: format!("`{name}` holds something else than examples"),
        hint: "give another path; nothing was changed in it".into(),
    }
}

/// It was made by a later version.
pub(super) fn too_new(name: &str, version: i64, known: i64) -> Error {
    Error::Unusable {
        message: format!(
            "`{name}` was made by a newer version of querymend (its form is {version}, this one knows {known})"
        ),
        hint: "use that version, or export the examples with it and seed another file; nothing was changed in it"
            .into(),
    }
}

/// Vectors in it are of another embedder than ours.
pub(super) fn other_embedder(name: &str, theirs: &str, ours: &str) -> Error {
    Error::Unavailable {
        message: format!("another program has changed `{name}` from the embedder `{ours}` to `{theirs}`"),
        hint: "use the same embedder in all programs that share the file, then start this one again".into(),
    }
}

/// The embedder has the name that it had, and makes other vectors.
pub(super) fn other_length(name: &str, kept: i64, made: i64) -> Error {
    Error::Unusable {
        message: format!("`{name}` keeps vectors of {kept} numbers; the embedder makes {made} now"),
        hint: "the model behind the embedder was changed: go back to it, or export the examples and seed another file"
            .into(),
    }
}

/// What to call a file in messages.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
