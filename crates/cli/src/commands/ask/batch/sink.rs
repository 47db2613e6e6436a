//! Output of a batch: stdout, or a file that answers are appended to.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::CliError;
use crate::output::Out;

/// Destination of answers, with the ids it already contains.
pub struct AnswerSink {
    file: Option<(File, String)>,
    answered_ids: HashSet<String>,
}

/// First bytes of each answer.
const ANSWER_PREFIX: &[u8] = br#"{"id":"#;

impl AnswerSink {
    /// Opens the output file, if one is given.
    ///
    /// Removes a truncated last line, and answers with status `failed`, so that these questions are
    /// asked again. A file with any other content is rejected unchanged.
    pub fn open(path: Option<&Path>, input: &Path) -> Result<Self, CliError> {
        let Some(path) = path else { return Ok(Self { file: None, answered_ids: HashSet::new() }) };
        let name = path.display().to_string();
        let unwritable = |error: &io::Error| {
            CliError::new(format!("`{name}` cannot be written: {error}")).hint("check the folder and its permissions")
        };
        if is_same_file(path, input) {
            return Err(CliError::new(format!("`{name}` is where the questions come from"))
                .hint("name another file for the answers"));
        }
        // Write through a symbolic link, so that the link is preserved.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let there = fs::metadata(&target).ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            // A pipe or a terminal contains no earlier answers.
            return Ok(Self {
                file: Some((open_locked(&target, &name, &unwritable)?, name)),
                answered_ids: HashSet::new(),
            });
        }
        let before = match fs::read(&target) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unwritable(&error)),
        };
        let mut known = HashSet::new();
        let mut retained = Vec::with_capacity(before.len());
        for (number, line) in before.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let whole = line.ends_with(b"\n");
            match serde_json::from_slice::<Value>(line) {
                Ok(answer) if whole && answer.get("status").is_some() => {
                    if answer["status"] != "failed" {
                        known.insert(answer["id"].to_string());
                        retained.extend_from_slice(line);
                    }
                }
                _ if !whole && (line.starts_with(ANSWER_PREFIX) || ANSWER_PREFIX.starts_with(line)) => {}
                _ => {
                    return Err(CliError::new(format!("line {} of `{name}` is not an answer of a batch", number + 1))
                        .hint("name another file: only answers are added to it"));
                }
            }
        }
        drop(open_locked(&target, &name, &unwritable)?);
        if retained.len() != before.len() {
            replace_atomically(&target, &retained, there.map(|there| there.permissions()))
                .map_err(|error| unwritable(&error))?;
        }
        Ok(Self { file: Some((open_locked(&target, &name, &unwritable)?, name)), answered_ids: known })
    }

    /// Returns whether the question with this id is already answered.
    pub fn has_answer(&self, id: &Value) -> bool {
        !id.is_null() && self.answered_ids.contains(&id.to_string())
    }

    /// Appends an answer, without buffering.
    pub fn write(&mut self, answer: &Value, out: &mut Out) -> Result<(), CliError> {
        match &mut self.file {
            Some((file, name)) => file.write_all(format!("{answer}\n").as_bytes()).map_err(|error| {
                CliError::new(format!("`{name}` cannot be written: {error}"))
                    .hint("free disk space, then start again: finished results are kept")
            }),
            None => {
                out.line(&answer.to_string())?;
                out.flush()
            }
        }
    }
}

/// Writes to a temporary file and renames it, so that answers are never lost. Keeps the
/// permissions.
fn replace_atomically(target: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut beside = target.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions)))
        .and_then(|()| fs::rename(&beside, target));
    if written.is_err() {
        fs::remove_file(&beside).ok();
    }
    written
}

/// Returns whether two paths refer to the same file.
fn is_same_file(one: &Path, two: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(two)) = (fs::metadata(one), fs::metadata(two)) {
        use std::os::unix::fs::MetadataExt;
        return one.is_file() && (one.dev(), one.ino()) == (two.dev(), two.ino());
    }
    matches!((fs::canonicalize(one), fs::canonicalize(two)), (Ok(one), Ok(two)) if one == two)
}

/// Opens the file for appending, under an exclusive lock.
fn open_locked(path: &Path, name: &str, unwritable: &dyn Fn(&io::Error) -> CliError) -> Result<File, CliError> {
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| unwritable(&error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(CliError::new(format!("`{name}` is being written by another batch"))
            .hint("wait for it, or name another file")),
        // A file system without locks must not prevent the batch.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}
