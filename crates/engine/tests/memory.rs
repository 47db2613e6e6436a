//! SQLite keeps one account of memory for the whole process, so this test has a process of its own.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;

use querymend_engine::sqlite::SqliteEngine;
use querymend_engine::{CancelFlag, Engine, Error, Limits};
use querymend_sql::{Cell, Policy, ReviewContext, review};
use querymend_testing::hang_timeout;

#[tokio::test]
async fn reports_a_query_that_exceeds_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    fs::write(&file, "").unwrap();
    let engine = SqliteEngine::open(&file).unwrap();
    let policy = Policy::default();
    let context = ReviewContext { schema: None, dialect: engine.dialect(), policy: &policy, question: None };
    let limits = Limits { memory: 32 << 20, time: hang_timeout(), ..Limits::default() };
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000000)";
    let wide: Vec<String> = (0..300).map(|i| format!("zeroblob({}) || x'01'", 6_000_000 + i)).collect();
    for sql in [
        format!("SELECT {}", wide.join(", ")),
        // What is sorted would otherwise spill to the disk.
        format!("{numbers} SELECT randomblob(200) FROM n ORDER BY 1"),
        format!("{numbers} SELECT length(group_concat(randomblob(10))) FROM n GROUP BY i % 1000"),
    ] {
        let query = review(&sql, &context).approve().unwrap_or_else(|refused| panic!("{refused}"));
        let outcome = engine.execute(&query, &limits, &CancelFlag::new()).await;
        let Err(Error::Rejected(said)) = outcome else { panic!("{sql:.80}: {outcome:?}") };
        assert_eq!(
            (said.code.as_str(), said.message.as_str()),
            ("SQLITE_NOMEM", "the query needed more than 32 MiB of memory")
        );
        assert!(said.hint.unwrap().contains("limits.memory"));
    }
    // The engine is as good as new.
    let query = review("SELECT 7", &context).approve().unwrap();
    assert_eq!(engine.execute(&query, &limits, &CancelFlag::new()).await.unwrap().rows, [[Cell::Integer(7)]]);
}
