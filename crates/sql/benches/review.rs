//! How long a review takes: parse, bind every name, run every rule. Beside it what it cannot be faster than, the parser alone,
//! and what the database takes to find out whether it would run the same query: SQLite's own `prepare`.
//!
//! `cargo bench -p querymend-sql --bench review` measures the queries of the rules' pages. `benches/review.py` gives it
//! real queries (a JSON file as the first argument: sets of schemas as DDL and queries) and shows sqlglot beside it.

// A benchmark prints its result and stops where its input is wrong.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use querymend_sql::{Policy, ReviewContext, Schema, dialect, review};
use serde::Deserialize;
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;

#[derive(Deserialize)]
struct Set {
    name: String,
    schemas: Vec<String>,
    /// Index of the schema, and the query.
    queries: Vec<(usize, String)>,
}

fn main() {
    let file = std::env::args().skip(1).find(|a| a.ends_with(".json"));
    let sets: Vec<Set> = match file {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        None => vec![pages()],
    };
    for set in &sets {
        measure(set);
    }
}

/// The examples of the rules' pages: small, and half of them wrong.
fn pages() -> Set {
    let mut queries = Vec::new();
    for rule in querymend_sql::RULES {
        for block in rule.page.split("```sql\n").skip(1) {
            queries.extend(block.split("\n```").next().map(|q| (0, q.to_string())));
        }
    }
    Set { name: "pages".into(), schemas: vec![include_str!("../tests/pages/shop.sql").into()], queries }
}

fn measure(set: &Set) {
    let schemas: Vec<Schema> = set.schemas.iter().map(|ddl| Schema::from_ddl(ddl, &dialect::SQLITE).unwrap()).collect();
    let databases: Vec<rusqlite::Connection> = set.schemas.iter().map(|ddl| database(ddl)).collect();
    let policy = Policy::default();
    let (mut reviews, mut parsers, mut prepares) = (Vec::new(), Vec::new(), Vec::new());
    let mut errors = 0;
    for (schema, sql) in &set.queries {
        let context =
            ReviewContext { schema: schemas.get(*schema), dialect: &dialect::SQLITE, policy: &policy, question: None };
        errors += usize::from(!review(sql, &context).is_clean());
        reviews.push(best(|| review(black_box(sql), &context)));
        // Only what is read to its end, or a query that breaks off early would count as a fast one.
        if Parser::parse_sql(&SQLiteDialect {}, sql).is_ok() {
            parsers.push(best(|| Parser::parse_sql(&SQLiteDialect {}, black_box(sql))));
        }
        if databases[*schema].prepare(sql).is_ok() {
            prepares.push(best(|| databases[*schema].prepare(black_box(sql)).is_ok()));
        }
    }
    println!(
        "{{\"set\":\"{}\",\"queries\":{},\"with_errors\":{errors},\"median_us\":{:.1},\"p95_us\":{:.1},\
         \"parser_median_us\":{:.1},\"parsed\":{},\"prepare_median_us\":{:.1},\"prepared\":{}}}",
        set.name,
        set.queries.len(),
        at(&mut reviews, 0.5),
        at(&mut reviews, 0.95),
        at(&mut parsers, 0.5),
        parsers.len(),
        at(&mut prepares, 0.5),
        prepares.len()
    );
}

/// An empty database with these tables.
fn database(ddl: &str) -> rusqlite::Connection {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database.execute_batch(ddl).unwrap();
    database
}

/// The best of a few runs: what else runs on the machine only ever adds.
fn best<T>(work: impl Fn() -> T) -> Duration {
    let once = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..7).map(once).min().unwrap_or_default()
}

fn at(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    times.get((times.len() as f64 * share) as usize).or(times.last()).map_or(0.0, |t| t.as_secs_f64() * 1e6)
}
