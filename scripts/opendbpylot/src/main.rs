//! Measures how long opendbpylot takes to check a query against a schema, and how many queries it flags: on the queries and
//! schemas of `crates/sql/benches/review.rs`, the best of seven runs each.
use std::hint::black_box;
use std::time::{Duration, Instant};

use opendbpylot::schema::{SchemaIndex, is_read_only_ast};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: FILE with queries")?;
    let sets: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    for set in &sets {
        let list = |name: &str| set[name].as_array().cloned().unwrap_or_default();
        let texts = |ddl: &Value| ddl.as_str().unwrap_or_default().split(";\n").map(str::to_string).collect::<Vec<_>>();
        let schemas: Vec<SchemaIndex> =
            list("schemas").iter().map(|ddl| SchemaIndex::from_ddl(&texts(ddl), "sqlite")).collect();
        let (mut times, mut flagged): (Vec<Duration>, usize) = (Vec::new(), 0);
        for query in list("queries") {
            let (Some(schema), Some(sql)) = (query[0].as_u64(), query[1].as_str()) else { continue };
            let schema = &schemas[schema as usize];
            // Its checks before execution: names against the schema, and whether the query is read-only.
            let check = |sql: &str| (schema.validate(sql, "sqlite"), is_read_only_ast(sql));
            flagged += usize::from(!check(sql).0.is_empty());
            let once = |_| {
                let start = Instant::now();
                black_box(check(black_box(sql)));
                start.elapsed()
            };
            times.extend((0..7).map(once).min());
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6);
        println!("{}", json!({"set": set["name"], "median_us": median, "flagged": flagged}));
    }
    Ok(())
}
