//! How often a model is asked, and what is never done twice.

use querymend::{AnswerStatus, Config, Event, StopReason};
use querymend_engine as engine;
use std::time::Duration;

use super::support::{QUESTION, Shop, ask, ask_engine, hopeless, refusal, refusing};
use crate::long_deadline::ENDLESS;

#[tokio::test]
async fn counts_queries_blocked_by_review_as_attempts() {
    for most in [1, 2, 3, 5, 10] {
        let words =
            ["flurb", "blorp", "wibble", "wobble", "grault", "garply", "plugh", "xyzzy", "thud", "corge", "zzz"];
        let config = Config::default().with_max_attempts(most).with_fallback(false);
        let told = ask(words.map(hopeless), config, QUESTION).await;
        assert_eq!(told.answer.stop, StopReason::MaxAttempts);
        assert_eq!(told.asked.len(), most as usize);
        let numbers: Vec<u32> = told.answer.attempts.iter().map(|a| a.number).collect();
        assert_eq!(numbers, (1..=most).collect::<Vec<_>>());
        assert!(told.answer.attempts.iter().all(|a| a.held_back), "nothing reached the database");
        let counted = |e: &Event| match e {
            Event::Stage { attempt, .. } | Event::Retrying { attempt, .. } => Some(*attempt),
            _ => None,
        };
        assert!(told.events.iter().filter_map(counted).all(|attempt| attempt <= most));
        assert_eq!(told.answer.metadata.tool_executions, 0);
        assert_eq!(
            told.answer.problem.as_ref().unwrap().message,
            "`products` has no column `".to_string() + words[most as usize - 1] + "`"
        );
    }
}

#[tokio::test]
async fn stops_when_any_earlier_query_repeats() {
    let config = || Config::default().with_max_attempts(10).with_fallback(false);
    let (a, b) = (hopeless("flurb"), hopeless("blorp"));
    let told = ask([a.clone(), b, format!("  {}  -- once more", a.to_lowercase())], config(), QUESTION).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::RepeatedSql, 3));
    assert_eq!(told.answer.attempts[2].error.as_deref(), Some("the same query was tried before"));

    // The query as it was mended counts too, once the database has seen it.
    let drafts = ["SELECT id FROM products", "SELECT product_id FROM products"];
    let engine = Shop::new().hooked(refusing([refusal("the moon is full")]));
    let told = ask_engine(engine, drafts, config(), QUESTION).await;
    assert_eq!(told.answer.stop, StopReason::RepeatedSql, "{:?}", told.answer.attempts);

    // Another literal is another query.
    let drafts = ["SELECT flurb FROM products WHERE name = 'a'", "SELECT blorp FROM products WHERE name = 'A'"];
    let told =
        ask(drafts.map(String::from).into_iter().chain([hopeless("wibble")]), config().with_max_attempts(3), QUESTION)
            .await;
    assert_eq!(told.answer.stop, StopReason::MaxAttempts);
}

#[tokio::test]
async fn stops_on_permission_denied() {
    for (message, code) in [("access to products.price is prohibited", 403), ("not authorized", 403)] {
        let engine = Shop::new().hooked(refusing([refusal(message)]));
        let told = ask_engine(
            engine,
            ["SELECT price FROM products", "SELECT name FROM products"],
            Config::default(),
            QUESTION,
        )
        .await;
        assert_eq!((told.answer.stop, told.asked.len()), (StopReason::NotRetryable, 1), "{message}");
        assert_eq!(told.problem().code.http_status(), code);
        assert_eq!(told.answer.sql.as_deref(), Some("SELECT price FROM products"), "it is shown all the same");
    }
}

#[tokio::test]
async fn stops_on_connection_error() {
    let (code, message) = ("SQLITE_BUSY".to_string(), "database is locked".to_string());
    let locked = querymend_sql::EngineError { code, message, ..querymend_sql::EngineError::default() };
    let engine = Shop::new().hooked(refusing([engine::Error::Rejected(locked)]));
    let told = ask_engine(engine, ["SELECT price FROM products"], Config::default(), QUESTION).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::NotRetryable, 1));
    assert_eq!(told.problem().code.http_status(), 503);
}

#[tokio::test]
async fn retries_timed_out_query_with_advice() {
    // A join of everything with everything, stopped by SQLite's own clock.
    let limits = querymend_engine::Limits { time: Duration::from_millis(80), ..querymend_engine::Limits::default() };
    let told =
        ask([ENDLESS, "SELECT count(*) FROM order_items"], Config::default().with_limits(limits), QUESTION).await;
    assert_eq!((told.answer.status, told.rows()[0][0].as_str()), (AnswerStatus::Answered, "471"));
    assert_eq!(told.strategies(), ["timeout"]);
    let message = &told.message(1).text;
    assert!(message.contains("stopped after 0.08 seconds") && message.contains("Ask for less"), "{message}");

    let spent = engine::Error::TimedOut { after: Duration::from_secs(30) };
    let engine = Shop::new().hooked(refusing([spent]));
    let told =
        ask_engine(engine, ["SELECT name FROM products", "SELECT price FROM products"], Config::default(), QUESTION)
            .await;
    assert_eq!(told.sql(), "SELECT price FROM products");
    assert_eq!(told.answer.attempts[0].error.as_deref(), Some("the query was stopped after 30 seconds"));
}
