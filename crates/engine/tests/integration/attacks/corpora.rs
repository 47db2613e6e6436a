//! The texts that are tried: changed ones (`mutate.rs`), payloads where people find them, and what others have collected.

use std::path::{Path, PathBuf};

use querymend_sql::Dialect;
use querymend_testing::is_full_suite;

use super::mutate::{Dice, mutant};

/// Reads of many shapes over the canary, a line each.
const READS: &str = include_str!("../../attacks/reads.txt");
/// Statements that do more than read, a line each.
const WRITES: &str = include_str!("../../attacks/writes.txt");
/// What attackers write where a value is expected, a line each.
const PAYLOADS: &str = include_str!("../../attacks/payloads.txt");

/// So many texts of each source, unless `QUERYMEND_ATTACKS` says otherwise, and fewer where not all are wanted.
const FULL: usize = 400;
const QUICK: usize = 50;

/// Where a payload may stand: as it is or as the dialect quotes it, in values, names and comments.
const PLACES: &[&str] = &[
    "SELECT song FROM canary WHERE song = '{raw}'",
    "SELECT song FROM canary WHERE song = \"{raw}\"",
    "SELECT song FROM canary WHERE song = {text}",
    "SELECT song FROM canary WHERE id = {raw}",
    "SELECT song FROM canary WHERE id = 1 {raw}",
    "SELECT song FROM canary ORDER BY {raw}",
    "SELECT song FROM canary LIMIT {raw}",
    "SELECT song AS {name} FROM canary",
    "SELECT `{raw}` FROM canary",
    "SELECT \"{raw}\" FROM canary",
    "SELECT song /* {raw} */ FROM canary",
    "SELECT song FROM canary -- {raw}\n WHERE id = 1",
    "SELECT song FROM canary WHERE song LIKE '%{raw}%' AND id = 1",
];

/// All texts for one database.
pub struct Material {
    dialect: &'static Dialect,
    most: usize,
    secret: String,
    file: String,
}

impl Material {
    /// `secrets` is the folder in which the database finds a file `secret`, and `files` one in which it could write.
    pub fn new(dialect: &str, secrets: &Path, files: &Path) -> Self {
        let usual = if is_full_suite() { FULL } else { QUICK };
        let most = std::env::var("QUERYMEND_ATTACKS").ok().map_or(usual, |n| n.parse().unwrap());
        let dialect = Dialect::from_name(dialect).unwrap();
        let name = |folder: &Path, file: &str| folder.join(file).display().to_string();
        Self { dialect, most, secret: name(secrets, "secret"), file: name(files, "stolen") }
    }

    /// For databases that take long: not so many.
    pub fn fewer(mut self, times: usize) -> Self {
        self.most /= times;
        self
    }

    /// Every text once, all sources after each other. They are the same at every run.
    pub fn texts(&self) -> Vec<String> {
        let written = |text: &str| text.replace("{secret}", &self.secret).replace("{file}", &self.file);
        let seeds: Vec<String> = lines(READS).chain(lines(WRITES)).map(str::to_string).collect();
        // Reads are approved, and only what is approved comes to the database: they are changed more often.
        let reads = lines(READS).count();
        let (mut dice, mut all) = (Dice::new(16), seeds.clone());
        while all.len() < seeds.len() + self.most {
            let of = if dice.below(5) == 0 { &seeds[..] } else { &seeds[..reads] };
            all.push(mutant(&mut dice, of));
        }
        all.extend(some(self.payloads(), self.most));
        all.extend(some(collected(), self.most));
        // Names of folders are others at every run, and come last.
        all.iter_mut().for_each(|text| *text = written(text));
        let mut seen = std::collections::HashSet::new();
        all.retain(|text| seen.insert(text.clone()));
        all
    }

    fn payloads(&self) -> Vec<String> {
        let mut payloads: Vec<String> = lines(PAYLOADS).map(str::to_string).collect();
        payloads.extend(lists());
        let embed = |place: &str, payload: &str| {
            let (text, name) = (self.dialect.quote_string(payload), self.dialect.quote_identifier(payload));
            place.replace("{text}", &text).replace("{name}", &name).replace("{raw}", payload)
        };
        // Neighbours are of different places, so that those that are taken evenly are too.
        let embedded = |(i, payload): (usize, &String)| {
            (0..PLACES.len()).map(|j| embed(PLACES[(i + j) % PLACES.len()], payload)).collect::<Vec<_>>()
        };
        payloads.iter().enumerate().flat_map(embedded).collect()
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("## "))
}

/// At most so many, taken evenly.
fn some(all: Vec<String>, most: usize) -> Vec<String> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.into_iter().step_by(step).collect()
}

fn data() -> Option<PathBuf> {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if data.is_dir() {
        return Some(data);
    }
    eprintln!("not tried: ../shared/data is not there, whose collected statements and payloads are tried where it is");
    None
}

/// Lists of payloads that lie beside the checkout.
fn lists() -> Vec<String> {
    let Some(data) = data() else { return Vec::new() };
    let files = all_files(&data.join("security/payloads_all_the_things/sql_injection/Intruder"));
    files
        .iter()
        .flat_map(|file| read(file).lines().map(str::to_string).collect::<Vec<_>>())
        .filter(|l| !l.is_empty())
        .collect()
}

/// Statements that others have collected: what models wrote, and what parsers are tested with.
fn collected() -> Vec<String> {
    let Some(data) = data() else { return Vec::new() };
    let mut all = Vec::new();
    for file in all_files(&data.join("parser_corpora")).into_iter().chain([data.join("security/statements.jsonl")]) {
        let text = read(&file);
        match file.extension().and_then(|end| end.to_str()) {
            Some("jsonl") => all.extend(text.lines().filter_map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["sql"].as_str().map(str::to_string)
            })),
            Some("sql") => {
                let end = if file.ends_with("sqlglot/identity.sql") { "\n" } else { ";\n" };
                all.extend(text.split(end).map(str::to_string));
            }
            _ => {}
        }
    }
    all.retain(|text| !text.trim().is_empty());
    all
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned()
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(all_files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
