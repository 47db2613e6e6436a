//! Servers that are killed and come back. A test program of its own, which runs alone: other tests would find their server gone.

// Helpers of tests fail loudly, as tests do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[allow(dead_code, reason = "the integration tests use the rest")]
#[path = "integration/asking.rs"]
mod asking;
#[allow(dead_code, reason = "the integration tests use the rest")]
#[path = "integration/subjects/mod.rs"]
mod subjects;

use querymend_engine::Error;
use querymend_sql::Cell;
use querymend_testing::is_full;

use self::asking::ask;
use self::subjects::{Subject, servers};

#[tokio::test]
async fn f03_a_server_that_was_killed_is_found_again_once_it_is_back() {
    // Servers that are written in Java take half a minute to come back.
    let quick = |subject: &Subject| ["postgres", "mysql"].contains(&subject.name);
    for (subject, server) in servers().into_iter().filter(|(subject, _)| is_full() || quick(subject)) {
        let engine = subject.open();
        assert_eq!(ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]]);
        server.kill();
        // Kept connections are dead, and the engine may have to notice that first.
        for _ in 0..2 {
            let outcome = ask(&*engine, "SELECT count(*) FROM things").await;
            let Err(error @ Error::Unavailable { .. }) = outcome else { panic!("{}: {outcome:?}", subject.name) };
            assert!(error.is_transient(), "{}: {error}", subject.name);
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
        }
        server.start();
        assert_eq!(ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]]);
    }
}
