//! Where the answers of a batch go: stdout, or a file that is added to.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::out::Out;

/// Where answers go, and which are there already.
pub struct Sink {
    file: Option<(File, String)>,
    known: HashSet<String>,
}

/// How an answer of a batch begins.
const BEGINNING: &[u8] = br#"{"id":"#;

impl Sink {
    /// Opens the file, if there is one. A last line that is torn is taken away, and so are lines that failed because the
    /// world was in the way: they are asked again. A file that holds anything else is left as it is.
    pub fn open(path: Option<&Path>, input: &Path) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { file: None, known: HashSet::new() }) };
        let name = path.display().to_string();
        let unwritable = |error: &io::Error| {
            Failure::new(format!("`{name}` cannot be written: {error}")).hint("check the folder and its permissions")
        };
        if same_file(path, input) {
            return Err(Failure::new(format!("`{name}` is where the questions come from"))
                .hint("name another file for the answers"));
        }
        // What a link leads to is written, and the link stays.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let there = fs::metadata(&place).ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            // A pipe or a terminal takes answers, and has none to give back.
            return Ok(Self { file: Some((locked(&place, &name, &unwritable)?, name)), known: HashSet::new() });
        }
        let before = match fs::read(&place) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unwritable(&error)),
        };
        let mut known = HashSet::new();
        let mut kept = Vec::with_capacity(before.len());
        for (number, line) in before.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let whole = line.ends_with(b"\n");
            match serde_json::from_slice::<Value>(line) {
                Ok(answer) if whole && answer.get("status").is_some() => {
                    if answer["status"] != "failed" {
                        known.insert(answer["id"].to_string());
                        kept.extend_from_slice(line);
                    }
                }
                _ if !whole && (line.starts_with(BEGINNING) || BEGINNING.starts_with(line)) => {}
                _ => {
                    return Err(Failure::new(format!("line {} of `{name}` is no answer of a batch", number + 1))
                        .hint("name another file: only answers are added to it"));
                }
            }
        }
        drop(locked(&place, &name, &unwritable)?);
        if kept.len() != before.len() {
            replace(&place, &kept, there.map(|there| there.permissions())).map_err(|error| unwritable(&error))?;
        }
        Ok(Self { file: Some((locked(&place, &name, &unwritable)?, name)), known })
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

/// Written beside and renamed, so that what is answered is never lost; whoever could read the file still can.
fn replace(place: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut beside = place.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions)))
        .and_then(|()| fs::rename(&beside, place));
    if written.is_err() {
        fs::remove_file(&beside).ok();
    }
    written
}

/// Whether two paths lead to one file.
fn same_file(one: &Path, two: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(two)) = (fs::metadata(one), fs::metadata(two)) {
        use std::os::unix::fs::MetadataExt;
        return one.is_file() && (one.dev(), one.ino()) == (two.dev(), two.ino());
    }
    matches!((fs::canonicalize(one), fs::canonicalize(two)), (Ok(one), Ok(two)) if one == two)
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
