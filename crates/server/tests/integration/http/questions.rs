use std::path::Path;

use serde_json::json;

use super::house::{body, house};

const BROKEN: &str = "SELECT id, price FROM products WHERE category = 'Electronics'";

#[tokio::test]
async fn answers_a_question_with_its_corrections() {
    let house = house(&[BROKEN]).await;
    let answer = body(house.post("/v1/ask", json!({"question": "Which electronics are there?"})).await, 200).await;
    assert_eq!(answer["status"], "answered");
    assert_eq!(answer["sql"], "SELECT product_id, price FROM products WHERE category = 'Electronics'");
    assert_eq!(answer["rows"]["rows"].as_array().unwrap().len(), 8);
    let correction = &answer["corrections"][0];
    assert_eq!((&correction["successful"], &correction["strategy"]), (&json!(true), &json!("unknown-column")));
    for field in ["turns", "llm_calls", "tool_executions", "correction_attempts", "total_duration_ms", "reviews"] {
        assert!(answer["metadata"][field].is_number(), "{field}");
    }
    let guardrails = answer["metadata"]["guardrails_checked"].as_array().unwrap();
    assert!(guardrails.contains(&json!("safety")) && guardrails.contains(&json!("names")), "{guardrails:?}");
    assert_eq!(answer["text"], "8 rows with product id and price.");
    // Every query that ran stands in the log before the answer is given.
    let lines = house.audited();
    assert_eq!(lines.last().unwrap()["action"], "ask");
    assert_eq!(lines.last().unwrap()["rows"], 8);
    assert!(lines.iter().any(|line| line["action"] == "query" && line["outcome"] == "ran"));
    // And the run can be looked at again.
    let id = answer["trace_id"].as_str().unwrap();
    let events = body(house.get(&format!("/v1/traces/{id}")).await, 200).await;
    assert_eq!(events.as_array().unwrap().last().unwrap()["event"], "finished");
    body(house.get(&format!("/v1/traces/{}", &id[..8])).await, 404).await;
}

#[tokio::test]
async fn streams_every_stage_as_it_happens() {
    let house = house(&[BROKEN]).await;
    let request = house.client.post(house.url("/v1/ask")).header("accept", "text/event-stream");
    let response = request.json(&json!({"question": "Which electronics are there?"})).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let events: Vec<(String, serde_json::Value)> = text
        .split("\n\n")
        .filter_map(|event| {
            let name = event.lines().find_map(|line| line.strip_prefix("event: "))?;
            let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
            Some((name.to_owned(), serde_json::from_str(data).unwrap()))
        })
        .collect();
    let stages: Vec<&str> =
        events.iter().filter(|(name, _)| name == "stage").map(|(_, data)| data["stage"].as_str().unwrap()).collect();
    let expected =
        ["schema_discovery", "generation", "guardrail_check", "self_correction", "tool_execution", "completed"];
    let mut left = stages.iter();
    assert!(expected.iter().all(|stage| left.any(|seen| seen == stage)), "{stages:?}");
    assert_eq!(events.first().unwrap().0, "started");
    let (last, answer) = events.last().unwrap();
    assert_eq!((last.as_str(), &answer["answer"]["status"]), ("finished", &json!("answered")));
    // Each event is called by the word that stands in it.
    assert!(events.iter().all(|(name, data)| data["event"] == name.as_str()), "{events:?}");
}

#[tokio::test]
async fn corrects_a_query_by_contract() {
    let house = house(&[]).await;
    let asked = json!({
        "original_query": "SELECT id FROM products", "error_message": "no such column: id", "retry_count": 0,
        "session_id": "s1", "user_id": "u1",
    });
    let mended = body(house.post("/v1/correct", asked.clone()).await, 200).await;
    assert_eq!(
        (&mended["success"], &mended["corrected_sql"]),
        (&json!(true), &json!("SELECT product_id FROM products"))
    );
    assert_eq!(
        (&mended["session_id"], &mended["user_id"], &mended["confidence"]),
        (&json!("s1"), &json!("u1"), &json!("medium"))
    );
    assert!(!mended["correction_applied"].as_str().unwrap().is_empty() && mended["trace_id"].is_string());
    let mut spent = asked.clone();
    spent["retry_count"] = json!(3);
    let told = body(house.post("/v1/correct", spent).await, 200).await;
    assert_eq!((&told["success"], &told["corrected_sql"]), (&json!(false), &json!("")));
    assert!(told["correction_applied"].as_str().unwrap().contains("no such column: id"));
    // With tables of its own the database is not asked.
    let own = json!({"original_query": "SELECT nme FROM people", "schema_context": {"tables": [
        {"name": "people", "columns": [{"name": "name", "type": "TEXT"}]}]}});
    let mended = body(house.post("/v1/correct", own).await, 200).await;
    assert_eq!(mended["corrected_sql"], "SELECT name FROM people");
    let ddl = json!({"original_query": "SELECT nme FROM people", "schema_context": "CREATE TABLE people (name TEXT)"});
    assert_eq!(body(house.post("/v1/correct", ddl).await, 200).await["corrected_sql"], "SELECT name FROM people");
    let written = json!({"original_query": "DELETE FROM products"});
    assert_eq!(body(house.post("/v1/correct", written).await, 200).await["status"], "refused");
}

#[tokio::test]
async fn checks_fixes_runs_and_explains_queries() {
    let house = house(&[]).await;
    let checked = body(house.post("/v1/check", json!({"sql": "SELECT id\nFROM products"})).await, 200).await;
    let finding = &checked["findings"][0];
    assert_eq!(
        (&checked["clean"], &finding["code"], &finding["line"], &finding["column"]),
        (&json!(false), &json!("unknown-column"), &json!(1), &json!(8))
    );
    let mended = body(house.post("/v1/fix", json!({"sql": "SELECT id FROM products"})).await, 200).await;
    assert_eq!(mended["corrected_sql"], "SELECT product_id FROM products");
    let ran = body(house.post("/v1/run", json!({"sql": "SELECT count(*) AS n FROM products"})).await, 200).await;
    assert_eq!(ran["rows"]["columns"], json!(["n"]));
    let none = json!({"sql": "SELECT * FROM products WHERE category = 'Elektronics'"});
    let why = body(house.post("/v1/explain-empty", none).await, 200).await;
    assert_eq!(why["conditions"], json!(["category = 'Elektronics'"]));
    assert!(why["absent"][0]["near"].as_array().unwrap().contains(&json!("Electronics")), "{why}");
    let values = body(house.get("/v1/values?q=electronics").await, 200).await;
    assert_eq!((&values[0]["value"], &values[0]["same"]), (&json!("Electronics"), &json!(true)));
    let tables = body(house.get("/v1/schema").await, 200).await;
    assert!(tables["tables"].as_array().unwrap().iter().any(|table| table["name"] == "products"));
    assert_eq!(body(house.get("/v1/databases").await, 200).await, json!([{"name": "shop", "dialect": "sqlite"}]));
}

#[tokio::test]
async fn returns_rows_in_pages_and_as_csv() {
    let house = house(&[]).await;
    let query = json!({"sql": "SELECT product_id FROM products ORDER BY product_id"});
    let whole = body(house.post("/v1/run", query.clone()).await, 200).await;
    let whole = whole["rows"]["rows"].as_array().unwrap().clone();
    let first = body(house.post("/v1/run?page_size=3", query.clone()).await, 200).await;
    let mut rows = first["rows"]["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 3);
    let mut cursor = first["cursor"].as_str().map(str::to_owned);
    while let Some(at) = cursor {
        let page = body(house.get(&format!("/v1/results/{at}?page_size=4")).await, 200).await;
        rows.extend(page["rows"]["rows"].as_array().unwrap().iter().cloned());
        cursor = page["cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(rows, whole);
    let request = house.client.post(house.url("/v1/run?page_size=2")).header("accept", "text/csv").json(&query);
    let response = request.send().await.unwrap();
    assert!(response.headers().contains_key("x-cursor") && response.headers()["x-truncated"] == "false");
    assert_eq!(response.text().await.unwrap().lines().count(), 3);
}

#[tokio::test]
async fn openapi_names_every_existing_route() {
    let house = house(&[]).await;
    let told = body(house.get("/openapi.json").await, 200).await;
    let text = told.to_string();
    for part in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(told["components"]["schemas"][name].is_object(), "{name} is not described");
    }
    for route in querymend_server::http::ROUTES {
        let method = route.method.as_str().to_lowercase();
        let described = &told["paths"][route.path][method.as_str()];
        assert!(described["summary"].is_string(), "{method} {}", route.path);
        let path = route.path.replace("{id}", "x").replace("{cursor}", "x");
        let request = house.client.request(route.method.clone(), house.url(&path));
        let response = request.header("content-type", "application/json").body("{}").send().await.unwrap();
        assert_ne!(response.status().as_u16(), 405, "{method} {path}");
        let text = response.text().await.unwrap();
        assert!(!text.contains("nothing at this path"), "{method} {path}");
    }
}

#[test]
fn documentation_names_every_route() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/server.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once("\n## HTTP\n").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    // `/v1/traces` is not named by `/v1/traces/{id}`.
    let longer = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || "/-_{".contains(c));
    for route in querymend_server::http::ROUTES {
        let named = section.match_indices(route.path).any(|(at, path)| !longer(&section[at + path.len()..]));
        assert!(named, "docs/guide/server.md does not name {} {}", route.method, route.path);
    }
}

#[tokio::test]
async fn idempotency_key_prevents_a_second_run() {
    let house = house(&["SELECT count(*) FROM products", "SELECT count(*) FROM orders"]).await;
    let key = format!("k-{}", house.address);
    let ask = || async {
        let request = house.client.post(house.url("/v1/ask")).header("idempotency-key", &key);
        body(request.json(&json!({"question": "How many products are there?"})).send().await.unwrap(), 200).await
    };
    let (first, second) = (ask().await, ask().await);
    assert_eq!(first, second);
    assert_eq!(house.audited().iter().filter(|line| line["action"] == "ask").count(), 1);
}

#[tokio::test]
async fn asks_back_on_ambiguity_and_continues_with_the_choice() {
    let house = house(&["SELECT name FROM customers, products"; 3]).await;
    let question = "List all the names";
    let asked = json!({"question": question, "clarify": "ask"});
    let answer = body(house.post("/v1/ask", asked.clone()).await, 200).await;
    assert_eq!((&answer["status"], &answer["stop"]), (&json!("ask_user"), &json!("ambiguous")));
    let clarification = &answer["clarification"];
    assert_eq!(clarification["question"], "Which name: customers.name or products.name?");
    let options = clarification["options"].as_array().unwrap();
    assert_eq!(options.len(), 2);
    for option in options {
        assert_eq!(option["preview"]["rows"].as_array().unwrap().len(), 3, "{option}");
        assert!(option["label"].is_string() && option["why"].is_string());
    }
    // The answer goes back with the same question.
    let choice = json!({"question": question, "choice": options[1]["sql"]});
    let chosen = body(house.post("/v1/ask", choice).await, 200).await;
    assert_eq!((&chosen["status"], &chosen["sql"]), (&json!("answered"), &options[1]["sql"]));
    assert_eq!(chosen["metadata"]["llm_calls"], 0);
    // The same as events.
    let request = house.client.post(house.url("/v1/ask")).header("accept", "text/event-stream");
    let text = request.json(&asked).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("human_in_the_loop") && text.contains("Which name: customers.name or products.name?"));
    // Unless somebody wants to be asked, the most likely reading is taken.
    let answer = body(house.post("/v1/ask", json!({"question": question})).await, 200).await;
    let reasons = answer["reasons"].to_string();
    assert!(reasons.contains("assumed customers.name; it could also be products.name"), "{reasons}");
    body(house.post("/v1/ask", json!({"question": question, "clarify": "perhaps"})).await, 400).await;
}
