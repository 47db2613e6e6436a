//! The guard corpus, on files that are read into SQLite.

use std::fs;

use super::*;
use crate::corpus::{Tally, corpus};
use crate::sqlite::attacks::corpus::why;
use crate::sqlite::attacks::{names_in, send};

#[tokio::test]
async fn c01_f03_nothing_of_the_corpus_writes_to_files_that_are_asked_as_a_database() {
    let Some(corpus) = corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, columns) in corpus.some_tables(100) {
        let names: Vec<&str> = columns.iter().map(|column| column.as_str()).collect();
        let row: Vec<&str> = columns.iter().map(|_| "1").collect();
        let text = format!("{}\n{}\n", names.join(","), row.join(","));
        fs::write(folder.path().join(format!("{name}.csv")), text).unwrap();
    }
    let contents = || -> Vec<(String, Vec<u8>)> {
        let names = names_in(folder.path()).into_iter();
        names.map(|name| (name.clone(), fs::read(folder.path().join(name)).unwrap())).collect()
    };
    let before = contents();
    let files = Files::open(folder.path()).unwrap();
    let loaded = files.ready(&patient()).await.unwrap();
    let database = fs::read(loaded._scratch.database()).unwrap();
    let mut tally = Tally::default();
    for sql in corpus.all() {
        tally.note(sql, &send(&loaded.engine, sql), why);
    }
    tally.tell("files");
    assert!(!tally.ran.iter().any(|sql| corpus.whole.contains(sql)), "{:?}", tally.ran);
    assert_eq!(fs::read(loaded._scratch.database()).unwrap(), database);
    assert_eq!(contents(), before);
}
