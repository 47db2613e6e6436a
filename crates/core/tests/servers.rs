//! Questions to a real server: answered with its tables and its words, and left alone while it is away.
//!
//! `scripts/engines.sh up postgres` starts one, and `QUERYMEND_TEST_POSTGRES` says where. Without it nothing is tried, which on
//! CI is a failure.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test that cannot go on must fail")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend::guard::{BreakerSettings, Breakers, State};
use querymend::{Config, ProblemCode, Querymend, Status};
use querymend_engine::{Engine, Error};
use querymend_model::Script;
use querymend_sql::Cell;

fn server() -> Option<String> {
    let narrowed = std::env::var("QUERYMEND_TEST_ENGINES").is_ok_and(|names| !names.contains("postgres"));
    let address = std::env::var("QUERYMEND_TEST_POSTGRES").ok().filter(|_| !narrowed);
    if address.is_none() {
        assert!(
            narrowed || std::env::var_os("CI").is_none(),
            "PostgreSQL is not there; scripts/engines.sh up postgres"
        );
        eprintln!("skipped: PostgreSQL is not there; scripts/engines.sh up postgres");
    }
    address
}

fn engine(address: &str) -> Arc<dyn Engine> {
    Arc::from(querymend_engine::open(address).unwrap())
}

fn script(verb: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/engines.sh");
    assert!(Command::new("bash").args([script, verb, "postgres"]).status().unwrap().success(), "{verb}");
}

// One test, because it takes the server away from others.
#[tokio::test]
async fn l07_a_server_is_asked_mended_for_left_alone_while_it_is_away_and_asked_again() {
    let Some(address) = server() else { return };

    // The column is misspelt; the critic knows the tables of the server, and no second draft is needed.
    let model = Script::new(["SELECT nmae, weight FROM things WHERE id = 1"]);
    let querymend = Querymend::new(engine(&address), Arc::new(model), Config::default());
    let answer = querymend.ask("What is the first thing called, and what does it weigh?").await;
    assert_eq!(answer.status, Status::Answered, "{:?}", answer.problem);
    assert_eq!(answer.sql.as_deref(), Some("SELECT name, weight FROM things WHERE id = 1"));
    assert_eq!(answer.rows.unwrap().rows, [[Cell::Text("one".into()), Cell::Number(1.5)]]);
    // What the columns hold is read in the same way as anywhere.
    querymend.learned().await;
    let schema = querymend.schema().await.unwrap();
    assert!(schema.values().is_some_and(|values| !values.near("things", "name", "ONE", 5).is_empty()));

    let settings = BreakerSettings {
        failure_threshold: 5,
        success_threshold: 2,
        timeout: Duration::from_millis(400),
        max_timeout: Duration::from_secs(2),
    };
    let breakers = Breakers::new(settings);
    let guarded = breakers.engine(engine(&address));
    guarded.test_connection().await.unwrap();
    script("kill");
    for _ in 0..5 {
        assert_eq!(guarded.breaker().state(), State::Closed);
        assert!(guarded.test_connection().await.unwrap_err().is_transient());
    }
    assert_eq!(guarded.breaker().state(), State::Open);
    // Turned away at once, and told when to come again.
    let begun = Instant::now();
    let error = guarded.test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }) && begun.elapsed() < Duration::from_millis(100), "{error}");
    // A question to a database that is away says so and is not put to a model again and again.
    let away = Querymend::new(engine(&address), Arc::new(Script::new(["SELECT 1"; 9])), Config::default());
    let answer = away.ask("How many things are there?").await;
    assert_eq!(answer.status, Status::Failed);
    assert_eq!(answer.problem.unwrap().code, ProblemCode::DatabaseUnavailable);

    script("start");
    tokio::time::sleep(Duration::from_millis(500)).await;
    guarded.test_connection().await.unwrap();
    assert_eq!(guarded.breaker().state(), State::HalfOpen);
    guarded.test_connection().await.unwrap();
    assert_eq!(guarded.breaker().state(), State::Closed);
}
