//! Which rules speak of predictions that run and are wrong, and which of those that are right: the figures of docs/values.md.
//!
//! ```text
//! cargo run --release -p querymend --example silent -- ../shared/data [CODE]
//! ```
//!
//! With the code of a rule, the right predictions that it speaks of are shown.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use querymend::config::ValuesSection;
use querymend::context::values;
use querymend_engine::{Cancel, Engine, Limits, open};
use querymend_sql::{Cell, Context, Policy, Rows, Schema, Severity, inspect, review};
use serde_json::Value;

struct Known {
    engine: Box<dyn Engine>,
    schema: Schema,
}

/// How often a rule speaks: of all lines, and of different questions.
#[derive(Default)]
struct Told {
    lines: usize,
    questions: BTreeSet<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().ok_or("name the folder of the data")?;
    let (root, shown) = (Path::new(&root), arguments.next());
    let mut known: HashMap<String, Known> = HashMap::new();
    let mut table: BTreeMap<&'static str, [Told; 3]> = BTreeMap::new();
    let mut counts = [0usize; 3];
    let mut any: [Told; 3] = Default::default();
    for (set, file) in ["silent_wrong", "controls_correct"].into_iter().enumerate() {
        let text = fs::read_to_string(root.join(format!("predictions/{file}.jsonl")))?;
        for line in text.lines() {
            let line: Value = serde_json::from_str(line)?;
            let field = |name: &str| line[name].as_str().unwrap_or_default().to_string();
            let (db, question) = (field("db"), field("question"));
            if !known.contains_key(&db) {
                known.insert(db.clone(), learn(&root.join(&db)).await?);
            }
            let Some(Known { engine, schema }) = known.get(&db) else { continue };
            let words = format!("{question} {}", field("evidence"));
            let policy = Policy::default();
            let context =
                Context { schema: Some(schema), dialect: engine.dialect(), policy: &policy, question: Some(&words) };
            let found = review(&field("pred"), &context);
            let mut findings = found.findings.clone();
            let limits = Limits { time: Duration::from_secs(5), ..Limits::default() };
            let rows = match found.approve() {
                Ok(query) => engine.execute(&query, &limits, &Cancel::new()).await.ok(),
                Err(_) => None,
            };
            if let Some(rows) = &rows {
                findings.extend(inspect(&found, rows, &context));
            }
            // A right answer that is a lone zero is right whatever the query looked for.
            let set = if set == 1 && rows.as_ref().is_some_and(is_zero) { 2 } else { set };
            counts[set] += 1;
            let codes: BTreeSet<&'static str> =
                findings.iter().filter(|f| f.severity == Severity::Warning).map(|f| f.code).collect();
            for code in &codes {
                let told = &mut table.entry(code).or_default()[set];
                told.lines += 1;
                told.questions.insert(format!("{db} {question}"));
                if set > 0 && shown.as_deref() == Some(*code) {
                    println!("{db}\n  {question}\n  {}", field("pred").replace('\n', " "));
                }
            }
            if !codes.is_empty() {
                any[set].lines += 1;
                any[set].questions.insert(format!("{db} {question}"));
            }
        }
    }
    let share = |told: &Told, of: usize| {
        format!(
            "{} of {of} ({:.2} %, {} questions)",
            told.lines,
            100.0 * told.lines as f64 / of as f64,
            told.questions.len()
        )
    };
    println!("| rule | wrong | right | right, the answer a lone zero |\n|---|---|---|---|");
    for (code, told) in table.iter().chain([(&"any of them", &any)]) {
        let cells: Vec<String> = told.iter().zip(counts).map(|(t, of)| share(t, of)).collect();
        println!("| {code} | {} |", cells.join(" | "));
    }
    Ok(())
}

async fn learn(file: &Path) -> Result<Known, Box<dyn Error>> {
    let engine = open(&file.to_string_lossy())?;
    let schema = engine.schema().await?;
    let held = values::read(&*engine, &schema, &Policy::default(), &ValuesSection::default()).await;
    schema.learn(Arc::new(held));
    Ok(Known { engine, schema })
}

fn is_zero(rows: &Rows) -> bool {
    let zero = |cell: &Cell| matches!(cell, Cell::Integer(0)) || *cell == Cell::Number(0.0);
    matches!(rows.rows.as_slice(), [row] if row.iter().all(zero))
}
