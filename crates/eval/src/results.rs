//! Results file of a run: a header line, then one line per question, appended as soon as it is
//! answered. An interrupted run resumes from this file.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{CaseRecord, EvalError, SkippedCase};

/// Header of a results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultsHeader {
    /// Name of the dataset.
    pub dataset: String,
    /// Hash of the questions and gold queries.
    pub fingerprint: String,
    /// Label of the measured system.
    pub label: String,
    /// Questions that cannot be asked.
    pub skipped: Vec<SkippedCase>,
}

/// Results file open for appending.
pub struct ResultsFile {
    file: File,
    path: PathBuf,
}

impl ResultsFile {
    /// Opens or creates a results file, and returns its existing records.
    pub fn open(path: &Path, header: &ResultsHeader) -> Result<(ResultsFile, Vec<CaseRecord>)> {
        let shown = path.display();
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = options.map_err(|error| {
            EvalError::anyhow(format!("`{shown}` cannot be written: {error}"), "check the folder and its permissions")
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!("`{shown}` is being written by another run");
                return Err(EvalError::anyhow(what, "wait for it, or name another file"));
            }
            // A file system without locks must not prevent a measurement.
            Err(TryLockError::Error(_)) => {}
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("`{shown}` cannot be read"))?;
        let (found, records, length) = parse(path, &bytes)?;
        if let Some(found) = &found {
            check_same_run(path, found, header)?;
        }
        // Remove a truncated line, so that the next record starts on its own line.
        file.set_len(length as u64).with_context(|| format!("`{shown}` cannot be written"))?;
        file.seek(SeekFrom::End(0)).with_context(|| format!("`{shown}` cannot be written"))?;
        let mut results = ResultsFile { file, path: path.to_path_buf() };
        if found.is_none() {
            results.write_line(header)?;
        }
        Ok((results, records))
    }

    /// Appends a record, without buffering.
    pub fn append(&mut self, record: &CaseRecord) -> Result<()> {
        self.write_line(record)
    }

    fn write_line(&mut self, line: &impl Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).map_err(|error| {
            let what = format!("`{}` cannot be written: {error}", self.path.display());
            EvalError::anyhow(what, "free disk space, then start again: finished results are kept")
        })
    }
}

/// Reads a results file.
pub fn read(path: &Path) -> Result<(ResultsHeader, Vec<CaseRecord>)> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| {
        EvalError::anyhow(format!("`{shown}` cannot be read: {error}"), "name the results file of a run")
    })?;
    match parse(path, &bytes)? {
        (Some(header), records, _) => Ok((header, records)),
        (None, ..) => Err(EvalError::anyhow(format!("`{shown}` holds no results"), "name the results file of a run")),
    }
}

/// Parses the header, the records (the last one of duplicates) and the length of the valid prefix.
fn parse(path: &Path, bytes: &[u8]) -> Result<(Option<ResultsHeader>, Vec<CaseRecord>, usize)> {
    let shown = path.display();
    let mut header = None;
    let mut records: Vec<CaseRecord> = Vec::new();
    let mut positions: HashMap<(u32, String), usize> = HashMap::new();
    let mut whole = 0;
    for (i, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let (number, end) = (i + 1, whole + line.len());
        // Only a line that starts like a record is a truncated write; anything else is foreign
        // text.
        let beginning: &[u8] = if number == 1 { br#"{"dataset":"# } else { br#"{"id":"# };
        let is_own_line = line.starts_with(beginning) || beginning.starts_with(line);
        if !line.ends_with(b"\n") {
            if is_own_line {
                break;
            }
            let what = format!("`{shown}`, line {number}: this is not a result");
            return Err(EvalError::anyhow(what, "this is not a results file, or it was edited: name another file"));
        }
        let wrong = |error: serde_json::Error| {
            EvalError::anyhow(
                format!("`{shown}`, line {number}: {error}"),
                "this is not a results file, or it was edited: name another file",
            )
        };
        if number == 1 {
            header = Some(serde_json::from_slice::<ResultsHeader>(line).map_err(wrong)?);
        } else {
            match serde_json::from_slice::<CaseRecord>(line) {
                Ok(record) => match positions.get(&(record.run, record.id.clone())) {
                    Some(place) => records[*place] = record,
                    None => {
                        positions.insert((record.run, record.id.clone()), records.len());
                        records.push(record);
                    }
                },
                // An invalid last line is truncated too: the machine may have crashed while writing
                // a block.
                Err(_) if end == bytes.len() && (is_own_line || line.starts_with(b"\0")) => break,
                Err(error) => return Err(wrong(error)),
            }
        }
        whole = end;
    }
    Ok((header, records, whole))
}

/// Rejects a file with the results of another dataset or system.
fn check_same_run(path: &Path, found: &ResultsHeader, wanted: &ResultsHeader) -> Result<()> {
    let differs = if found.fingerprint != wanted.fingerprint {
        format!("holds results of other questions (dataset `{}`)", found.dataset)
    } else if found.label != wanted.label {
        format!("holds results of `{}`, not of `{}`", found.label, wanted.label)
    } else {
        return Ok(());
    };
    Err(EvalError::anyhow(format!("`{}` {differs}", path.display()), "name another file, or delete this one"))
}
