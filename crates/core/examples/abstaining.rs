//! Measures how often `ask` would abstain: on questions that have an answer (Spider, `datasets/unanswerable`) and on questions
//! whose subject the database lacks. No model is asked.
//!
//!     cargo run -p querymend --example abstaining -- --data DIR [--show]
//!
//! DIR holds `spider/train_questions.csv`, `spider/questions_dev.json` and `spider/database/`, and the questions of GeoQuery, BIRD and defog
//! with their databases. The last column counts questions that are not taken for questions about data.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use querymend::config::ValuesSection;
use querymend::intent::{Intent, classify};
use querymend::linking::value_sampling;
use querymend_engine::open;
use querymend_sql::coverage::missing_subject;
use querymend_sql::{Policy, Schema};
use serde_json::Value;

/// What became of the questions of one set.
#[derive(Default)]
struct Counts {
    questions: usize,
    abstained: usize,
    not_data: usize,
}

struct Measurement {
    schemas: BTreeMap<PathBuf, Option<Schema>>,
    sets: BTreeMap<String, Counts>,
    show: bool,
}

impl Measurement {
    async fn add(&mut self, set: &str, database: &Path, question: &str) {
        if !self.schemas.contains_key(database) {
            let schema = load(database).await.ok();
            self.schemas.insert(database.to_path_buf(), schema);
        }
        let Some(Some(schema)) = self.schemas.get(database) else { return };
        let missing = missing_subject(question, &[], schema);
        let intent = classify(question, schema);
        if self.show && (missing.is_none() == set.starts_with("un") || intent != Intent::Data) {
            let name = database.file_stem().unwrap_or_default().to_string_lossy();
            println!("{set} | {name} | {question} | {missing:?} | {intent:?}");
        }
        let counts = self.sets.entry(set.to_string()).or_default();
        counts.questions += 1;
        counts.abstained += usize::from(missing.is_some());
        counts.not_data += usize::from(intent != Intent::Data);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let at =
        arguments.iter().position(|argument| argument == "--data").ok_or("name the folder of the data with --data")?;
    let data = Path::new(arguments.get(at + 1).ok_or("--data needs a folder")?);
    let show = arguments.iter().any(|argument| argument == "--show");
    let mut measured = Measurement { schemas: BTreeMap::new(), sets: BTreeMap::new(), show };
    let spider = |name: &str| data.join(format!("spider/database/{name}/{name}.sqlite"));

    let folder = tempfile::tempdir()?;
    let datasets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets");
    for line in std::fs::read_to_string(datasets.join("unanswerable/questions.jsonl"))?.lines() {
        let case: Value = serde_json::from_str(line)?;
        let text = |field: &str| case[field].as_str().unwrap_or_default().to_string();
        let database = folder.path().join(format!("{}.sqlite", text("database")));
        if !database.exists() {
            build(&database, &text("database"), &datasets)?;
        }
        let set = match (case["answerable"].as_bool(), case["closest"].is_null()) {
            (Some(true), _) => "answerable".to_string(),
            (_, true) => "unanswerable, no close table".to_string(),
            (_, false) => "unanswerable, a close table".to_string(),
        };
        measured.add(&set, &database, &text("question")).await;
        if case["answerable"] == Value::Bool(false) {
            measured.add(&format!("unanswerable on {}", text("database")), &database, &text("question")).await;
        }
    }
    for case in serde_json::from_str::<Vec<Value>>(&std::fs::read_to_string(data.join("spider/questions_dev.json"))?)? {
        let (name, question) =
            (case["db_id"].as_str().unwrap_or_default(), case["question"].as_str().unwrap_or_default());
        measured.add("spider, 507 questions", &spider(name), question).await;
    }
    for row in csv_rows(&std::fs::read_to_string(data.join("spider/train_questions.csv"))?).into_iter().skip(1) {
        if let [name, question, ..] = row.as_slice() {
            measured.add("spider, training questions", &spider(name), question).await;
        }
    }
    for case in
        serde_json::from_str::<Vec<Value>>(&std::fs::read_to_string(data.join("geoquery/geography_questions.json"))?)?
    {
        let database = data.join("geoquery/geography-db.added-in-2020.sqlite");
        measured.add("geoquery", &database, case["question"].as_str().unwrap_or_default()).await;
    }
    for case in serde_json::from_str::<Vec<Value>>(&std::fs::read_to_string(data.join("bird/dev.json"))?)? {
        let name = case["db_id"].as_str().unwrap_or_default();
        let database = data.join(format!("bird/database_schema_only/{name}/{name}.sqlite"));
        // Without rows nothing can be said about subjects.
        measured.add("bird, tables without rows", &database, case["question"].as_str().unwrap_or_default()).await;
    }
    for row in
        csv_rows(&std::fs::read_to_string(data.join("defog/questions/questions_gen_sqlite.csv"))?).into_iter().skip(1)
    {
        if let [name, _, _, _, question, ..] = row.as_slice() {
            measured.add("defog", &data.join(format!("defog/sqlite/{name}.sqlite")), question).await;
        }
    }
    println!("| set | questions | abstained | | not about data |\n|---|---|---|---|---|");
    for (set, Counts { questions, abstained, not_data }) in &measured.sets {
        let share = 100.0 * *abstained as f64 / *questions as f64;
        println!("| {set} | {questions} | {abstained} | {share:.1} % | {not_data} |");
    }
    Ok(())
}

/// Writes a database of `datasets/unanswerable`.
fn build(file: &Path, name: &str, datasets: &Path) -> Result<(), Box<dyn Error>> {
    if name == "shop" {
        return Ok(querymend_engine::demo::write(file)?);
    }
    let script = std::fs::read_to_string(datasets.join(format!("misleading/{name}.sql")))?;
    // The scripts fill tables before those that they refer to.
    Ok(rusqlite::Connection::open(file)?.execute_batch(&format!("PRAGMA foreign_keys = OFF;\n{script}"))?)
}

async fn load(file: &Path) -> Result<Schema, Box<dyn Error>> {
    if !file.exists() {
        return Err("no such database".into());
    }
    let engine = open(&file.to_string_lossy())?;
    let schema = engine.schema().await?;
    let held = value_sampling::sample_values(&*engine, &schema, &Policy::default(), &ValuesSection::default()).await;
    schema.set_value_index(Arc::new(held));
    querymend::embedding_similarity::attach(&schema);
    Ok(schema)
}

/// Reads rows of comma-separated values; a cell in double quotes may hold commas, line ends and doubled quotes.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut quoted) = (vec![vec![String::new()]], false);
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let Some(row) = rows.last_mut() else { break };
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                row.last_mut().into_iter().for_each(|cell| cell.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            '\r' if !quoted => {}
            _ => row.last_mut().into_iter().for_each(|cell| cell.push(c)),
        }
    }
    rows
}
