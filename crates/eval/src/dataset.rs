//! Questions with the queries that answer them, read from files of several makers.
//!
//! What a file is, its content says, not its name. A file that cannot be understood is an error that names the line and the
//! field; a question that cannot be asked (its database is not there, its id was there before) is put aside with the reason,
//! and the others go on.

mod bird;
mod defog;
mod find;
mod json;
mod own;
mod spider;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{Outcome, Trouble};

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// By which it is found again; no other question of the set has it.
    pub id: String,
    /// The question.
    pub question: String,
    /// What one has to know beside the schema.
    pub evidence: Option<String>,
    /// The path or address of the database: it can be opened as it stands.
    pub database: String,
    /// The queries that answer it; each of them is right. Without any, only whether it is answered can be said.
    pub gold: Vec<String>,
    /// The groups that it belongs to.
    pub tags: Vec<String>,
    /// How it is expected to end.
    pub expect: Option<Expect>,
}

/// How a question is expected to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// At once, after a correction, or not at all.
    pub outcome: Outcome,
    /// The family of the first failure.
    pub error_type: Option<String>,
}

/// A question that cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Which.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// Whose form a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Ours: YAML or JSON with `cases`.
    Own,
    /// A JSON list with `db_id`, `question` and `query`.
    Spider,
    /// A JSON list with `db_id`, `question`, `evidence` and `SQL`.
    Bird,
    /// CSV with `db_name`, `question` and `query`.
    Defog,
}

/// How a dataset is read.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// The database of every question, instead of the one that it names.
    pub database: Option<String>,
    /// The folder that databases are looked for in, before the folders around the file.
    pub root: Option<PathBuf>,
}

/// Questions that can be asked, and those that cannot.
#[derive(Debug)]
pub struct Dataset {
    /// What to call it.
    pub name: String,
    /// Whose form it has.
    pub format: Format,
    /// The questions, in the order of the file.
    pub cases: Vec<Case>,
    /// Those that cannot be asked.
    pub skipped: Vec<Skipped>,
    /// Holds the demo database for as long as someone may ask it.
    _demo: Option<TempDir>,
}

/// A question as a file holds it, before its database is looked for.
#[derive(Debug)]
struct Entry {
    id: String,
    question: String,
    evidence: Option<String>,
    database: Place,
    gold: Vec<String>,
    tags: Vec<String>,
    expect: Option<Expect>,
}

/// Where a file says that a database is.
#[derive(Debug, Clone)]
enum Place {
    /// The demo shop, written afresh.
    Demo,
    /// A path that starts from the folder of the file, or an address.
    At(String),
    /// A name, to be looked for in the folders that such sets use.
    Named(String),
    /// Nowhere: the reason.
    Nowhere(String),
}

/// What one file holds.
struct Contents {
    name: Option<String>,
    format: Format,
    entries: Vec<Entry>,
}

impl Dataset {
    /// Reads a file, or the files of a folder.
    pub fn load(path: &Path, load: &Load) -> Result<Dataset> {
        let files = if path.is_dir() { find::files_in(path)? } else { vec![path.to_path_buf()] };
        let several = files.len() > 1;
        let mut set = Dataset {
            name: find::stem(path),
            format: Format::Own,
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
                // Ids of our own files are names that people gave; the others are numbers that start anew in each file.
                if several && contents.format != Format::Own {
                    entry.id = format!("{}-{}", find::stem(file), entry.id);
                }
                set.add(entry, &folder, load, &mut seen)?;
            }
        }
        if set.cases.is_empty() && set.skipped.is_empty() {
            bail!(Trouble {
                what: format!("`{}` holds no questions", path.display()),
                hint: "a set has at least one entry under `cases`, or one row".into(),
            });
        }
        Ok(set)
    }

    fn add(&mut self, entry: Entry, folder: &Path, load: &Load, seen: &mut HashSet<String>) -> Result<()> {
        let reason = if seen.insert(entry.id.clone()) {
            match self.address(&entry.database, folder, load)? {
                Ok(database) => {
                    let Entry { id, question, evidence, gold, tags, expect, .. } = entry;
                    self.cases.push(Case { id, question, evidence, database, gold, tags, expect });
                    return Ok(());
                }
                Err(reason) => reason,
            }
        } else {
            "a question with this id was there before".to_string()
        };
        self.skipped.push(Skipped { id: entry.id, reason });
        Ok(())
    }

    /// The address of a database, or why there is none.
    fn address(&mut self, place: &Place, folder: &Path, load: &Load) -> Result<Result<String, String>> {
        Ok(match (&load.database, place) {
            (_, Place::Nowhere(reason)) => Err(reason.clone()),
            (Some(address), _) if address == "demo" => Ok(self.demo()?),
            (Some(address), _) => find::at(address, Path::new("")),
            (None, Place::Demo) => Ok(self.demo()?),
            (None, Place::At(address)) => find::at(address, load.root.as_deref().unwrap_or(folder)),
            (None, Place::Named(name)) => find::named(name, load.root.as_deref(), folder),
        })
    }

    /// The demo shop, written when it is first needed.
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

    /// At most so many questions, spread over the whole set: the first ones are often all about one database.
    pub fn sample(&self, limit: Option<usize>) -> Vec<&Case> {
        let all = self.cases.len();
        let take = limit.unwrap_or(all).min(all);
        (0..take).map(|i| &self.cases[i * all / take]).collect()
    }

    /// A number that changes when a question or its gold does (FNV-1a).
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

/// Reads one file and finds out whose form it has.
fn read(path: &Path) -> Result<Contents> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| {
        Trouble::error(format!("`{shown}` cannot be read: {error}"), "check the path of the dataset")
    })?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(Trouble::error(format!("`{shown}` is not UTF-8 text"), "a dataset is YAML, JSON or CSV"));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match text.trim_start().chars().next() {
        Some('[') => {
            let records = json::records(path, text)?;
            if records.first().is_some_and(|first| first.has("SQL")) {
                bird::read(&records)
            } else {
                spider::read(&records)
            }
        }
        _ if defog::is_header(text.lines().next().unwrap_or_default()) => defog::read(path, text),
        _ => own::read(path, text),
    }
}
