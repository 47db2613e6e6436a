//! Clients that hang up, dawdle or do not read; a server that is told to stop or to change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use querymend_model::{BoxFuture, CancelSignal, Completion, CompletionRequest, Model, ScriptedModel};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::house::{body, house, open, problem, setup};
use crate::timing::{self, expire, most_admitted, until, within};

/// Time that a client has to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// A model that waits until it is told to go on, or is cancelled.
pub struct Slow {
    go: Notify,
    asked: Notify,
    cancelled: AtomicUsize,
}

impl Slow {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { go: Notify::new(), asked: Notify::new(), cancelled: AtomicUsize::new(0) })
    }
}

impl Model for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            self.asked.notify_one();
            loop {
                tokio::select! {
                    () = self.go.notified() => break,
                    () = tokio::time::sleep(Duration::from_millis(10)) => {
                        if cancel.is_cancelled() {
                            self.cancelled.fetch_add(1, Ordering::SeqCst);
                            return Err(querymend_model::Error::Cancelled);
                        }
                    }
                }
            }
            ScriptedModel::new(["SELECT count(*) FROM products"]).complete(request, watch, cancel).await
        })
    }
}

#[tokio::test]
async fn disconnect_cancels_a_question_and_audits_it() {
    let slow = Slow::new();
    let house = open(slow.clone(), timing::config()).await;
    for accept in ["application/json", "text/event-stream"] {
        let request = house.client.post(house.url("/v1/ask")).header("accept", accept);
        let asking = tokio::spawn(async move {
            let mut response = request.json(&json!({"question": "How many products?"})).send().await.unwrap();
            while response.chunk().await.unwrap().is_some() {}
        });
        within("the model", slow.asked.notified()).await;
        let before = slow.cancelled.load(Ordering::SeqCst);
        asking.abort();
        until("it is cancelled", || {
            slow.cancelled.load(Ordering::SeqCst) > before && house.service.running_requests() == 0
        })
        .await;
    }
    let failed: Vec<_> = house.audited().into_iter().filter(|line| line["action"] == "ask").collect();
    assert_eq!(failed.len(), 2);
}

#[tokio::test]
async fn shutdown_lets_running_questions_finish() {
    let slow = Slow::new();
    let house = open(slow.clone(), timing::config()).await;
    let request = house.client.post(house.url("/v1/ask")).json(&json!({"question": "How many products?"}));
    let asking = tokio::spawn(async move { request.send().await.unwrap() });
    within("the model", slow.asked.notified()).await;
    house.stopping.stop();
    within("closing", async {
        while TcpStream::connect(house.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    slow.go.notify_one();
    let answer = body(within("the answer", asking).await.unwrap(), 200).await;
    assert_eq!(answer["status"], "answered");
    assert!(within("the end", house.task).await.unwrap().unwrap(), "all requests ended by themselves");
}

#[tokio::test]
async fn closes_connections_with_unfinished_headers() {
    let house = house(&[]).await;
    let mut dawdler = TcpStream::connect(house.address).await.unwrap();
    dawdler.write_all(b"POST /v1/ask HTTP/1.1\r\nhost: x\r\nx-slow: ").await.unwrap();
    expire(HEAD).await;
    let mut rest = Vec::new();
    within("letting go", dawdler.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(house.get("/healthz").await.status().as_u16(), 200);
}

#[tokio::test]
async fn unread_events_do_not_accumulate() {
    // Long drafts, and an answer of several megabytes, that the client asks for and does not read.
    let house = house(&["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) SELECT i, printf('%.500c', 'x') FROM n"]).await;
    let mut deaf = TcpStream::connect(house.address).await.unwrap();
    let body_text = json!({"question": "Numbers?"}).to_string();
    let head = format!(
        "POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body_text}",
        body_text.len()
    );
    deaf.write_all(head.as_bytes()).await.unwrap();
    // The question itself ends, whether anybody reads or not.
    until("the question has ended", || {
        house.audited().iter().any(|line| line["action"] == "ask") && house.service.running_requests() == 0
    })
    .await;
    assert_eq!(house.get("/healthz").await.status().as_u16(), 200);
}

#[tokio::test]
async fn reloaded_configuration_applies_to_the_next_request() {
    let house = house(&["SELECT count(*) FROM products"]).await;
    let query = json!({"sql": "SELECT count(*) FROM orders"});
    body(house.post("/v1/run", query.clone()).await, 200).await;
    let mut config = timing::config();
    config.policy.deny_tables = vec!["orders".into()];
    house.service.reload(setup(house.folder.path(), Arc::new(ScriptedModel::new(["SELECT 1"])), config));
    let (status, code, _) = problem(house.post("/v1/run", query).await).await;
    assert_eq!((status, code.as_str()), (400, "preflight_validation_failed"));
    let tables = body(house.get("/v1/schema").await, 200).await;
    assert!(!tables.to_string().contains("\"orders\""));
}

#[tokio::test]
async fn rate_limit_rejects_with_retry_after() {
    let mut config = timing::config();
    config.server.limits.requests_per_minute = 5;
    let house = open(Arc::new(ScriptedModel::new(["SELECT 1"])), config).await;
    let begun = Instant::now();
    let (mut admitted, mut refused) = (0, 0);
    let asking = async {
        while refused < 2 {
            let response = house.post("/v1/check", json!({"sql": "SELECT 1"})).await;
            match response.status().as_u16() {
                200 => admitted += 1,
                429 if response.headers().contains_key("retry-after") => refused += 1,
                status => panic!("{status} after {admitted}"),
            }
        }
    };
    within("too many", asking).await;
    assert!((5..=most_admitted(5, begun)).contains(&admitted), "{admitted}");
    assert_eq!(house.get("/healthz").await.status().as_u16(), 200);
}

#[tokio::test]
async fn rejects_deeply_nested_schemas() {
    let house = house(&[]).await;
    let chain = "1+".repeat(50_000);
    let tables = format!("CREATE TABLE t (a int CHECK ({chain}1))");
    let asked = json!({"original_query": "SELECT a FROM t", "schema_context": tables});
    let (status, code, _) = problem(house.post("/v1/correct", asked).await).await;
    assert_eq!((status, code.as_str()), (400, "bad_request"));
    assert_eq!(house.get("/healthz").await.status().as_u16(), 200);
}

#[tokio::test]
async fn closes_silent_connections() {
    let house = house(&[]).await;
    let mut connections = Vec::new();
    for begin in [&b""[..], b"PRI * HT"] {
        let mut silent = TcpStream::connect(house.address).await.unwrap();
        silent.write_all(begin).await.unwrap();
        connections.push(silent);
    }
    expire(HEAD).await;
    for mut silent in connections {
        let mut rest = Vec::new();
        // What came and was not read makes the end an abrupt one.
        within("letting go", silent.read_to_end(&mut rest)).await.ok();
        assert_eq!(rest, b"");
    }
}

#[tokio::test]
async fn disconnected_query_is_audited() {
    let house = house(&[]).await;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let is_cancelled = |line: &serde_json::Value| line["action"] == "run" && line["outcome"] == "cancelled";
    // One whose client hangs up before it was read is no query yet, and leaves no line.
    for wait in [100, 1_000, 10_000].map(Duration::from_millis) {
        let running = tokio::spawn(house.client.post(house.url("/v1/run")).json(&json!({"sql": endless})).send());
        until("it runs", || house.service.running_requests() == 1).await;
        // Most likely the database has it by now.
        tokio::time::sleep(wait).await;
        running.abort();
        until("it is stopped", || house.service.running_requests() == 0).await;
        if house.audited().iter().any(is_cancelled) {
            return;
        }
    }
    panic!("no cancelled query in the audit log: {:?}", house.audited());
}

#[tokio::test]
async fn reload_invalidates_cached_pages() {
    let house = house(&[]).await;
    let ran = body(house.post("/v1/run?page_size=1", json!({"sql": "SELECT name FROM customers"})).await, 200).await;
    let cursor = ran["cursor"].as_str().unwrap().to_owned();
    let mut config = timing::config();
    config.policy.deny_tables = vec!["customers".into()];
    house.service.reload(setup(house.folder.path(), Arc::new(ScriptedModel::new(["SELECT 1"])), config));
    assert_eq!(problem(house.get(&format!("/v1/results/{cursor}")).await).await.0, 404);
}

#[tokio::test]
async fn reload_invalidates_idempotent_answers_in_flight() {
    let slow = Slow::new();
    let house = open(slow.clone(), timing::config()).await;
    let ask = || {
        let request = house.client.post(house.url("/v1/ask")).header("idempotency-key", "k");
        request.json(&json!({"question": "How many products are there?"})).send()
    };
    let change_meanwhile = async {
        slow.asked.notified().await;
        assert_eq!(problem(ask().await.unwrap()).await.1, "conflict");
        let mut config = timing::config();
        config.policy.deny_tables = vec!["products".into()];
        let model = Arc::new(ScriptedModel::new(vec!["SELECT count(*) FROM orders"; 9]));
        house.service.reload(setup(house.folder.path(), model, config));
        slow.go.notify_one();
    };
    let (before, ()) = within("both", async { tokio::join!(ask(), change_meanwhile) }).await;
    // It goes on under the rules that it began with, and whoever asks again is answered under those of now.
    assert!(body(before.unwrap(), 200).await["sql"].as_str().unwrap().contains("products"));
    let after = body(ask().await.unwrap(), 200).await;
    assert!(after["sql"].as_str().unwrap().contains("orders"), "{after}");
}

#[tokio::test]
async fn changed_role_applies_to_the_next_request() {
    let house = house(&[]).await;
    let role = |denied: &[&str]| {
        let mut role = querymend::config::RoleSection::default();
        role.policy.deny_tables = denied.iter().map(ToString::to_string).collect();
        let role = Arc::new(role);
        querymend_server::User { id: Some("bob".into()), role_name: Some("analyst".into()), role }
    };
    let query = querymend_server::service::SqlRequest {
        sql: "SELECT name FROM customers".into(),
        ..querymend_server::service::SqlRequest::default()
    };
    for (denied, fine) in [(&[][..], true), (&["customers"][..], false), (&[], true), (&["customers"], false)] {
        let user = role(denied);
        let asking = querymend_server::RequestContext { user: &user, request_id: "r", traceparent: None };
        assert_eq!(
            house.service.run(&asking, &query, &querymend::CancellationToken::new()).await.is_ok(),
            fine,
            "{denied:?}"
        );
    }
}

#[tokio::test]
async fn rejects_oversized_examples() {
    let house = house(&[]).await;
    let long = json!({"question": "x".repeat(20_000), "sql": "SELECT 1"});
    assert_eq!(problem(house.post("/v1/examples", long).await).await.1, "bad_request");
    let long = json!({"question": "x", "evidence": "x".repeat(20_000)});
    assert_eq!(problem(house.post("/v1/ask", long).await).await.1, "bad_request");
}
