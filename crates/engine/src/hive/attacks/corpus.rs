//! The guard corpus, on Spark. Its lock is its grammar: between brackets stands a query, or it is not understood, before any table is
//! looked for. So it says of most statements that they are wrong, and that is the lock.

use querymend_sql::EngineError;
use querymend_sql::dialect::SPARK;

use super::*;
use crate::corpus::{Tally, Why, for_servers};

/// So many tables are made; the server takes its time for each.
const TABLES: usize = 12;
/// So many are sent at once, one on each session.
const AT_ONCE: usize = 4;

fn why(error: &EngineError) -> Why {
    let words = &error.message;
    if words.contains("PARSE_SYNTAX_ERROR") || error.code == "PARSE_SYNTAX_ERROR" || error.code == "25006" {
        Why::Lock
    } else {
        Why::Wrong
    }
}

#[test]
fn c01_f03_nothing_of_the_corpus_writes_to_spark() {
    let Some(corpus) = for_servers() else { return };
    let Some(admin) = server() else { return };
    let _lock = exclusive("spark");
    seen(&admin, "DROP DATABASE IF EXISTS corpus CASCADE");
    seen(&admin, "CREATE DATABASE corpus");
    let tables = corpus.some_tables(TABLES);
    for (name, columns) in &tables {
        let columns: Vec<String> = columns.iter().map(|column| format!("{} STRING", SPARK.quoted(column))).collect();
        seen(&admin, &format!("CREATE TABLE corpus.{} ({}) USING parquet", SPARK.quoted(name), columns.join(", ")));
    }
    let all_of_it = || {
        let mut all = state(&admin);
        for sql in ["SHOW TABLES IN corpus", "SHOW VIEWS IN corpus", "SHOW USER FUNCTIONS IN corpus"] {
            all.push(seen(&admin, sql));
        }
        for (name, _) in &tables {
            all.push(seen(&admin, &format!("SELECT count(*) FROM corpus.{}", SPARK.quoted(name))));
            all.push(seen(&admin, &format!("DESCRIBE corpus.{}", SPARK.quoted(name))));
        }
        all
    };
    let before = all_of_it();
    let address = std::env::var("QUERYMEND_TEST_SPARK").unwrap().replacen("/default", "/corpus", 1);
    let engine = Hive::open(&address).unwrap();
    let sent: Vec<&String> = corpus.all().collect();
    let outcomes: Vec<(&String, Result<Rows, Error>)> = std::thread::scope(|threads| {
        let working: Vec<_> = sent
            .chunks(sent.len().div_ceil(AT_ONCE))
            .map(|some| {
                let (some, engine) = (some.to_vec(), &engine);
                threads.spawn(move || some.into_iter().map(|sql| (sql, send(engine, sql))).collect::<Vec<_>>())
            })
            .collect();
        working.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut tally = Tally::default();
    for (sql, outcome) in &outcomes {
        tally.note(sql, outcome, why);
    }
    tally.tell("spark");
    assert!(!tally.ran.iter().any(|sql| corpus.whole.contains(sql)), "{:?}", tally.ran);
    assert_eq!(all_of_it(), before);
    seen(&admin, "DROP DATABASE corpus CASCADE");
}
