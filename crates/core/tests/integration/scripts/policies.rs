//! What a configuration says about each kind of failure is what happens.

use std::time::Duration;

use querymend::{AnswerStatus, Config, StopReason};
use querymend_engine as engine;

use super::support::{QUESTION, Shop, Told, ask, ask_engine, hopeless, refusal, refusing};

async fn with(policy: &str, drafts: &[String]) -> Told {
    let config =
        Config::from_yaml(&format!("self_correction: {{fallback: false, max_attempts: 6}}\nretry_policy: {policy}"));
    ask(drafts.to_vec(), config.unwrap(), QUESTION).await
}

fn columns() -> Vec<String> {
    ["flurb", "blorp", "wibble"].map(hopeless).into_iter().chain(["SELECT name FROM products".to_string()]).collect()
}

#[tokio::test]
async fn auto_retry_with_schema_repairs_or_lists_names() {
    let told = with("{column_not_found: auto_retry_with_schema}", &["SELECT id FROM products".into()]).await;
    assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 1));
    let told = with("{column_not_found: auto_retry_with_schema}", &columns()).await;
    assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 4));
    assert!(told.message(1).text.contains("Columns in reach: product_id, name"), "{:?}", told.message(1));
}

#[tokio::test]
async fn auto_retry_with_llm_sends_feedback_to_the_model() {
    let broken = ["SELECT name FROM products WHERE (((".to_string(), "SELECT name FROM products".into()];
    let told = with("{syntax_error: auto_retry_with_llm}", &broken).await;
    assert_eq!((told.answer.status, told.asked.len()), (AnswerStatus::Answered, 2), "{:?}", told.answer);
    let told = with("{column_not_found: {strategy: auto_retry_with_llm, max_attempts: 2}}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::RetryPolicy, 2));
}

#[tokio::test]
async fn fail_immediately_stops_after_the_first_attempt() {
    let told = with("{column_not_found: fail_immediately}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::NotRetryable, 1));
    let problem = told.problem();
    assert_eq!(problem.code, querymend::ProblemCode::PreflightValidationFailed, "the critic held it back");
    assert!(problem.hint.as_deref().unwrap().contains("`retry_policy` is fail_immediately"), "{problem:?}");
    // What rules mend is no failure.
    let told = with("{column_not_found: fail_immediately}", &["SELECT id FROM products".into()]).await;
    assert_eq!(told.answer.status, AnswerStatus::Answered);
}

#[tokio::test]
async fn limited_retry_asks_once_more() {
    let told = with("{column_not_found: limited_retry}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::RetryPolicy, 2));
    let told = with("{column_not_found: {strategy: limited_retry, max_attempts: 3}}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::RetryPolicy, 3));
}

#[tokio::test]
async fn retry_with_optimization_asks_for_less() {
    let engine = Shop::new().hooked(refusing([engine::Error::TimedOut { after: Duration::from_secs(1) }]));
    let drafts = ["SELECT name FROM products", "SELECT price FROM products"];
    let told = ask_engine(engine, drafts, Config::default(), QUESTION).await;
    assert!(told.message(1).text.contains("Ask for less"));
    // A policy may want it for other failures too.
    let told = with("{column_not_found: retry_with_optimization}", &columns()).await;
    assert_eq!(told.strategies(), ["timeout"; 3]);
}

#[tokio::test]
async fn counts_retries_per_error_type() {
    let policy = "{column_not_found: {strategy: auto_retry_with_llm, max_attempts: 2}}";
    let drafts = [hopeless("flurb"), "SELECT 1 FROM flurb".into(), hopeless("blorp"), "SELECT 1".into()];
    let told = with(policy, &drafts).await;
    assert_eq!((told.answer.stop, told.asked.len()), (StopReason::RetryPolicy, 3));
    let engine = Shop::new().hooked(refusing([refusal("the moon is full")]));
    let told =
        ask_engine(engine, ["SELECT name FROM products", "SELECT price FROM products"], Config::default(), QUESTION)
            .await;
    assert_eq!(
        (told.answer.status, told.asked.len()),
        (AnswerStatus::Answered, 2),
        "what nobody knows is tried once more"
    );
}
