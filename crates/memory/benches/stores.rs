//! How fast stores are, any of them.
//!
//! ```text
//! scripts/stores.sh up
//! QUERYMEND_STORE_PASSWORD=querymend cargo bench --profile release -p querymend-memory --bench stores -- 10000 STORE…
//! ```
//!
//! A STORE is what `open` takes: a path, `chroma://HOST:PORT/COLLECTION`, `postgres://USER@HOST:PORT/DATABASE?table=TABLE`, each
//! one that is not there yet. The questions are made of words, each one another, and embedded by the embedder that is compiled in;
//! its time is part of the figures.

// A benchmark prints its result and stops where its input is wrong.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use querymend_memory::{Example, ExampleFilter, ExampleQuery, ExampleStore, ExampleUpdate, open};
use querymend_model::StaticEmbedder;

const ASKED: usize = 500;
const BEGINNINGS: [&str; 10] = [
    "How many",
    "List all",
    "What is the average price of",
    "Which are the most expensive",
    "Show the names of",
    "What is the total weight of",
    "Who ordered",
    "In which city are",
    "When did we first sell",
    "Count the returned",
];
const THINGS: [&str; 20] = [
    "orders",
    "singers",
    "airplanes",
    "students",
    "bicycles",
    "concerts",
    "invoices",
    "dogs",
    "employees",
    "stadiums",
    "books",
    "rivers",
    "battles",
    "television channels",
    "courses",
    "cars",
    "museums",
    "tennis players",
    "households",
    "countries",
];
const CONDITIONS: [&str; 10] = [
    "in each year",
    "from the north",
    "with more than two owners",
    "that were cancelled",
    "by region",
    "older than ten years",
    "made in Spain",
    "sorted by name",
    "without any address",
    "on weekends",
];

/// The n-th question, another one for each n.
fn example(n: usize) -> Example {
    let (beginning, thing, condition) = (BEGINNINGS[n % 10], THINGS[n / 10 % 20], CONDITIONS[n / 200 % 10]);
    let rest = n / 2000;
    let (thing_two, database) = (THINGS[(rest * 7 + n) % 20], format!("shop{}", n % 20));
    let question = format!("{beginning} {thing} {condition} and {thing_two} of store {rest}?");
    let sql = format!("SELECT count(*) FROM t{} WHERE c{} = {n}", n % 20, n / 200 % 10);
    Example::new(&question, &sql, &database, "sqlite")
}

fn shown(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("median {:.2} ms, 95 of 100 under {:.2} ms", at(0.5), at(0.95))
}

async fn measure(store: &dyn ExampleStore, count: usize) {
    let examples: Vec<Example> = (0..count).map(example).collect();
    let start = Instant::now();
    let new = store.add(&examples).await.unwrap();
    println!("  {new} added at once in {:.1} s", start.elapsed().as_secs_f64());
    let mut one_by_one = Vec::new();
    for n in count..count + 200 {
        let start = Instant::now();
        store.add(&[example(n)]).await.unwrap();
        one_by_one.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("  one added: {}", shown(one_by_one));
    for (what, only_database) in [("searched", false), ("searched in one database", true)] {
        let mut times = Vec::new();
        let mut right = 0;
        for n in 0..ASKED + 20 {
            let asked = example(n * 19 % count);
            let sought = ExampleQuery {
                question: &asked.question,
                database: &asked.database,
                dialect: Some("sqlite"),
                only_database,
                only_verified: false,
                limit: 5,
            };
            let start = Instant::now();
            let found = store.search(&sought).await.unwrap();
            // The first ones make connections and fill caches.
            if n >= 20 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
                right += usize::from(found.iter().any(|found| found.example.id == asked.id));
            }
        }
        println!("  {what}: {}; the same question is among the five {right} times of {ASKED}", shown(times));
    }
    let ids: Vec<String> = (0..5).map(|n| example(n).id).collect();
    let changes: Vec<(&str, ExampleUpdate)> =
        ids.iter().map(|id| (id.as_str(), ExampleUpdate { uses: 1, ..ExampleUpdate::default() })).collect();
    let mut times = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        store.update(&changes).await.unwrap();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("  five counted: {}", shown(times));
    let start = Instant::now();
    store.list(&ExampleFilter::default(), 0, 20).await.unwrap();
    println!("  the newest twenty listed in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
}

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    // Without a number nothing is measured: this is also run where all targets are.
    let Some(count) = words.next().and_then(|count| count.parse().ok()) else { return };
    for spec in words {
        let store = open(&spec, Arc::new(StaticEmbedder::builtin().unwrap())).await.unwrap();
        println!("{}", store.name());
        measure(&*store, count).await;
    }
}
