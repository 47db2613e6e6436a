use querymend_model::ScriptedModel;
use serde_json::json;
use std::sync::Arc;

use super::house::{body, house, open, problem};
use crate::timing;

#[tokio::test]
async fn question_may_refer_to_the_previous_one() {
    let house = house(&["SELECT count(*) FROM products", "SELECT count(*) FROM orders"]).await;
    let session = body(house.post("/v1/sessions", json!({})).await, 201).await;
    let id = session["session_id"].as_str().unwrap();
    assert_eq!(session["database"], "shop");
    let ask = |question: &'static str| house.post("/v1/ask", json!({"question": question, "session_id": id}));
    body(ask("How many products are there?").await, 200).await;
    let second = body(ask("And how many orders?").await, 200).await;
    assert_eq!(second["metadata"]["turns"], 2);
    let told = body(house.get(&format!("/v1/sessions/{id}")).await, 200).await;
    assert_eq!((&told["asked"], told["turns"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(body(house.get("/v1/sessions").await, 200).await.as_array().unwrap().len(), 1);
    let elsewhere = json!({"question": "x", "session_id": id, "database": "crm"});
    assert_eq!(problem(house.post("/v1/ask", elsewhere).await).await.1, "bad_request");
    assert_eq!(
        house.client.delete(house.url(&format!("/v1/sessions/{id}"))).send().await.unwrap().status().as_u16(),
        204
    );
    assert_eq!(problem(house.get(&format!("/v1/sessions/{id}")).await).await.1, "not_found");
}

#[tokio::test]
async fn bounds_the_number_of_sessions() {
    let mut config = timing::config();
    config.server.limits.sessions = 10;
    config.server.limits.requests_per_minute = 0;
    let house = open(Arc::new(ScriptedModel::new(["SELECT 1"])), config).await;
    let first = body(house.post("/v1/sessions", json!({})).await, 201).await;
    for _ in 0..200 {
        body(house.post("/v1/sessions", json!({})).await, 201).await;
    }
    assert_eq!(body(house.get("/v1/sessions").await, 200).await.as_array().unwrap().len(), 10);
    let id = first["session_id"].as_str().unwrap();
    let oldest = house.get(&format!("/v1/sessions/{id}")).await.status().as_u16();
    let newest = body(house.post("/v1/sessions", json!({})).await, 201).await;
    let id = newest["session_id"].as_str().unwrap();
    assert_eq!(house.get(&format!("/v1/sessions/{id}")).await.status().as_u16(), 200);
    // All of them were begun within a second or two, so that the oldest may or may not be among those that are kept.
    assert!([200, 404].contains(&oldest));
}

#[tokio::test]
async fn concurrent_questions_in_a_session_keep_all_turns() {
    let house = house(&["SELECT count(*) FROM products"]).await;
    let session = body(house.post("/v1/sessions", json!({})).await, 201).await;
    let id = session["session_id"].as_str().unwrap();
    let ask = || house.post("/v1/ask", json!({"question": "How many products are there?", "session_id": id}));
    let answers = futures_util::future::join_all((0..8).map(|_| ask())).await;
    let statuses: Vec<u16> = answers.iter().map(|response| response.status().as_u16()).collect();
    let answered = statuses.iter().filter(|status| **status == 200).count();
    assert!(answered >= 1 && statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
    let told = body(house.get(&format!("/v1/sessions/{id}")).await, 200).await;
    assert_eq!(told["asked"], answered, "{statuses:?}");
}

/// A failed query as `/v1/correct` takes it.
fn failed(session: &str, query: &str, error: &str, retry_count: u32) -> serde_json::Value {
    json!({"original_query": query, "error_message": error, "retry_count": retry_count, "session_id": session})
}

#[tokio::test]
async fn same_error_twice_in_a_session_is_given_up() {
    let house = house(&[]).await;
    let (query, error) = ("SELECT id FROM products", "no such column: id");
    let correct = |session: &'static str, query: &'static str, error: &'static str, retries| {
        let asked = failed(session, query, error, retries);
        let sent = house.post("/v1/correct", asked);
        async move { body(sent.await, 200).await }
    };
    let first = correct("s1", query, error, 0).await;
    assert_eq!((&first["success"], &first["corrected_sql"]), (&json!(true), &json!("SELECT product_id FROM products")));
    for (session, query, error, retries, aborts) in [
        // Another session, another error and another query are other failures.
        ("s2", query, error, 0, false),
        ("s1", "SELECT id FROM customers", error, 0, false),
        ("s3", query, error, 0, false),
        // The same query again, and the correction that was handed out.
        ("s2", query, error, 0, true),
        ("s3", "SELECT product_id FROM products", error, 0, true),
        // A further try says so itself.
        ("s1", "SELECT name, id FROM customers", error, 1, true),
    ] {
        let told = correct(session, query, error, retries).await;
        let gave_up = told["correction_applied"].as_str().unwrap().contains("the same error occurred twice");
        assert_eq!((gave_up, &told["success"]), (aborts, &json!(!aborts)), "{session} {query}: {told}");
    }
}

#[tokio::test]
async fn session_errors_are_listed_and_cleared() {
    let house = house(&["SELECT flurb FROM products", "SELECT blorp FROM products"]).await;
    let errors = |id: &str| house.url(&format!("/v1/sessions/{id}/errors"));
    let list = |id: &str| {
        let sent = house.client.get(errors(id)).send();
        async move { body(sent.await.unwrap(), 200).await }
    };
    assert_eq!(list("s1").await, json!([]));
    body(house.post("/v1/correct", failed("s1", "SELECT id FROM products", "no such column: id", 0)).await, 200).await;
    let told = list("s1").await;
    let record = &told[0];
    assert_eq!((&record["message"], &record["attempts"]), (&json!("no such column: id"), &json!(1)));
    assert_eq!(record["analysis"]["error_type"], "column_not_found");
    assert_eq!(record["correction"]["corrected"], "SELECT product_id FROM products");
    assert_eq!(house.client.delete(errors("s1")).send().await.unwrap().status().as_u16(), 204);
    assert_eq!(list("s1").await, json!([]));

    // Questions of a conversation leave their errors as well.
    let session = body(house.post("/v1/sessions", json!({})).await, 201).await;
    let id = session["session_id"].as_str().unwrap();
    house.post("/v1/ask", json!({"question": "Which products are there?", "session_id": id})).await;
    assert_eq!(list(id).await[0]["code"], "unknown-column");
    assert_eq!(problem(house.get("/v1/sessions/%01/errors").await).await.1, "bad_request");
}

#[tokio::test]
async fn correction_asks_the_model_where_rules_give_up() {
    let reply = json!({"corrected_sql": "SELECT name FROM products", "correction_applied": "flurb is no column"});
    let house = house(&[&reply.to_string()]).await;
    let asked = json!({"original_query": "SELECT flurb FROM products"});
    let told = body(house.post("/v1/correct", asked).await, 200).await;
    assert_eq!((&told["success"], &told["corrected_sql"]), (&json!(true), &json!("SELECT name FROM products")));
    assert_eq!(told["correction_applied"], "rewritten by the model: flurb is no column");
    assert_eq!(told["confidence"], "low");
    // `/v1/fix` never asks one.
    let told = body(house.post("/v1/fix", json!({"sql": "SELECT flurb FROM products"})).await, 200).await;
    assert_eq!(told["success"], false);
}
