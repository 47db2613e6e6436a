//! A real model behind a real server. Runs when QUERYMEND_MODEL_URL names one, such as the one that
//! `scripts/model_server.sh up` starts:
//!
//!     QUERYMEND_MODEL_URL=http://127.0.0.1:8080/v1#qwen cargo test -p querymend-model --test integration real:: -- --nocapture
//!
//! What the model says is its own affair; how it is said is checked here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend_model::{
    CancelSignal, CompletionRequest, Error, FinishReason, Message, Model, Providers, RecordingModel, ReplayModel, open,
};
use querymend_testing::{ServerLock, lock_server, scaled};
use serde_json::{Value, json};

use crate::common::ask;

/// Returns the model to test with and the lock on its server, which works on one request at a time, or `None` without a server.
///
/// It blocks until tests of other programs have released the server: call it before anything else runs.
fn model() -> Option<(Arc<dyn Model>, ServerLock)> {
    let Ok(url) = std::env::var("QUERYMEND_MODEL_URL") else {
        eprintln!("skipped: QUERYMEND_MODEL_URL is not set (scripts/model_server.sh up starts a model)");
        return None;
    };
    let spec = if url.contains('#') { url } else { format!("{url}#local") };
    Some((open(&spec, &Providers::builtin().unwrap()).unwrap(), lock_server("model")))
}

fn request(text: &str) -> CompletionRequest {
    CompletionRequest::new(vec![Message::system("You answer briefly."), Message::user(text)])
        .timeout(scaled(Duration::from_secs(300)))
}

#[tokio::test]
async fn streams_text_and_counts_tokens() {
    let Some((model, _turn)) = model() else { return };
    let (reply, watched) = ask(&*model, &request("Write an SQL query that counts the rows of the table orders.")).await;
    let reply = reply.unwrap();
    assert!(reply.text.to_lowercase().contains("select"), "{}", reply.text);
    assert_eq!(watched.concat(), reply.text);
    assert!(watched.len() > 3, "{watched:?}");
    assert!(reply.usage.input > 10 && reply.usage.output as usize >= watched.len() / 2, "{:?}", reply.usage);
    assert_eq!(reply.stopped, FinishReason::End);
    assert!(!reply.model.is_empty());
}

#[tokio::test]
async fn cuts_replies_at_max_tokens_and_stop_sequences() {
    let Some((model, _turn)) = model() else { return };
    let reply = ask(&*model, &request("Count from one to one hundred in words.").max_tokens(8)).await.0.unwrap();
    assert_eq!(reply.stopped, FinishReason::Length);
    assert!(reply.usage.output <= 9, "{:?}", reply.usage);
    let mut asked = request("Write the numbers 1 to 9 with spaces between them and nothing else.").max_tokens(40);
    asked.stop = vec!["5".to_owned()];
    let reply = ask(&*model, &asked).await.0.unwrap();
    assert!(!reply.text.contains('5'), "{}", reply.text);
}

#[tokio::test]
async fn replies_conform_to_the_schema() {
    let Some((model, _turn)) = model() else { return };
    let schema = json!({
        "type": "object",
        "properties": {
            "corrected_sql": {"type": "string"},
            "correction_applied": {"type": "string", "enum": ["spelling", "join", "none"]}
        },
        "required": ["corrected_sql", "correction_applied"],
        "additionalProperties": false
    });
    for question in ["Correct this: SELEC id FROM orders", "Tell me a joke about rain."] {
        let reply = ask(&*model, &request(question).schema(schema.clone()).max_tokens(300)).await.0.unwrap();
        let value: Value = serde_json::from_str(&reply.text).unwrap_or_else(|why| panic!("{why}: {}", reply.text));
        let fields: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["corrected_sql", "correction_applied"]);
        assert!(value["corrected_sql"].is_string());
        assert!(["spelling", "join", "none"].contains(&value["correction_applied"].as_str().unwrap()));
    }
}

#[tokio::test]
async fn same_request_has_same_reply_and_can_be_recorded() {
    let Some((model, _turn)) = model() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("takes.jsonl");
    let recorder = RecordingModel::new(model, &file).unwrap();
    let asked = request("Name one colour.").seed(7).max_tokens(16);
    let first = ask(&recorder, &asked).await.0.unwrap();
    let second = ask(&recorder, &asked).await.0.unwrap();
    assert_eq!(first.text, second.text, "temperature 0");
    let replay = ReplayModel::read(&file).unwrap();
    assert_eq!(ask(&replay, &asked).await.0.unwrap(), first);
}

#[tokio::test]
async fn cancelled_reply_frees_the_server() {
    let Some((model, _turn)) = model() else { return };
    let long = request("Write a long story about a river, in at least a thousand words.").max_tokens(2000);
    let mut waits = Vec::new();
    // A server that went on writing would keep the next reply waiting for a hundred times as long as its first twenty pieces took.
    // Something else may do so too, in some rounds.
    for _ in 0..5 {
        let cancel = CancelSignal::new();
        let stop = cancel.clone();
        let mut pieces = 0;
        let mut watch = |_: &str| {
            pieces += 1;
            if pieces == 20 {
                stop.cancel();
            }
        };
        let begun = Instant::now();
        assert_eq!(model.complete(&long, &mut watch, &cancel).await, Err(Error::Cancelled));
        // Counted, so that it holds on a slow machine: a cancel is not honoured only after all 2000 tokens.
        assert!((20..200).contains(&pieces), "{pieces}");
        let (writing, begun) = (begun.elapsed(), Instant::now());
        let short = ask(&*model, &request("Say yes.").max_tokens(4)).await.0;
        assert!(short.is_ok(), "{short:?}");
        if begun.elapsed() < 10 * writing {
            return;
        }
        waits.push((writing, begun.elapsed()));
    }
    panic!("the server went on writing: {waits:?}");
}

#[tokio::test]
async fn reports_a_conversation_over_the_context_length() {
    let Some((model, _turn)) = model() else { return };
    let error = ask(&*model, &request(&"one two three four ".repeat(10_000))).await.0.unwrap_err();
    assert!(matches!(error, Error::ContextTooLong { .. }), "{error:?}");
}

#[tokio::test]
async fn reports_a_timeout() {
    let Some((model, _turn)) = model() else { return };
    let error = ask(&*model, &request("Write a long story.").timeout(Duration::from_millis(1))).await.0.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
}
