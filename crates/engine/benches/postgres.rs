//! What it costs to ask PostgreSQL through the engine, beside the same queries on a bare connection in the same run.
//!
//! `scripts/engines.sh up postgres`, then `cargo bench -p querymend-engine --bench postgres`. The bare side is `Client::query`,
//! which has the server read the query and then run it; it keeps the rows as they came. `read` is the same with each value read
//! into something of Rust's, as the engine does.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use querymend_engine::{CancelFlag, Limits, open};
use querymend_sql::{Approved, Policy, ReviewContext, review};
use tokio_postgres::{Client, NoTls, Row};

const TABLE: &str = "DROP TABLE IF EXISTS bench; CREATE TABLE bench (id bigint PRIMARY KEY, name text, price double precision,
    made timestamp, sold boolean); INSERT INTO bench SELECT i, 'name of ' || i, i * 0.37, timestamp '2020-01-01' + i * interval
    '1 minute', i % 3 = 0 FROM generate_series(1, 100000) i; ANALYZE bench; GRANT SELECT ON bench TO reader";

/// What is asked, and how often.
const QUERIES: [(&str, &str, usize); 4] = [
    ("1 row by its key", "SELECT id, name, price, made, sold FROM bench WHERE id = 4711", 3_000),
    // The engine keeps what the server made of the last few queries, and this is none of them.
    ("  each time another", "SELECT id, name, price, made, sold FROM bench WHERE id = {}", 3_000),
    ("1 row, an aggregate", "SELECT count(*), avg(price) FROM bench WHERE sold", 200),
    ("100,000 rows", "SELECT id, name, price, made, sold FROM bench", 40),
];

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn read(rows: &[Row]) -> Vec<(i64, String, f64, Option<std::time::SystemTime>, bool)> {
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.try_get(3).ok(), row.get(4))).collect()
}

async fn bare(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn measure(address: &str) {
    let client = bare(address).await;
    let engine = open(address).unwrap();
    let policy = Policy::default();
    let context = ReviewContext { schema: None, dialect: engine.dialect(), policy: &policy, question: None };
    let limits = Limits { rows: 1_000_000, ..Limits::default() };
    for (what, sql, times) in QUERIES {
        let sql = |i: usize| sql.replace("{}", &i.to_string());
        let (mut raw, mut values, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        // In turns, but not one by one: what a query leaves to be done after it is its own affair.
        for round in 0..10 {
            let each = || (round * times / 10..(round + 1) * times / 10).map(sql);
            for sql in each() {
                let begun = Instant::now();
                let rows = client.query(&sql, &[]).await.unwrap();
                raw.push(begun.elapsed());
                drop(rows);
            }
            for sql in each() {
                let begun = Instant::now();
                let rows = client.query(&sql, &[]).await.unwrap();
                if rows.len() > 1 {
                    let read = read(&rows);
                    values.push(begun.elapsed());
                    drop((rows, read));
                }
            }
            let queries: Vec<Approved> = each().map(|sql| review(&sql, &context).approve().unwrap()).collect();
            for query in queries {
                let begun = Instant::now();
                let rows = engine.execute(&query, &limits, &CancelFlag::new()).await.unwrap();
                ours.push(begun.elapsed());
                drop(rows);
            }
        }
        let (raw, ours) = (median(&mut raw), median(&mut ours));
        let more = (ours / raw - 1.0) * 100.0;
        println!("{what:<22}{raw:>12.0} µs{ours:>12.0} µs{more:>+9.1} %");
        if !values.is_empty() {
            let values = median(&mut values);
            println!(
                "{:<22}{values:>12.0} µs{:>15}{:>+9.1} %",
                "  and each value read",
                "",
                (ours / values - 1.0) * 100.0
            );
        }
    }
}

/// Two thousand tables of ten columns.
const TABLES: &str = "DO $$ BEGIN FOR i IN {from}..{to} LOOP EXECUTE format('CREATE TABLE many.t%s (id int PRIMARY KEY, a text, b text, c int, d int, e date,
    f numeric, g boolean, h text UNIQUE, parent int REFERENCES many.t%s)', i, greatest(i - 1, 1)); EXECUTE format('GRANT SELECT ON many.t%s TO reader', i); END LOOP; END $$";

async fn introspect(address: &str, admin: &Client) {
    admin.batch_execute("CREATE SCHEMA many; GRANT USAGE ON SCHEMA many TO reader").await.unwrap();
    // All at once would need more locks than the server has.
    for from in (1..2_000).step_by(100) {
        let some = TABLES.replace("{from}", &from.to_string()).replace("{to}", &(from + 99).to_string());
        admin.batch_execute(&some).await.unwrap();
    }
    let engine = open(address).unwrap();
    let mut times = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let schema = engine.schema().await.unwrap();
        times.push(begun.elapsed());
        assert!(schema.tables().len() >= 2_000);
    }
    println!("{:<22}{:>30.0} µs", "2,000 tables are read", median(&mut times));
    for from in (0..2_000).step_by(100) {
        let drop = format!(
            "DO $$ BEGIN FOR i IN REVERSE {}..{} LOOP EXECUTE format('DROP TABLE many.t%s', i); END LOOP; END $$",
            2_000 - from,
            1_901 - from
        );
        admin.batch_execute(&drop).await.unwrap();
    }
    admin.batch_execute("DROP SCHEMA many").await.unwrap();
}

fn main() {
    let Ok(address) = std::env::var("QUERYMEND_TEST_POSTGRES") else {
        println!("there is no PostgreSQL; scripts/engines.sh up postgres");
        return;
    };
    for (name, mut runtime) in [
        ("one thread", tokio::runtime::Builder::new_current_thread()),
        ("two threads", tokio::runtime::Builder::new_multi_thread()),
    ] {
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let admin = bare(&address.replacen("reader:reader@", "postgres:querymend@", 1)).await;
            admin.batch_execute(TABLE).await.unwrap();
            println!("{name:<22}{:>15}{:>15}{:>11}", "bare", "engine", "more");
            measure(&address).await;
            admin.batch_execute("DROP TABLE bench").await.unwrap();
            if name == "one thread" {
                introspect(&address, &admin).await;
            }
        });
    }
}
