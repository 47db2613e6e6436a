//! The guard corpus, on SQLite.

use querymend_sql::dialect::SQLITE;

use super::*;
use crate::corpus::{Corpus, Tally, Why, corpus};

pub(crate) fn why(error: &EngineError) -> Why {
    match error.code.as_str() {
        _ if error.message.contains("one statement at a time") => Why::Several,
        "SQLITE_READONLY" | "SQLITE_AUTH" => Why::Lock,
        _ => Why::Wrong,
    }
}

fn make(connection: &Connection, corpus: &Corpus) {
    let all = connection.unchecked_transaction().unwrap();
    for (name, columns) in &corpus.tables {
        let columns: Vec<String> = columns.iter().map(|column| SQLITE.quoted(column)).collect();
        let table = SQLITE.quoted(name);
        let made = format!("CREATE TABLE {table} ({}); INSERT INTO {table} DEFAULT VALUES", columns.join(", "));
        all.execute_batch(&made).unwrap_or_else(|error| panic!("{made}: {error}"));
    }
    all.commit().unwrap();
}

#[test]
fn c01_f03_nothing_of_the_corpus_writes_to_a_file() {
    let Some(corpus) = corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("corpus.db");
    make(&Connection::open(&file).unwrap(), &corpus);
    let before = fs::read(&file).unwrap();
    let engine = Sqlite::open(&file).unwrap();
    let mut tally = Tally::default();
    for sql in corpus.all() {
        tally.note(sql, &send(&engine, sql), why);
    }
    tally.tell("sqlite");
    assert!(!tally.ran.iter().any(|sql| corpus.whole.contains(sql)), "{:?}", tally.ran);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(names_in(folder.path()), ["corpus.db"]);
}
