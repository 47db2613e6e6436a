//! How long a review takes: parse, bind every name, run every rule.
//!
//! `cargo bench -p querymend-sql --bench review` measures the queries of the rules' pages. `benches/review.py` gives it
//! real queries (a JSON file as the first argument: sets of schemas as DDL and queries) and shows sqlglot beside it.

// A benchmark prints its result and stops where its input is wrong.
#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use querymend_sql::{Context, Policy, Schema, dialect, review};
use serde::Deserialize;

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
    let policy = Policy::default();
    let mut times: Vec<Duration> = Vec::with_capacity(set.queries.len());
    let mut errors = 0;
    for (schema, sql) in &set.queries {
        let context =
            Context { schema: schemas.get(*schema), dialect: &dialect::SQLITE, policy: &policy, question: None };
        errors += usize::from(!review(sql, &context).is_clean());
        // The best of a few runs: what else runs on the machine only ever adds.
        let best = (0..7).map(|_| {
            let start = Instant::now();
            black_box(review(black_box(sql), &context));
            start.elapsed()
        });
        times.extend(best.min());
    }
    times.sort_unstable();
    let at = |share: f64| {
        times.get((times.len() as f64 * share) as usize).or(times.last()).map_or(0.0, |t| t.as_secs_f64() * 1e6)
    };
    println!(
        "{{\"set\":\"{}\",\"queries\":{},\"with_errors\":{errors},\"median_us\":{:.1},\"p95_us\":{:.1}}}",
        set.name,
        times.len(),
        at(0.5),
        at(0.95)
    );
}
