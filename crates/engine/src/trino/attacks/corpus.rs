//! The guard corpus, on Trino: as it is sent by the engine, and then to the server's transaction alone.

use std::time::Instant;

use futures_util::StreamExt;
use querymend_sql::EngineError;
use querymend_sql::dialect::TRINO as DIALECT;
use querymend_testing::is_full;

use super::*;
use crate::corpus::{Tally, Why, for_servers};

/// So many tables are made; the server takes its time for each.
const TABLES: usize = 60;
/// Number of tables in a quick run, which also sends only part of the statements.
const QUICK_TABLES: usize = 24;
/// So many statements are sent at once.
const AT_ONCE: usize = 8;

fn why(error: &EngineError) -> Why {
    match error.code.as_str() {
        "READ_ONLY_VIOLATION" => Why::Lock,
        _ => Why::Wrong,
    }
}

/// Sends a statement, again while the server has too much to do.
async fn send_patiently(engine: &Trino, sql: &str, limits: &Limits, cancel: &Cancel) -> Result<Rows, Error> {
    let begun = Instant::now();
    loop {
        let outcome = engine.locked(sql, limits, cancel).await;
        let is_busy = matches!(outcome, Err(Error::Unavailable { transient: true, .. }));
        if !is_busy || begun.elapsed() > hang_timeout() {
            return outcome;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn clear(engine: &Trino) {
    let there = "SELECT schema_name FROM memory.information_schema.schemata WHERE schema_name = 'corpus'";
    if ask(engine, there).await.is_empty() {
        return;
    }
    for row in
        ask(engine, "SELECT table_name FROM memory.information_schema.tables WHERE table_schema = 'corpus'").await
    {
        let Some(Cell::Text(name)) = row.first() else { continue };
        ask(engine, &format!("DROP TABLE memory.corpus.{}", DIALECT.quoted(name))).await;
    }
    ask(engine, "DROP SCHEMA memory.corpus").await;
}

#[tokio::test]
async fn c01_f03_nothing_of_the_corpus_writes_to_trino() {
    let Some(corpus) = for_servers() else { return };
    let _lock = exclusive("trino");
    for admin in engines().into_iter().filter(|engine| engine.server.settings.family.scheme == "trino") {
        clear(&admin).await;
        ask(&admin, "CREATE SCHEMA memory.corpus").await;
        let tables = corpus.some_tables(if is_full() { TABLES } else { QUICK_TABLES });
        for (name, columns) in &tables {
            let columns: Vec<String> =
                columns.iter().take(40).map(|column| format!("{} VARCHAR", DIALECT.quoted(column))).collect();
            ask(&admin, &format!("CREATE TABLE memory.corpus.{} ({})", DIALECT.quoted(name), columns.join(", "))).await;
        }
        let counts: Vec<String> = tables
            .iter()
            .map(|(name, _)| {
                format!("SELECT {}, count(*) FROM memory.corpus.{}", introspect::literal(name), DIALECT.quoted(name))
            })
            .collect();
        let counts = format!("{} ORDER BY 1", counts.join(" UNION ALL "));
        let before = (state(&admin).await, ask(&admin, &counts).await);
        let address = std::env::var("QUERYMEND_TEST_TRINO").unwrap().replacen("/memory/default", "/memory/corpus", 1);
        let engine = Trino::open(&address).unwrap();
        let limits = Limits { time: Duration::from_secs(20), ..Limits::default() };
        let cancel = Cancel::new();
        for (what, sends_all) in [("trino", false), ("trino, its transaction alone", true)] {
            let (engine, limits, cancel) = (&engine, &limits, &cancel);
            let send = |sql: &'_ String| {
                let sql = sql.clone();
                async move {
                    let outcome = match lock::only_queries(&sql) {
                        Err(refused) if !sends_all => Err(refused),
                        _ => send_patiently(engine, &sql, limits, cancel).await,
                    };
                    (sql, outcome)
                }
            };
            let sent: Vec<String> = corpus.all().cloned().collect();
            let outcomes: Vec<(String, Result<Rows, Error>)> =
                futures_util::stream::iter(sent.iter().map(send)).buffer_unordered(AT_ONCE).collect().await;
            let mut tally = Tally::default();
            for (sql, outcome) in &outcomes {
                tally.note(sql, outcome, why);
            }
            tally.tell(what);
            if !sends_all {
                assert!(!tally.ran.iter().any(|sql| corpus.whole.contains(sql)), "{:?}", tally.ran);
            }
            assert_eq!((state(&admin).await, ask(&admin, &counts).await), before);
        }
        clear(&admin).await;
    }
}
