//! What is lost where a schema does not fit: each database alone, with room for a half and a quarter of its text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use querymend::linking::{PackingOptions, SchemaLinker};
use querymend_sql::Policy;
use querymend_sql::dialect::SQLITE;
use querymend_sql::schema::{Schema, Table, render_ddl};
use serde_json::Value;

use crate::catalogue::{self, Asked};
use crate::old;

pub fn measure(data: &Path) {
    let mut spider: BTreeMap<String, Vec<Table>> = BTreeMap::new();
    let real = catalogue::spider(data);
    let mut asked = catalogue::train(data, &real);
    asked.extend(catalogue::dev(data, &real));
    for mut table in real {
        let database = table.schema.take().unwrap();
        spider.entry(database).or_default().push(table);
    }
    spider.retain(|_, tables| tables.len() >= 6);
    let spider: Vec<(String, Schema)> =
        spider.into_iter().map(|(n, t)| (n, Schema::new(t).expect("a schema"))).collect();
    let (bird, bird_asked) = bird(data);
    println!("\nall gold tables shown / all of their gold columns too, in %\n");
    println!("| databases | room | before | whole tables | as packed |");
    println!("|---|---:|---:|---:|---:|");
    for (name, schemas, asked) in [("Spider, 6 tables or more", &spider, &asked), ("BIRD", &bird, &bird_asked)] {
        for share in [0.5, 0.25, 0.1] {
            row(name, schemas, asked, share);
        }
    }
}

fn row(name: &str, schemas: &[(String, Schema)], asked: &[Asked], share: f64) {
    let whole_only = PackingOptions { leading_tables: 0, ..PackingOptions::default() };
    let (mut questions, mut kept) = (0, [[0; 2]; 3]);
    for (database, schema) in schemas {
        let tables = SchemaLinker::new(Arc::new(schema.clone()), &SQLITE, &Policy::default());
        let texts: Vec<String> = schema.tables().iter().map(|t| render_ddl(t, &SQLITE)).collect();
        let room = (texts.iter().map(String::len).sum::<usize>() as f64 * share) as usize;
        let names: BTreeSet<String> = schema.tables().iter().map(|t| t.name.to_lowercase()).collect();
        for question in asked.iter().filter(|q| q.database == *database) {
            let gold = catalogue::read_by(&question.sql, &names);
            questions += 1;
            let before: String = old::fitting(schema.tables(), &texts, &question.question, room)
                .into_iter()
                .map(|i| texts[i].as_str())
                .collect();
            let whole = tables.pack_tables(&question.question, &[], room, &whole_only).text;
            let packed = tables.link(&question.question, room).text;
            assert!(packed.len() <= room);
            for (kept, text) in kept.iter_mut().zip([before, whole, packed]) {
                let shown = if text.is_empty() {
                    Schema::default()
                } else {
                    Schema::from_ddl(&text, &SQLITE).expect("valid DDL")
                };
                if gold.iter().all(|t| shown.table(t).is_some()) {
                    kept[0] += 1;
                    kept[1] += usize::from(has_columns(&shown, schema, &gold, &question.sql));
                }
            }
        }
    }
    let cell = |k: &[usize; 2]| k.map(|n| format!("{:.1}", 100.0 * n as f64 / questions as f64)).join(" / ");
    println!(
        "| {name} ({} databases, {questions} questions) | {:.0} % | {} |",
        schemas.len(),
        share * 100.0,
        kept.iter().map(cell).collect::<Vec<_>>().join(" | ")
    );
}

/// Whether all columns of the gold tables whose names stand in the query are shown.
fn has_columns(shown: &Schema, schema: &Schema, gold: &BTreeSet<String>, sql: &str) -> bool {
    let lower = sql.to_lowercase();
    let words: BTreeSet<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let named = |name: &str| {
        let name = name.to_lowercase();
        words.contains(name.as_str()) || (name.contains(' ') && lower.contains(&name))
    };
    gold.iter().all(|table| {
        let (Some(all), Some(here)) = (schema.table(table), shown.table(table)) else { return false };
        // A name that several gold tables have may be meant of one alone.
        let only_here =
            |name: &str| gold.iter().filter(|t| schema.table(t).is_some_and(|t| t.column(name).is_some())).count() == 1;
        all.columns.iter().filter(|c| named(&c.name) && only_here(&c.name)).all(|c| here.column(&c.name).is_some())
    })
}

fn bird(data: &Path) -> (Vec<(String, Schema)>, Vec<Asked>) {
    let (mut schemas, mut asked) = (Vec::new(), Vec::new());
    let Ok(text) = std::fs::read_to_string(data.join("bird/dev.json")) else { return (schemas, asked) };
    let questions: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
    for question in &questions {
        let database = text(&question["db_id"]);
        if !schemas.iter().any(|(name, _)| *name == database) {
            let file = data.join(format!("bird/database_schema_only/{database}/schema.sql"));
            let Ok(ddl) = std::fs::read_to_string(file) else { continue };
            schemas.push((database.clone(), Schema::from_ddl(&ddl, &SQLITE).expect("DDL")));
        }
        asked.push(Asked {
            database,
            question: text(&question["question"]),
            sql: text(&question["SQL"]),
            tables: BTreeSet::new(),
            held_out: true,
        });
    }
    (schemas, asked)
}
