//! Questions to a real server: answered with its tables and its words, and left alone while it is away. A binary of its own: it
//! kills a server that tests of other crates use.
//!
//! `scripts/engines.sh up postgres` starts one, and `QUERYMEND_TEST_POSTGRES` says where. Without it nothing is tried, which on
//! CI is a failure.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test that cannot go on must fail")]

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use querymend::resilience::{BreakerOpen, BreakerSettings, BreakerState, Breakers, ManualClock};
use querymend::{AnswerStatus, Config, ProblemCode, Querymend};
use querymend_engine::{Engine, Limits};
use querymend_model::ScriptedModel;
use querymend_sql::Cell;
use querymend_testing::hang_timeout;

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

/// With as much time as a slow server needs.
fn config() -> Config {
    let limits = Limits { time: hang_timeout(), ..Limits::default() };
    let mut config = Config::default().with_limits(limits).with_max_time(hang_timeout());
    config.values.time = hang_timeout();
    config
}

fn script(verb: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/engines.sh");
    assert!(Command::new("bash").args([script, verb, "postgres"]).status().unwrap().success(), "{verb}");
}

// One test, because it takes the server away from others.
#[tokio::test]
async fn repairs_query_and_recovers_when_the_server_restarts() {
    let Some(address) = server() else { return };

    // The column is misspelt; the critic knows the tables of the server, and no second draft is needed.
    let model = ScriptedModel::new(["SELECT nmae, weight FROM things WHERE id = 1"]);
    let querymend = Querymend::new(engine(&address), Arc::new(model), config());
    let answer = querymend.ask("What is the first thing called, and what does it weigh?").await;
    assert_eq!(answer.status, AnswerStatus::Answered, "{:?}", answer.problem);
    assert_eq!(answer.sql.as_deref(), Some("SELECT name, weight FROM things WHERE id = 1"));
    assert_eq!(answer.rows.unwrap().rows, [[Cell::Text("one".into()), Cell::Number(1.5)]]);
    // What the columns hold is read in the same way as anywhere.
    querymend.wait_for_values().await;
    let schema = querymend.schema().await.unwrap();
    assert!(schema.value_index().is_some_and(|values| !values.similar_values("things", "name", "ONE", 5).is_empty()));

    let settings = BreakerSettings {
        failure_threshold: 5,
        success_threshold: 2,
        timeout: Duration::from_secs(30),
        max_timeout: Duration::from_secs(60),
    };
    // It stands still until it is moved: how long the server takes to come back has no part in this.
    let clock = Arc::new(ManualClock::new());
    let breakers = Breakers::new(settings).with_clock(clock.clone());
    let guarded = breakers.guard_engine(engine(&address));
    guarded.test_connection().await.unwrap();
    script("kill");
    for _ in 0..5 {
        assert_eq!(guarded.breaker().state(), BreakerState::Closed);
        assert!(guarded.test_connection().await.unwrap_err().is_transient());
    }
    assert_eq!(guarded.breaker().state(), BreakerState::Open);
    // Turned away at once, and told when to come again.
    let error = guarded.test_connection().await.unwrap_err();
    let open = BreakerOpen::from_engine_error(&error).unwrap_or_else(|| panic!("the server itself was asked: {error}"));
    assert_eq!(open.retry_after, settings.timeout);
    // A question to a database that is away says so and is not put to a model again and again.
    let away = Querymend::new(engine(&address), Arc::new(ScriptedModel::new(["SELECT 1"; 9])), config());
    let answer = away.ask("How many things are there?").await;
    assert_eq!(answer.status, AnswerStatus::Failed);
    assert_eq!(answer.problem.unwrap().code, ProblemCode::DatabaseUnavailable);

    script("start");
    clock.advance(settings.timeout);
    guarded.test_connection().await.unwrap();
    assert_eq!(guarded.breaker().state(), BreakerState::HalfOpen);
    guarded.test_connection().await.unwrap();
    assert_eq!(guarded.breaker().state(), BreakerState::Closed);
}
