//! What a configuration says about each kind of failure is what happens.

use std::time::Duration;

use querymend::{Config, Status, Stop};
use querymend_engine::Error as EngineTrouble;

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
async fn l06_auto_retry_with_schema_mends_or_shows_the_names() {
    let told = with("{column_not_found: auto_retry_with_schema}", &["SELECT id FROM products".into()]).await;
    assert_eq!((told.answer.status, told.asked.len()), (Status::Answered, 1));
    let told = with("{column_not_found: auto_retry_with_schema}", &columns()).await;
    assert_eq!((told.answer.status, told.asked.len()), (Status::Answered, 4));
    assert!(told.message(1).text.contains("Columns in reach: product_id, name"), "{:?}", told.message(1));
}

#[tokio::test]
async fn l06_auto_retry_with_llm_tells_the_model() {
    let broken = ["SELECT name FROM products WHERE (((".to_string(), "SELECT name FROM products".into()];
    let told = with("{syntax_error: auto_retry_with_llm}", &broken).await;
    assert_eq!((told.answer.status, told.asked.len()), (Status::Answered, 2), "{:?}", told.answer);
    let told = with("{column_not_found: {strategy: auto_retry_with_llm, max_attempts: 2}}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (Stop::PolicySpent, 2));
}

#[tokio::test]
async fn l06_fail_immediately_does() {
    let told = with("{column_not_found: fail_immediately}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (Stop::NotRetryable, 1));
    let problem = told.problem();
    assert_eq!(problem.code, querymend::ProblemCode::PreflightValidationFailed, "the critic held it back");
    assert!(problem.hint.as_deref().unwrap().contains("`retry_policy` says fail_immediately"), "{problem:?}");
    // What rules mend is no failure.
    let told = with("{column_not_found: fail_immediately}", &["SELECT id FROM products".into()]).await;
    assert_eq!(told.answer.status, Status::Answered);
}

#[tokio::test]
async fn l06_limited_retry_asks_once_more() {
    let told = with("{column_not_found: limited_retry}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (Stop::PolicySpent, 2));
    let told = with("{column_not_found: {strategy: limited_retry, max_attempts: 3}}", &columns()).await;
    assert_eq!((told.answer.stop, told.asked.len()), (Stop::PolicySpent, 3));
}

#[tokio::test]
async fn l06_retry_with_optimization_asks_for_less() {
    let engine = Shop::new().hooked(refusing([EngineTrouble::TimedOut { after: Duration::from_secs(1) }]));
    let drafts = ["SELECT name FROM products", "SELECT price FROM products"];
    let told = ask_engine(engine, drafts, Config::default(), QUESTION).await;
    assert!(told.message(1).text.contains("Ask for less"));
    // A policy may want it for other failures too.
    let told = with("{column_not_found: retry_with_optimization}", &columns()).await;
    assert_eq!(told.strategies(), ["timeout"; 3]);
}

#[tokio::test]
async fn q15_kinds_are_counted_apart() {
    let policy = "{column_not_found: {strategy: auto_retry_with_llm, max_attempts: 2}}";
    let drafts = [hopeless("flurb"), "SELECT 1 FROM flurb".into(), hopeless("blorp"), "SELECT 1".into()];
    let told = with(policy, &drafts).await;
    assert_eq!((told.answer.stop, told.asked.len()), (Stop::PolicySpent, 3));
    let engine = Shop::new().hooked(refusing([refusal("the moon is full")]));
    let told =
        ask_engine(engine, ["SELECT name FROM products", "SELECT price FROM products"], Config::default(), QUESTION)
            .await;
    assert_eq!((told.answer.status, told.asked.len()), (Status::Answered, 2), "what nobody knows is tried once more");
}
