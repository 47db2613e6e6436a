//! Attack corpus on files that are loaded into SQLite.

use std::fs;

use super::*;
use crate::attack_corpus::{AttackTally, load_corpus};
use crate::sqlite::attacks::{execute_raw, list_files, rejection_reason};

#[tokio::test]
async fn corpus_writes_nothing_to_files() {
    let Some(corpus) = load_corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, columns) in corpus.largest_tables(100) {
        let names: Vec<&str> = columns.iter().map(|column| column.as_str()).collect();
        let row: Vec<&str> = columns.iter().map(|_| "1").collect();
        let text = format!("{}\n{}\n", names.join(","), row.join(","));
        fs::write(folder.path().join(format!("{name}.csv")), text).unwrap();
    }
    let contents = || -> Vec<(String, Vec<u8>)> {
        let names = list_files(folder.path()).into_iter();
        names.map(|name| (name.clone(), fs::read(folder.path().join(name)).unwrap())).collect()
    };
    let before = contents();
    let files = FileEngine::open(folder.path()).unwrap();
    let loaded = files.ensure_loaded(&load_deadline()).await.unwrap();
    let database = fs::read(loaded._store.database_path()).unwrap();
    let mut tally = AttackTally::default();
    for sql in corpus.all_statements() {
        tally.record(sql, &execute_raw(&loaded.engine, sql), rejection_reason);
    }
    tally.report("files");
    assert!(!tally.executed.iter().any(|sql| corpus.statements.contains(sql)), "{:?}", tally.executed);
    assert_eq!(fs::read(loaded._store.database_path()).unwrap(), database);
    assert_eq!(contents(), before);
}
