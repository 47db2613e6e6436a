use std::io::Write;
use std::sync::{Arc, Mutex};

use querymend::config::RoleSection;
use querymend_server::auth::user::{Authenticator, Credentials};
use querymend_server::observe::logging::{LogObserver, json_logs};
use querymend_server::{BoxFuture, User};
use serde_json::{Value, json};
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;

use super::house::{FINE, Parrot, Plan, house};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Takes everyone for Ann.
struct Ann;

impl Authenticator for Ann {
    fn authenticate<'a>(&'a self, _: &'a Credentials<'a>) -> BoxFuture<'a, User> {
        Box::pin(
            async move { Ok(User { id: Some("ann".into()), role_name: None, role: Arc::new(RoleSection::default()) }) },
        )
    }

    fn requires_credentials(&self) -> bool {
        true
    }
}

/// On one thread, so that all of the server writes to this log.
#[tokio::test]
async fn every_log_line_has_its_request_id() {
    let lines = Lines::default();
    let writer = lines.clone();
    let ours = Targets::new().with_target("querymend", LevelFilter::INFO);
    let log = tracing_subscriber::registry().with(json_logs(move || writer.clone())).with(ours);
    // With one log alone, tracing believes that a place which a test on another thread, without a log, reaches first is wanted by
    // nobody. With two it asks each of them.
    let _other = tracing::Dispatch::new(NoSubscriber::default());
    let _log = tracing::subscriber::set_default(log);
    let plan = Plan { gate: Arc::new(Ann), ..Plan::new(Parrot(FINE)) };
    let house = house(plan, |service| service.with_observer(Arc::new(LogObserver))).await;
    let mut trace_ids = Vec::new();
    for id in ["first-1", "second-2"] {
        let request = house.client.post(format!("{}/v1/ask", house.address)).header("x-request-id", id);
        let response = request.json(&json!({"question": "Which electronics are there?"})).send().await.unwrap();
        assert_eq!(response.headers()["x-request-id"], id);
        let answer: Value = response.json().await.unwrap();
        trace_ids.push(answer["trace_id"].as_str().unwrap().to_owned());
    }
    // What cannot stand in a log is not taken.
    let request = house.client.get(format!("{}/v1/databases", house.address)).header("x-request-id", "a b\"c");
    let given = request.send().await.unwrap().headers()["x-request-id"].to_str().unwrap().to_owned();
    assert_eq!(given.len(), 36);

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (id, trace_id) in ["first-1", "second-2"].iter().zip(&trace_ids) {
        let own: Vec<&Value> = all.iter().filter(|line| line["span"]["request_id"] == *id).collect();
        let messages: Vec<&str> = own.iter().filter_map(|line| line["message"].as_str()).collect();
        assert_eq!(messages, ["question accepted", "ran", "done", "request"], "{text}");
        for line in &own {
            assert_eq!(line["span"]["user"], "ann", "{line}");
            assert_eq!(line["span"]["trace_id"], *trace_id, "{line}");
            assert_eq!((&line["span"]["route"], &line["level"]), (&json!("/v1/ask"), &json!("INFO")), "{line}");
        }
        assert_eq!(own[3]["status"], 200);
    }
    assert!(all.iter().all(|line| line["span"]["request_id"].is_string()), "{text}");
}
