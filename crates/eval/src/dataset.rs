//! Datasets: questions with gold queries, in several formats.
//!
//! The format of a file is detected from its content, not its name. A file that cannot be parsed is
//! an error that names the line and the field. A question that cannot be asked (missing database,
//! duplicate id) is skipped with the reason, and the others are loaded.

mod bird;
mod defog;
mod json;
mod locate;
mod native;
mod spider;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::EvalError;
pub use crate::eval_case::{EvalCase, Expectation};

/// Question that cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedCase {
    /// Id of the question.
    pub id: String,
    /// Reason for skipping the question.
    pub reason: String,
}

/// File format of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DatasetFormat {
    /// Native format: YAML or JSON with `cases`.
    Own,
    /// JSON list with `db_id`, `question` and `query`.
    Spider,
    /// JSON list with `db_id`, `question`, `evidence` and `SQL`.
    Bird,
    /// CSV with `db_name`, `question` and `query`.
    Defog,
}

/// Options for loading a dataset.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Database for all questions, instead of the one that each names.
    pub database: Option<String>,
    /// Folder to search for databases, instead of the folders around the file.
    pub root: Option<PathBuf>,
}

/// Dataset, with the questions that can and cannot be asked.
#[derive(Debug)]
pub struct Dataset {
    /// Name of the dataset.
    pub name: String,
    /// File format of the dataset.
    pub format: DatasetFormat,
    /// Questions in file order.
    pub cases: Vec<EvalCase>,
    /// Questions that cannot be asked.
    pub skipped: Vec<SkippedCase>,
    /// Keeps the demo database alive while it may be queried.
    _demo: Option<TempDir>,
}

/// Question as read from a file, before its database is located.
#[derive(Debug)]
struct RawCase {
    id: String,
    question: String,
    evidence: Option<String>,
    database: DatabaseRef,
    gold: Vec<String>,
    tags: Vec<String>,
    expect: Option<Expectation>,
}

/// Location of a database as given in a file.
#[derive(Debug, Clone)]
enum DatabaseRef {
    /// Demo shop, created when it is needed.
    Demo,
    /// URL, or a path relative to the folder of the file.
    Address(String),
    /// Name to search for in the database folders of the dataset.
    Named(String),
    /// No usable database, with the reason.
    Missing(String),
}

/// Contents of one file.
struct DatasetContents {
    name: Option<String>,
    format: DatasetFormat,
    entries: Vec<RawCase>,
}

impl Dataset {
    /// Loads a file, or all files of a folder.
    pub fn load(path: &Path, load: &LoadOptions) -> Result<Dataset> {
        let files = if path.is_dir() { locate::dataset_files(path)? } else { vec![path.to_path_buf()] };
        let several = files.len() > 1;
        let mut set = Dataset {
            name: locate::file_stem(path),
            format: DatasetFormat::Own,
            cases: Vec::new(),
            skipped: Vec::new(),
            _demo: None,
        };
        let mut seen = HashSet::new();
        for (i, file) in files.iter().enumerate() {
            let contents = read(file)?;
            if i == 0 {
                set.format = contents.format;
                set.name = contents.name.filter(|_| !several).unwrap_or(set.name);
            }
            let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
            for mut entry in contents.entries {
                // Native ids are chosen by people; ids of other formats are numbers that restart in
                // each file.
                if several && contents.format != DatasetFormat::Own {
                    entry.id = format!("{}-{}", locate::file_stem(file), entry.id);
                }
                set.add(entry, &folder, load, &mut seen)?;
            }
        }
        if set.cases.is_empty() && set.skipped.is_empty() {
            bail!(EvalError {
                what: format!("`{}` holds no questions", path.display()),
                hint: "a set has at least one entry under `cases`, or one row".into(),
            });
        }
        Ok(set)
    }

    fn add(&mut self, entry: RawCase, folder: &Path, load: &LoadOptions, seen: &mut HashSet<String>) -> Result<()> {
        let reason = if seen.insert(entry.id.clone()) {
            match self.address(&entry.database, folder, load)? {
                Ok(database) => {
                    let RawCase { id, question, evidence, gold, tags, expect, .. } = entry;
                    self.cases.push(EvalCase { id, question, evidence, database, gold, tags, expect });
                    return Ok(());
                }
                Err(reason) => reason,
            }
        } else {
            "the id of this question is not unique".to_string()
        };
        self.skipped.push(SkippedCase { id: entry.id, reason });
        Ok(())
    }

    /// Resolves the address of a database. The inner error is the reason for skipping the question.
    fn address(&mut self, database: &DatabaseRef, folder: &Path, load: &LoadOptions) -> Result<Result<String, String>> {
        Ok(match (&load.database, database) {
            (_, DatabaseRef::Missing(reason)) => Err(reason.clone()),
            (Some(address), _) if address == "demo" => Ok(self.demo()?),
            (Some(address), _) => locate::resolve_address(address, Path::new("")),
            (None, DatabaseRef::Demo) => Ok(self.demo()?),
            (None, DatabaseRef::Address(address)) => {
                locate::resolve_address(address, load.root.as_deref().unwrap_or(folder))
            }
            (None, DatabaseRef::Named(name)) => locate::find_by_name(name, load.root.as_deref(), folder),
        })
    }

    /// Returns the path of the demo shop, created on first use.
    fn demo(&mut self) -> Result<String> {
        let folder = match self._demo.take() {
            Some(folder) => folder,
            None => {
                let folder = tempfile::Builder::new().prefix("querymend-eval-").tempdir()?;
                querymend_engine::demo::write(&folder.path().join("shop.db"))?;
                folder
            }
        };
        let file = folder.path().join("shop.db").display().to_string();
        self._demo = Some(folder);
        Ok(file)
    }

    /// Returns at most `limit` questions, evenly spaced over the dataset, since the first ones are
    /// often all about one database.
    pub fn sample(&self, limit: Option<usize>) -> Vec<&EvalCase> {
        let all = self.cases.len();
        let take = limit.unwrap_or(all).min(all);
        (0..take).map(|i| &self.cases[i * all / take]).collect()
    }

    /// Returns an FNV-1a hash of all questions and gold queries.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut add = |text: &str| {
            for byte in text.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for case in &self.cases {
            add(&case.id);
            add(&case.question);
            add(case.evidence.as_deref().unwrap_or_default());
            case.gold.iter().for_each(|gold| add(gold));
        }
        format!("{hash:016x}")
    }
}

/// Reads a file and detects its format.
fn read(path: &Path) -> Result<DatasetContents> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| {
        EvalError::anyhow(format!("`{shown}` cannot be read: {error}"), "check the path of the dataset")
    })?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(EvalError::anyhow(format!("`{shown}` is not UTF-8 text"), "a dataset is YAML, JSON or CSV"));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match text.trim_start().chars().next() {
        Some('[') => {
            let records = json::parse_records(path, text)?;
            if records.first().is_some_and(|first| first.has_field("SQL")) {
                bird::read(&records)
            } else {
                spider::read(&records)
            }
        }
        _ if defog::is_header(text.lines().next().unwrap_or_default()) => defog::read(path, text),
        _ => native::read(path, text),
    }
}
