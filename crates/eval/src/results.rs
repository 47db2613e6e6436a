//! The results file of a run: a line that says what it is of, then a line for each question as soon as it is answered. A run
//! that was stopped, by whatever, is taken up again where it stopped.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{Record, Skipped, Trouble};

/// What a results file is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The dataset.
    pub dataset: String,
    /// Its questions and golds as a number.
    pub fingerprint: String,
    /// What was measured.
    pub label: String,
    /// Questions that could not be asked.
    pub skipped: Vec<Skipped>,
}

/// A results file that is being written.
pub struct Results {
    file: File,
    path: PathBuf,
}

impl Results {
    /// Opens a file, or begins one, and gives back what is in it already.
    pub fn open(path: &Path, header: &Header) -> Result<(Results, Vec<Record>)> {
        let shown = path.display();
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = options.map_err(|error| {
            Trouble::error(format!("`{shown}` cannot be written: {error}"), "check the folder and its permissions")
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!("`{shown}` is being written by another run");
                return Err(Trouble::error(what, "wait for it, or name another file"));
            }
            // A file system without locks is no reason not to measure.
            Err(TryLockError::Error(_)) => {}
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("`{shown}` cannot be read"))?;
        let (found, records, length) = parse(path, &bytes)?;
        if let Some(found) = &found {
            same(path, found, header)?;
        }
        // What was torn off is cut away, so that the next line begins on a line of its own.
        file.set_len(length as u64).with_context(|| format!("`{shown}` cannot be written"))?;
        file.seek(SeekFrom::End(0)).with_context(|| format!("`{shown}` cannot be written"))?;
        let mut results = Results { file, path: path.to_path_buf() };
        if found.is_none() {
            results.write(header)?;
        }
        Ok((results, records))
    }

    /// Adds a line. It is in the file when this returns.
    pub fn add(&mut self, record: &Record) -> Result<()> {
        self.write(record)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).map_err(|error| {
            let what = format!("`{}` cannot be written: {error}", self.path.display());
            Trouble::error(what, "make room, then start again: what is done is kept")
        })
    }
}

/// Reads a results file that is not being written.
pub fn read(path: &Path) -> Result<(Header, Vec<Record>)> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| {
        Trouble::error(format!("`{shown}` cannot be read: {error}"), "name the results file of a run")
    })?;
    match parse(path, &bytes)? {
        (Some(header), records, _) => Ok((header, records)),
        (None, ..) => Err(Trouble::error(format!("`{shown}` holds no results"), "name the results file of a run")),
    }
}

/// The header, the records (of a question that is there twice, the last) and the length of what is whole.
fn parse(path: &Path, bytes: &[u8]) -> Result<(Option<Header>, Vec<Record>, usize)> {
    let shown = path.display();
    let mut header = None;
    let mut records: Vec<Record> = Vec::new();
    let mut places: HashMap<(u32, String), usize> = HashMap::new();
    let mut whole = 0;
    for (i, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let (number, end) = (i + 1, whole + line.len());
        // Only what we began ourselves was torn; anything else is somebody's text.
        let beginning: &[u8] = if number == 1 { br#"{"dataset":"# } else { br#"{"id":"# };
        let ours = line.starts_with(beginning) || beginning.starts_with(line);
        if !line.ends_with(b"\n") {
            if ours {
                break;
            }
            let what = format!("`{shown}`, line {number}: this is no result");
            return Err(Trouble::error(what, "this is no results file, or someone edited it: name another file"));
        }
        let wrong = |error: serde_json::Error| {
            Trouble::error(
                format!("`{shown}`, line {number}: {error}"),
                "this is no results file, or someone edited it: name another file",
            )
        };
        if number == 1 {
            header = Some(serde_json::from_slice::<Header>(line).map_err(wrong)?);
        } else {
            match serde_json::from_slice::<Record>(line) {
                Ok(record) => match places.get(&(record.run, record.id.clone())) {
                    Some(place) => records[*place] = record,
                    None => {
                        places.insert((record.run, record.id.clone()), records.len());
                        records.push(record);
                    }
                },
                // A last line that makes no sense was torn, too: the machine may have stopped in the middle of a block.
                Err(_) if end == bytes.len() && (ours || line.starts_with(b"\0")) => break,
                Err(error) => return Err(wrong(error)),
            }
        }
        whole = end;
    }
    Ok((header, records, whole))
}

/// Results of something else are not gone on with.
fn same(path: &Path, found: &Header, wanted: &Header) -> Result<()> {
    let differs = if found.fingerprint != wanted.fingerprint {
        format!("holds results of other questions (dataset `{}`)", found.dataset)
    } else if found.label != wanted.label {
        format!("holds results of `{}`, not of `{}`", found.label, wanted.label)
    } else {
        return Ok(());
    };
    Err(Trouble::error(format!("`{}` {differs}", path.display()), "name another file, or delete this one"))
}
