use std::time::Instant;

use serde_json::json;

use super::house::{body, house, problem};
use crate::timing::NEVER;

#[tokio::test]
async fn invalid_requests_have_an_error_code() {
    let house = house(&["DELETE FROM products"]).await;
    let post = |path: &'static str, body: serde_json::Value| house.post(path, body);
    let cases = [
        (post("/v1/run", json!({"sql": "DELETE FROM products"})).await, 400, "preflight_validation_failed"),
        (post("/v1/run", json!({"sql": "SELECT nothing FROM nowhere"})).await, 400, "preflight_validation_failed"),
        (post("/v1/run", json!({"sql": "SELECT 1", "database": "other"})).await, 404, "not_found"),
        (post("/v1/run", json!({"sql": "SELECT 1", "databse": "shop"})).await, 400, "bad_request"),
        (post("/v1/run", json!({"sql": 1})).await, 400, "bad_request"),
        (post("/v1/run", json!([])).await, 400, "bad_request"),
        (post("/v1/run?page_size=x", json!({"sql": "SELECT 1"})).await, 400, "bad_request"),
        (post("/v1/ask", json!({"question": "Remove all products"})).await, 403, "write_refused"),
        (post("/v1/ask", json!({"question": "x".repeat(20_000)})).await, 400, "bad_request"),
        (post("/v1/ask", json!({"question": "x", "session_id": "nobody's"})).await, 404, "not_found"),
        (
            post("/v1/correct", json!({"original_query": "SELECT 1", "schema_context": {"tables": 3}})).await,
            400,
            "bad_request",
        ),
        (post("/v1/run", json!({"sql": "x".repeat(2 << 20)})).await, 413, "too_large"),
        (house.get("/v1/nothing").await, 404, "not_found"),
        (house.get("/v1/traces/..%2f..%2fetc%2fpasswd").await, 404, "not_found"),
        (house.get("/v1/schema?database=../x").await, 404, "not_found"),
        (house.get("/v1/results/x.1").await, 404, "not_found"),
        (house.get("/v1/ask").await, 405, "bad_request"),
        (house.get("/v1/examples").await, 404, "not_found"),
        (post("/v1/breakers/reset", json!({"tool": "database:x"})).await, 404, "not_found"),
    ];
    for (response, status, code) in cases {
        let url = response.url().clone();
        let (got, told, detail) = problem(response).await;
        assert_eq!((got, told.as_str()), (status, code), "{url}: {detail}");
    }
    let (_, _, detail) = problem(post("/v1/ask", json!([])).await).await;
    assert_eq!(detail, "the body must be a JSON object, {…}");
    // Nothing was written, and nothing is broken.
    let left =
        body(house.post("/v1/run", json!({"sql": "SELECT count(*) > 0 AS there FROM products"})).await, 200).await;
    assert_eq!(left["rows"]["rows"], json!([[1]]));
}

#[tokio::test]
async fn rejects_bodies_that_are_not_json() {
    let house = house(&[]).await;
    let url = house.url("/v1/check");
    for (kind, text) in [
        ("application/json", "{"),
        ("application/json", ""),
        ("application/json", "[1]"),
        ("application/json", "{\"sql\": \"\u{0}\", \"sql\": \"x\"}"),
        ("text/plain", "{\"sql\": \"SELECT 1\"}"),
        ("application/x-www-form-urlencoded", "sql=SELECT"),
    ] {
        let response = house.client.post(&url).header("content-type", kind).body(text).send().await.unwrap();
        let (status, code, detail) = problem(response).await;
        assert_eq!((status, code.as_str()), (400, "bad_request"), "{kind} {text}: {detail}");
    }
    let deep = format!(
        "{{\"original_query\": \"SELECT 1\", \"schema_context\": {}{}}}",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let response =
        house.client.post(house.url("/v1/correct")).header("content-type", "application/json").body(deep).send();
    assert_eq!(problem(response.await.unwrap()).await.0, 400);
    let long = format!("Bearer {}", "x".repeat(100_000));
    let response = house.client.get(house.url("/v1/schema")).header("authorization", long).send().await;
    assert!(response.is_err() || response.is_ok_and(|response| response.status().as_u16() == 431));
    assert_eq!(house.get("/healthz").await.status().as_u16(), 200);
}

#[tokio::test]
async fn open_breaker_is_reported_with_retry_after() {
    let house = house(&[]).await;
    let breaker = house.service.breaker_registry().get_or_create("database:shop.db");
    let tools: Vec<String> = house.service.breaker_registry().stats().into_iter().map(|stats| stats.tool).collect();
    drop(breaker);
    body(house.post("/v1/run", json!({"sql": "SELECT 1"})).await, 200).await;
    let tool =
        house.service.breaker_registry().stats().into_iter().map(|s| s.tool).find(|t| !tools.contains(t)).unwrap();
    let begun = Instant::now();
    for _ in 0..5 {
        house.service.breaker_registry().get_or_create(&tool).admit().unwrap().failure();
    }
    let response = house.post("/v1/run", json!({"sql": "SELECT 1"})).await;
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    // All that is left of the breaker's timeout, give or take two seconds of rounding.
    let longest = NEVER.as_secs();
    assert!(wait <= longest && wait + begun.elapsed().as_secs() + 2 >= longest, "{wait}");
    let (status, code, _) = problem(response).await;
    assert_eq!((status, code.as_str()), (503, "circuit_breaker_open"));
    let told = body(house.get("/v1/breakers").await, 200).await;
    assert!(told.as_array().unwrap().iter().any(|one| one["state"] == "open"), "{told}");
    body(house.post("/v1/breakers/reset", json!({"tool": tool})).await, 204).await;
    body(house.post("/v1/run", json!({"sql": "SELECT 1"})).await, 200).await;
}
