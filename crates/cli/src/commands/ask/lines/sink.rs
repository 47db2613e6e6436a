//! Where the answers of a batch go: stdout, or a file that is added to.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::out::Out;

/// Where answers go, and which are there already.
pub struct Sink {
    file: Option<(File, String)>,
    known: HashSet<String>,
}

impl Sink {
    /// Opens the file, if there is one. A last line that is torn is taken away, and so are lines that failed because the
    /// world was in the way: they are asked again.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { file: None, known: HashSet::new() }) };
        let name = path.display().to_string();
        let unwritable = |error: &io::Error| {
            Failure::new(format!("`{name}` cannot be written: {error}")).hint("check the folder and its permissions")
        };
        let before = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unwritable(&error)),
        };
        let mut known = HashSet::new();
        let mut kept = Vec::with_capacity(before.len());
        for (number, line) in before.split_inclusive(|byte| *byte == b'\n').enumerate() {
            match (serde_json::from_slice::<Value>(line), line.ends_with(b"\n")) {
                (Ok(answer), true) if answer.get("status").is_some() => {
                    if answer["status"] != "failed" {
                        known.insert(answer["id"].to_string());
                        kept.extend_from_slice(line);
                    }
                }
                (_, false) => {}
                _ => {
                    return Err(Failure::new(format!("line {} of `{name}` is no answer of a batch", number + 1))
                        .hint("name another file: only answers are added to it"));
                }
            }
        }
        drop(locked(path, &name, &unwritable)?);
        if kept.len() != before.len() {
            // Written beside and renamed: what is answered is never lost.
            let beside = path.with_extension("part");
            fs::write(&beside, &kept).and_then(|()| fs::rename(&beside, path)).map_err(|error| unwritable(&error))?;
        }
        Ok(Self { file: Some((locked(path, &name, &unwritable)?, name)), known })
    }

    /// Whether a question is answered already.
    pub fn knows(&self, id: &Value) -> bool {
        !id.is_null() && self.known.contains(&id.to_string())
    }

    /// Adds an answer. It is on its way when this returns.
    pub fn write(&mut self, answer: &Value, out: &mut Out) -> Result<(), Failure> {
        match &mut self.file {
            Some((file, name)) => file.write_all(format!("{answer}\n").as_bytes()).map_err(|error| {
                Failure::new(format!("`{name}` cannot be written: {error}"))
                    .hint("make room, then start again: what is done is kept")
            }),
            None => {
                out.line(&answer.to_string())?;
                out.flush()
            }
        }
    }
}

/// The file, open for adding to it by us alone.
fn locked(path: &Path, name: &str, unwritable: &dyn Fn(&io::Error) -> Failure) -> Result<File, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| unwritable(&error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::new(format!("`{name}` is being written by another batch"))
            .hint("wait for it, or name another file")),
        // A file system without locks is no reason not to ask.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}
