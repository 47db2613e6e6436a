//! What tools answer, over a pipe.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_works_over_a_pipe() {
    let shop = open_shop([DEAR]);
    let client = over_pipe(&shop, Client::default()).await;
    let info = client.peer_info().unwrap();
    assert!(info.instructions.as_ref().unwrap().contains("fix_sql"));
    assert_eq!(info.server_info.as_ref().unwrap().name, "querymend");
    every_tool(&client).await;
}

/// The newest protocol has no sessions: every request stands for itself.
#[tokio::test(flavor = "multi_thread")]
async fn tools_are_few_small_and_read_only() {
    let shop = open_shop(SILENT);
    let client = over_pipe(&shop, Client::default()).await;
    let tools = client.list_tools(None).await.unwrap().tools;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let all = ["ask", "check_sql", "fix_sql", "run_sql", "schema", "find_values", "explain_empty"];
    assert_eq!(names, all);
    for tool in &tools {
        let hints = tool.annotations.as_ref().unwrap();
        let said = (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint);
        assert_eq!(said, (Some(true), Some(false), Some(false)), "{}", tool.name);
        assert_eq!(hints.idempotent_hint, Some(tool.name != "ask"));
        assert_eq!(tool.input_schema["type"], "object");
    }
    let list = serde_json::to_string(&tools).unwrap();
    let read: usize = tools
        .iter()
        .map(|tool| {
            let schema = serde_json::to_string(&tool.input_schema).unwrap();
            tool.name.len() + tool.description.as_ref().unwrap().len() + schema.len()
        })
        .sum();
    // Four bytes are about a token: 760 in all, of which a model reads 500.
    assert!(list.len() < 3_200 && read < 2_100, "{} {read}", list.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_writes_and_leaves_the_data_unchanged() {
    let shop = open_shop(["DELETE FROM products", "DROP TABLE products", "DELETE FROM orders", "DELETE FROM reviews"]);
    let client = over_pipe(&shop, Client::default()).await;
    let count = json!({ "sql": "SELECT count(*) FROM products" });
    let before = told(&client, "run_sql", count.clone()).await.0;
    for write in
        ["DELETE FROM products", "SELECT 1; DROP TABLE products", "UPDATE products SET price = 0", "ATTACH 'x' AS y"]
    {
        let (text, data) = refused(&client, "run_sql", json!({ "sql": write })).await;
        assert_eq!(data["code"], "preflight_validation_failed", "{text}");
        assert!(text.starts_with("preflight_validation_failed: ") && text.contains("hint: `fix_sql`"), "{text}");
        assert!(!data["findings"].as_array().unwrap().is_empty());
        refused(&client, "explain_empty", json!({ "sql": write })).await;
        let (text, data) = told(&client, "fix_sql", json!({ "sql": write })).await;
        assert_eq!((&data["success"], &data["corrected_sql"]), (&json!(false), &json!("")), "{text}");
        assert_eq!(told(&client, "check_sql", json!({ "sql": write })).await.1["verdict"], "refused");
    }
    let (text, data) = refused(&client, "ask", json!({ "question": "Delete all products" })).await;
    assert!(data["code"].is_string() && data["status"] == "refused", "{text}");
    assert_eq!(told(&client, "run_sql", count).await.0, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn truncates_long_answers_and_reports_it() {
    let shop = open_shop(SILENT);
    let client = over_pipe(&shop, Client::default()).await;
    let many =
        "SELECT r.comment, o.order_id, c.name FROM reviews r CROSS JOIN orders o CROSS JOIN customers c LIMIT 3000";
    let (text, data) = told(&client, "run_sql", json!({ "sql": many })).await;
    assert_eq!((&data["row_count"], &data["rows"]["truncated"]), (&json!(3000), &json!(true)));
    let shown = data["rows"]["rows"].as_array().unwrap().len();
    assert!(text.contains(&format!("truncated: {shown} of 3000 rows")), "{}", &text[text.len() - 200..]);
    assert!(shown > 50 && data.to_string().len() < mcp::MAX_TEXT_BYTES + 2_000);
    // What the limits of a query cut is told apart: nobody knows how much more there is.
    let most = json!({ "sql": many, "max_rows": 5 });
    let (text, data) = told(&client, "run_sql", most).await;
    assert_eq!((&data["row_count"], &data["row_count_is_minimum"]), (&json!(5), &json!(true)));
    assert!(text.contains("truncated: 5 of at least 5 rows"), "{text}");
}

/// The contract of a correction, word for word as the other faces have it.
#[tokio::test(flavor = "multi_thread")]
async fn corrects_in_one_call() {
    let shop = open_shop(SILENT);
    let client = over_pipe(&shop, Client::default()).await;
    let asked = json!({
        "original_query": "SELECT nme FROM people", "error_message": "no such column: nme",
        "schema_context": { "tables": [{ "name": "people", "columns": [
            { "name": "name", "type": "TEXT" }, { "name": "age", "type": "INTEGER" }] }] },
        "retry_count": 0, "user_id": "ann", "session_id": "s1",
    });
    let (text, data) = told(&client, "fix_sql", asked).await;
    assert_eq!((&data["corrected_sql"], &data["success"]), (&json!("SELECT name FROM people"), &json!(true)), "{text}");
    assert_eq!((&data["session_id"], &data["user_id"]), (&json!("s1"), &json!("ann")));
    assert!(data["correction_applied"].as_str().is_some_and(|why| !why.is_empty()));
    assert_eq!(data["trace_id"].as_str().map(str::len), Some(36));
    let often = json!({ "sql": BROKEN, "error_message": "no such column: id", "retry_count": 3 });
    let (text, data) = told(&client, "fix_sql", often).await;
    assert_eq!((&data["success"], text.contains("given up after 3 retries")), (&json!(false), true), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_invalid_calls_to_the_model() {
    let shop = shop(&["a", "b"], SILENT, Arc::new(NoAuth::default()), timing::config());
    let client = over_pipe(&shop, Client::default()).await;
    for (tool, arguments, code, says) in [
        ("run_sql", json!({}), "bad_request", "missing field `sql`"),
        ("run_sql", json!({ "sql": 7 }), "bad_request", "expected a string"),
        ("run_sql", json!({ "sql": "SELECT 1", "databse": "a" }), "bad_request", "unknown field `databse`"),
        ("run_sql", json!({ "sql": "SELECT 1" }), "bad_request", "set `database` to one of a, b"),
        ("run_sql", json!({ "sql": "SELECT 1", "database": "c" }), "not_found", "available databases: a, b"),
        ("check_sql", json!({ "sql": "x".repeat(20_000), "database": "a" }), "too_large", "16384"),
        (
            "schema",
            json!({ "database": "a", "tables": ["nothing"] }),
            "not_found",
            "available tables: customers, products",
        ),
        ("find_values", json!({ "word": "x", "column": "city", "database": "a" }), "bad_request", "table.column"),
        ("ask", json!({ "question": "q", "session_id": "other" }), "not_found", "\"new\""),
        ("ask", json!({ "question": "q".repeat(20_000), "database": "a" }), "bad_request", "16384"),
    ] {
        let (text, data) = refused(&client, tool, arguments).await;
        assert_eq!(data["code"], code, "{text}");
        assert!(text.contains(says), "{says}: {text}");
    }
    // Only what the protocol itself does not have is its own error.
    let unknown = client.call_tool(CallToolRequestParams::new("drop_table")).await;
    let Err(ServiceError::McpError(error)) = unknown else { panic!("{unknown:?}") };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(error.message.contains("explain_empty"));
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_tables_and_rules_as_resources() {
    let shop = open_shop(SILENT);
    let client = over_pipe(&shop, Client::default()).await;
    let listed = client.list_resources(None).await.unwrap().resources;
    let addresses: Vec<&str> = listed.iter().map(|resource| &*resource.uri).collect();
    assert_eq!(addresses, ["querymend://schema/shop", "querymend://rules"]);
    let templates = client.list_resource_templates(None).await.unwrap().resource_templates;
    let templates: Vec<&str> = templates.iter().map(|template| &*template.uri_template).collect();
    assert_eq!(templates, ["querymend://schema/{database}", "querymend://rules/{code}"]);
    assert!(text_at(&client, "querymend://schema/shop").await.unwrap().contains("CREATE TABLE order_items"));
    assert!(text_at(&client, "querymend://rules/unknown-column").await.unwrap().starts_with("# unknown-column\n"));
    assert!(text_at(&client, "querymend://rules").await.unwrap().contains("- `unknown-column`: "));
    for nowhere in
        ["querymend://schema/other", "querymend://rules/none", "file:///etc/passwd", "", "querymend://schema/"]
    {
        let Err(ServiceError::McpError(error)) = text_at(&client, nowhere).await else { panic!("{nowhere}") };
        assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND, "{nowhere}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_progress_stage_by_stage() {
    let shop = open_shop(["SELECT nonsense FROM nowhere", DEAR]);
    let hears = Client::default();
    let client = over_pipe(&shop, hears.clone()).await;
    told(&client, "ask", json!({ "question": "Which two products cost most?" })).await;
    // The client hands notifications on side by side: their numbers say in which order they were sent.
    let all = async {
        loop {
            let mut heard = hears.heard.lock().unwrap().clone();
            heard.sort_by(|one, other| one.0.total_cmp(&other.0));
            if heard.last().is_some_and(|(step, last)| last.starts_with("completed") && *step == heard.len() as f64) {
                return heard;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let heard = within("all of it is told", all).await;
    let messages: Vec<&str> = heard.iter().map(|(_, message)| message.as_str()).collect();
    for stage in ["schema discovery", "generation", "guardrail check", "generation (attempt 2)"] {
        assert!(messages.contains(&stage), "{messages:?}");
    }
    assert!(messages.iter().any(|message| message.starts_with("tool execution")), "{messages:?}");
    let steps: Vec<f64> = heard.iter().map(|(step, _)| *step).collect();
    assert!(steps.windows(2).all(|two| two[1] - two[0] == 1.0), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_stops_its_question() {
    for over_http in [false, true] {
        let mut shop = open_shop([ScriptedReply::Hang]);
        let (tell, mut hear) = mpsc::unbounded_channel();
        let hears = Client { tell: Some(tell), ..Client::default() };
        let (client, _server) = if over_http {
            let server = listening(&shop).await;
            (hears.serve(to(server.url(), None)).await.unwrap(), Some(server))
        } else {
            (over_pipe(&shop, hears).await, None)
        };
        let request =
            ClientRequest::CallToolRequest(Request::new(asked("ask", json!({ "question": "How many orders?" }))));
        let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
        let writing = async { while hear.recv().await.unwrap() != "generation" {} };
        within("the model is asked", writing).await;
        handle.cancel(Some("enough".to_owned())).await.unwrap();
        let stop = within("the question ends", shop.stops.recv()).await;
        assert_eq!(stop, Some(StopReason::Cancelled), "over HTTP: {over_http}");
        // The others are not affected.
        told(&client, "run_sql", json!({ "sql": DEAR })).await;
        idle(&shop).await;
    }
}

#[tokio::test]
async fn disconnect_stops_the_question() {
    let mut shop = open_shop([ScriptedReply::Hang]);
    let (tell, mut hear) = mpsc::unbounded_channel();
    let client = over_pipe(&shop, Client { tell: Some(tell), ..Client::default() }).await;
    let request = ClientRequest::CallToolRequest(Request::new(asked("ask", json!({ "question": "How many orders?" }))));
    let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    let writing = async { while hear.recv().await.unwrap() != "generation" {} };
    within("the model is asked", writing).await;
    client.cancel().await.unwrap();
    drop(handle);
    // The protocol's crate lets calls go on for so long that nobody waits for.
    expire(Duration::from_secs(5)).await;
    let stop = within("the question ends", shop.stops.recv()).await;
    assert_eq!(stop, Some(StopReason::Cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn continues_a_session() {
    let shop = open_shop([DEAR, "SELECT count(*) FROM products WHERE price > 100"]);
    let client = over_pipe(&shop, Client::default()).await;
    let first = json!({ "question": "Which two products cost most?", "session_id": "new" });
    let id = told(&client, "ask", first).await.1["session_id"].as_str().unwrap().to_owned();
    let second = json!({ "question": "How many products cost more than 100?", "session_id": id });
    let data = told(&client, "ask", second).await.1;
    assert_eq!((&data["session_id"], &data["metadata"]["turns"]), (&json!(id), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn elicits_clarification_from_the_user() {
    const AMBIGUOUS: &str = "SELECT name FROM customers, products";
    let asked = json!({ "question": "List all the names" });
    let answers: [(Option<Fill>, &str, &str); 4] = [
        (
            Some(|message| {
                assert!(
                    message.starts_with("Which name: customers.name or products.name?\ncustomers.name: ["),
                    "{message}"
                );
                ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "choice": "products.name" }))
            }),
            "answered",
            "SELECT products.name FROM customers, products",
        ),
        (
            Some(|_| ElicitResult::new(ElicitationAction::Decline)),
            "ask_user",
            "SELECT customers.name FROM customers, products",
        ),
        (
            Some(|_| {
                ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "choice": "DROP TABLE products" }))
            }),
            "ask_user",
            "SELECT customers.name FROM customers, products",
        ),
        // Nobody can be asked: the most likely reading is taken.
        (None, "answered", "SELECT customers.name FROM customers, products"),
    ];
    for (user, status, sql) in answers {
        let shop = open_shop([AMBIGUOUS]);
        let client = over_pipe(&shop, Client { user, ..Client::default() }).await;
        let (text, data) = told(&client, "ask", asked.clone()).await;
        assert_eq!((&data["status"], &data["sql"]), (&json!(status), &json!(sql)), "{text}");
        if status == "ask_user" {
            assert!(text.contains("choice: products.name: SELECT products.name FROM customers, products"), "{text}");
            let choice = json!({ "question": "List all the names", "choice": "SELECT products.name FROM products" });
            assert_eq!(told(&client, "ask", choice).await.1["status"], "answered");
        }
        if user.is_none() {
            assert!(text.contains("assumed customers.name; it could also be products.name"), "{text}");
        }
    }
}
