//! The guard corpus, on MySQL and MariaDB.

use querymend_sql::EngineError;
use querymend_sql::dialect::MYSQL;

use super::*;
use crate::corpus::{Corpus, Tally, Why, for_servers};

/// A row cannot be wider than the server allows, whatever is in it.
const MOST_COLUMNS: usize = 100;

fn why(error: &EngineError) -> Why {
    match error.code.as_str() {
        "1792" => Why::Lock,
        _ => Why::Wrong,
    }
}

async fn make(owner: &mut Conn, corpus: &Corpus) {
    for sql in ["CREATE OR REPLACE DATABASE corpus", "USE corpus", "SET sql_mode = ''"] {
        owner.query_drop(sql).await.unwrap();
    }
    for (name, columns) in &corpus.tables {
        let columns: Vec<String> =
            columns.iter().take(MOST_COLUMNS).map(|column| format!("{} TEXT", MYSQL.quoted(column))).collect();
        let table = MYSQL.quoted(name);
        owner.query_drop(format!("CREATE TABLE {table} ({}) ENGINE = MyISAM", columns.join(", "))).await.unwrap();
        owner.query_drop(format!("INSERT INTO {table} () VALUES ()")).await.unwrap();
    }
}

async fn all_of_it(owner: &mut Conn, corpus: &Corpus) -> Vec<String> {
    let mut state = state(owner).await;
    let tables: Vec<String> = corpus.tables.keys().map(|name| format!("corpus.{}", MYSQL.quoted(name))).collect();
    for sql in [
        format!("CHECKSUM TABLE {}", tables.join(", ")),
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'corpus' ORDER BY 1, 2".into(),
        "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'corpus' ORDER BY 1".into(),
        "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'corpus' ORDER BY 1".into(),
        "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'corpus' ORDER BY 1".into(),
    ] {
        let rows: Vec<Row> = owner.query(sql).await.unwrap();
        state.extend(rows.into_iter().map(|row| format!("{:?}", row.unwrap())));
    }
    state
}

#[tokio::test]
async fn c01_f03_nothing_of_the_corpus_writes_to_mysql() {
    let Some(corpus) = for_servers() else { return };
    let Some((_lock, _, mut owner)) = attacked().await else { return };
    make(&mut owner, &corpus).await;
    let address = std::env::var("QUERYMEND_TEST_MYSQL").unwrap().replace("reader:reader@", "owner:owner@");
    let engine = MySql::open(&address.replace("/app", "/corpus")).unwrap();
    let before = all_of_it(&mut owner, &corpus).await;
    let mut tally = Tally::default();
    for sql in corpus.all() {
        tally.note(sql, &send_within(&engine, sql, Duration::from_secs(10)).await, why);
    }
    tally.tell("mysql");
    assert!(!tally.ran.iter().any(|sql| corpus.whole.contains(sql)), "{:?}", tally.ran);
    assert_eq!(all_of_it(&mut owner, &corpus).await, before);
    owner.query_drop("DROP DATABASE corpus").await.unwrap();
}
