//! Which rules speak of predictions that run and are wrong, and which of those that are right: the figures of docs/measurements/silent-errors.md.
//!
//! ```text
//! cargo run --release -p querymend --example silent -- ../shared/data [CODE]
//! ```
//!
//! With the code of a rule, the right predictions that it speaks of are shown.
//!
//! A prediction that answers a lone zero may be right by luck: the expected query finds nothing either, because values of the
//! database have spaces around them. Both are run once more on a copy without these spaces; what differs then is counted apart.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use querymend::config::ValuesSection;
use querymend::linking::value_sampling;
use querymend_engine::{CancelFlag, Engine, Limits, open};
use querymend_sql::{Cell, Policy, ReviewContext, Rows, Schema, Severity, inspect_rows, review};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

struct Known {
    engine: Box<dyn Engine>,
    schema: Schema,
    /// The same rows without spaces around values, once they were needed.
    trimmed: Option<Connection>,
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
            let Some(Known { engine, schema, trimmed }) = known.get_mut(&db) else { continue };
            let words = format!("{question} {}", field("evidence"));
            let policy = Policy::default();
            let context = ReviewContext {
                schema: Some(&*schema),
                dialect: engine.dialect(),
                policy: &policy,
                question: Some(&words),
            };
            let found = review(&field("pred"), &context);
            let mut findings = found.findings.clone();
            let limits = Limits { time: Duration::from_secs(5), ..Limits::default() };
            let rows = match found.approve() {
                Ok(query) => engine.execute(&query, &limits, &CancelFlag::new()).await.ok(),
                Err(_) => None,
            };
            if let Some(rows) = &rows {
                findings.extend(inspect_rows(&found, rows, &context));
            }
            let mut set = set;
            if set == 1 && rows.as_ref().is_some_and(is_zero) {
                let copy = match trimmed.take() {
                    Some(copy) => copy,
                    None => without_spaces(&root.join(&db))?,
                };
                if rows_of(&copy, &field("gold"))? != rows_of(&copy, &field("pred"))? {
                    set = 2;
                }
                *trimmed = Some(copy);
            }
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
    println!("| rule | wrong | right | right by luck |\n|---|---|---|---|");
    for (code, told) in table.iter().chain([(&"any of them", &any)]) {
        let cells: Vec<String> = told.iter().zip(counts).map(|(t, of)| share(t, of)).collect();
        println!("| {code} | {} |", cells.join(" | "));
    }
    Ok(())
}

async fn learn(file: &Path) -> Result<Known, Box<dyn Error>> {
    let engine = open(&file.to_string_lossy())?;
    let schema = engine.schema().await?;
    let held = value_sampling::sample_values(&*engine, &schema, &Policy::default(), &ValuesSection::default()).await;
    schema.set_value_index(Arc::new(held));
    querymend::embedding_similarity::attach(&schema);
    Ok(Known { engine, schema, trimmed: None })
}

fn is_zero(rows: &Rows) -> bool {
    let zero = |cell: &Cell| matches!(cell, Cell::Integer(0)) || *cell == Cell::Number(0.0);
    matches!(rows.rows.as_slice(), [row] if row.iter().all(zero))
}

/// A copy of a database in memory, without spaces around its values.
fn without_spaces(file: &Path) -> Result<Connection, Box<dyn Error>> {
    let from = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut copy = Connection::open_in_memory()?;
    rusqlite::backup::Backup::new(&from, &mut copy)?.run_to_completion(1_000, Duration::ZERO, None)?;
    copy.pragma_update(None, "foreign_keys", false)?;
    let columns = "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                   WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'";
    let columns: Vec<(String, String)> =
        copy.prepare(columns)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    for (table, column) in columns {
        let sql = format!(
            "UPDATE OR IGNORE \"{table}\" SET \"{column}\" = TRIM(\"{column}\") WHERE typeof(\"{column}\") = 'text'"
        );
        copy.execute(&sql, [])?;
    }
    Ok(copy)
}

/// The rows of a query, in an order of their own.
fn rows_of(database: &Connection, sql: &str) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = database.prepare(sql)?;
    let count = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let cells: Result<Vec<_>, _> = (0..count).map(|at| row.get_ref(at)).collect();
        Ok(format!("{:?}", cells?))
    };
    let mut rows: Vec<String> = statement.query_map([], row)?.collect::<Result<_, _>>()?;
    rows.sort();
    Ok(rows)
}
