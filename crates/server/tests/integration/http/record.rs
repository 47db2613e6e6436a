//! The audit log has a line for everything that was sent to a database, however it ended.

use std::sync::Arc;
use std::time::Duration;

use querymend_model::ScriptedModel;
use serde_json::{Value, json};

use super::house::{body, house, open};
use crate::timing;

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

fn of<'l>(lines: &'l [Value], action: &str, outcome: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["action"] == action && line["outcome"] == outcome).collect()
}

#[tokio::test]
async fn timed_out_query_is_audited() {
    let mut config = timing::config();
    config.limits.time = Duration::from_millis(200);
    config.self_correction.fallback = false;
    let house =
        open(Arc::new(ScriptedModel::new([ENDLESS.to_owned(), ENDLESS.to_owned(), ENDLESS.to_owned()])), config).await;
    house.post("/v1/ask", json!({"question": "How many numbers are there?"})).await;
    let lines = house.audited();
    let late = of(&lines, "query", "timed out");
    assert!(!late.is_empty() && late.iter().all(|line| line["sql"] == ENDLESS), "{lines:?}");
    assert!(late[0]["trace_id"].is_string() && late[0].get("rows").is_none());
    assert_eq!(lines.last().unwrap()["action"], "ask");
    house.post("/v1/run", json!({"sql": ENDLESS})).await;
    assert_eq!(of(&house.audited(), "run", "budget_exceeded").len(), 1);
}

#[tokio::test]
async fn lookups_are_audited() {
    let house = house(&[]).await;
    let none = json!({"sql": "SELECT * FROM products WHERE category = 'Elektronics'"});
    body(house.post("/v1/explain-empty", none).await, 200).await;
    let lines = house.audited();
    // The query itself, without its condition, and whether the value is there.
    assert!(of(&lines, "query", "ran").len() >= 3, "{lines:?}");
    assert!(lines.iter().any(|line| line["action"] == "query" && line["rows"] == 0));
    assert_eq!(lines.last().unwrap()["action"], "explain");
    let found = body(house.get("/v1/values?q=electronics").await, 200).await;
    let lines = house.audited();
    let last = lines.last().unwrap();
    let told = (&last["action"], &last["question"], &last["rows"], &last["outcome"]);
    assert_eq!(told, (&json!("values"), &json!("electronics"), &json!(found.as_array().unwrap().len()), &json!("ran")));
    // All of them say who asked, and in which request.
    assert!(lines.iter().all(|line| line["request_id"].is_string() && line["user"].is_string()));
}
