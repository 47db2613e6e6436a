//! A real model behind a real server. Runs when QUERYMEND_MODEL_URL names one, such as the one that
//! `scripts/model_server.sh up` starts:
//!
//!     QUERYMEND_MODEL_URL=http://127.0.0.1:8080/v1#qwen cargo test -p querymend-model --test integration real:: -- --nocapture
//!
//! What the model says is its own affair; how it is said is checked here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend_model::{Cancel, Error, Message, Model, Providers, Recorder, Replay, Request, Stopped, open};
use querymend_testing::{ServerLock, exclusive, scaled};
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
    Some((open(&spec, &Providers::builtin().unwrap()).unwrap(), exclusive("model")))
}

fn request(text: &str) -> Request {
    Request::new(vec![Message::system("You answer briefly."), Message::user(text)])
        .timeout(scaled(Duration::from_secs(300)))
}

#[tokio::test]
async fn a05_text_is_streamed_and_counted() {
    let Some((model, _turn)) = model() else { return };
    let (reply, watched) = ask(&*model, &request("Write an SQL query that counts the rows of the table orders.")).await;
    let reply = reply.unwrap();
    assert!(reply.text.to_lowercase().contains("select"), "{}", reply.text);
    assert_eq!(watched.concat(), reply.text);
    assert!(watched.len() > 3, "{watched:?}");
    assert!(reply.usage.input > 10 && reply.usage.output as usize >= watched.len() / 2, "{:?}", reply.usage);
    assert_eq!(reply.stopped, Stopped::End);
    assert!(!reply.model.is_empty());
}

#[tokio::test]
async fn a_reply_is_cut_at_its_longest_length_and_at_stop_texts() {
    let Some((model, _turn)) = model() else { return };
    let reply = ask(&*model, &request("Count from one to one hundred in words.").max_tokens(8)).await.0.unwrap();
    assert_eq!(reply.stopped, Stopped::Length);
    assert!(reply.usage.output <= 9, "{:?}", reply.usage);
    let mut asked = request("Write the numbers 1 to 9 with spaces between them and nothing else.").max_tokens(40);
    asked.stop = vec!["5".to_owned()];
    let reply = ask(&*model, &asked).await.0.unwrap();
    assert!(!reply.text.contains('5'), "{}", reply.text);
}

#[tokio::test]
async fn a06_a_schema_is_obeyed() {
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
async fn the_same_request_has_the_same_reply_and_can_be_recorded() {
    let Some((model, _turn)) = model() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("takes.jsonl");
    let recorder = Recorder::new(model, &file).unwrap();
    let asked = request("Name one colour.").seed(7).max_tokens(16);
    let first = ask(&recorder, &asked).await.0.unwrap();
    let second = ask(&recorder, &asked).await.0.unwrap();
    assert_eq!(first.text, second.text, "temperature 0");
    let replay = Replay::read(&file).unwrap();
    assert_eq!(ask(&replay, &asked).await.0.unwrap(), first);
}

#[tokio::test]
async fn a_reply_is_cancelled_midway_and_the_server_is_free_again() {
    let Some((model, _turn)) = model() else { return };
    let long = request("Write a long story about a river, in at least a thousand words.").max_tokens(2000);
    let mut waits = Vec::new();
    // A server that went on writing would keep the next reply waiting for a hundred times as long as its first twenty pieces took.
    // Something else may do so too, in some rounds.
    for _ in 0..5 {
        let cancel = Cancel::new();
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
async fn a_conversation_that_is_too_long_is_said_to_be() {
    let Some((model, _turn)) = model() else { return };
    let error = ask(&*model, &request(&"one two three four ".repeat(10_000))).await.0.unwrap_err();
    assert!(matches!(error, Error::ContextTooLong { .. }), "{error:?}");
}

#[tokio::test]
async fn time_that_is_up_is_up() {
    let Some((model, _turn)) = model() else { return };
    let error = ask(&*model, &request("Write a long story.").timeout(Duration::from_millis(1))).await.0.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
}
