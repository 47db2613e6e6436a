use querymend_model::Script;
use serde_json::json;
use std::sync::Arc;

use super::house::{body, house, open, problem};
use crate::timing;

#[tokio::test]
async fn q01_a_question_may_refer_to_the_one_before() {
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
async fn l04_sessions_that_are_left_behind_are_bounded() {
    let mut config = timing::config();
    config.server.limits.sessions = 10;
    config.server.limits.per_minute = 0;
    let house = open(Arc::new(Script::new(["SELECT 1"])), config).await;
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
async fn l12_two_questions_at_once_in_one_session_do_not_overwrite_each_other() {
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
