//! What the page asks for: itself, who one is, what could be asked, what was asked, and what one thinks of it.

use std::sync::Arc;

use querymend_memory::FileStore;
use querymend_model::{ScriptedModel, StaticEmbedder};
use serde_json::json;

use super::house::{House, body, house, open, problem, setup};
use crate::timing;

const COUNT: &str = "SELECT count(*) FROM products";

/// A server that keeps examples.
async fn teachable(texts: &[&str]) -> House {
    let again = texts.last().into_iter().cycle().take(50);
    let model = Arc::new(ScriptedModel::new(texts.iter().chain(again).map(ToString::to_string)));
    let house = open(model.clone(), timing::config()).await;
    let embedder = Arc::new(StaticEmbedder::builtin().unwrap());
    let store = FileStore::open(house.folder.path().join("memory.db"), embedder).await.unwrap();
    let config = timing::config();
    let mut setup = setup(house.folder.path(), model, config);
    setup.databases[0].identity = "/a/secret/place/shop.db".into();
    setup.store = Some(Arc::new(store));
    house.service.reload(setup);
    house
}

#[tokio::test]
async fn serves_user_suggestions_and_rules_to_the_page() {
    let house = house(&[COUNT]).await;
    let me = body(house.get("/v1/me").await, 200).await;
    assert_eq!((&me["user"], &me["administers"], &me["signs_in"]), (&json!(""), &json!(true), &json!(false)));
    let asked = body(house.get("/v1/suggestions?database=shop").await, 200).await;
    assert!(asked.as_array().unwrap().len() > 3, "{asked}");
    let rules = body(house.get("/v1/rules").await, 200).await;
    assert!(rules.as_array().unwrap().iter().any(|rule| rule["code"] == "unknown-column" && rule["page"].is_null()));
    let rule = body(house.get("/v1/rules/unknown-column").await, 200).await;
    assert!(rule["page"].as_str().unwrap().contains("unknown-column"), "{rule}");
    assert_eq!(problem(house.get("/v1/rules/nonsense").await).await.1, "not_found");
}

#[tokio::test]
async fn lists_past_questions_newest_first() {
    let house = house(&[COUNT]).await;
    assert_eq!(body(house.get("/v1/traces").await, 200).await, json!([]));
    for question in ["How many products are there?", "How many products do we have?"] {
        body(house.post("/v1/ask", json!({"question": question})).await, 200).await;
    }
    let past = body(house.get("/v1/traces").await, 200).await;
    let questions: Vec<&str> = past.as_array().unwrap().iter().map(|run| run["question"].as_str().unwrap()).collect();
    assert_eq!(questions, ["How many products do we have?", "How many products are there?"]);
    // Where the database is, nobody is told; by which name it is asked, everybody.
    assert_eq!(
        (&past[0]["database"], &past[0]["status"], &past[0]["attempts"]),
        (&json!("shop"), &json!("answered"), &json!(1))
    );
    assert_eq!(body(house.get("/v1/traces?limit=1&all=true").await, 200).await.as_array().unwrap().len(), 1);
    assert_eq!(problem(house.get("/v1/traces?limit=many").await).await.0, 400);
}

#[tokio::test]
async fn feedback_stores_right_answers_and_rejects_wrong_ones() {
    let house = teachable(&[COUNT, "SELECT count(*) FROM orders", COUNT]).await;
    let ask = || house.post("/v1/ask", json!({"question": "How many products are there?"}));
    let first = body(ask().await, 200).await;
    let id = first["trace_id"].as_str().unwrap().to_owned();
    let verdict = |id: String, good: bool| {
        let path = format!("/v1/traces/{id}/feedback");
        let house = &house;
        async move { house.post(&path, json!({"good": good})).await }
    };
    let kept = body(verdict(id.clone(), true).await, 200).await;
    let example = kept["example_id"].as_str().unwrap().to_owned();
    let listed = body(house.get("/v1/examples").await, 200).await;
    assert_eq!((&listed[0]["id"], &listed[0]["standing"]), (&json!(example), &json!("verified")));
    // It is answered from memory now, until somebody says that it is wrong.
    let second = body(ask().await, 200).await;
    assert_eq!(second["remembered"], json!(example));
    let id = second["trace_id"].as_str().unwrap().to_owned();
    assert_eq!(body(verdict(id, false).await, 200).await["example_id"], json!(null));
    assert_eq!(body(house.get("/v1/examples").await, 200).await[0]["standing"], "rejected");
    let third = body(ask().await, 200).await;
    assert_eq!((&third["remembered"], third["rows"]["rows"][0][0].is_number()), (&json!(null), true));
    // And right again, from the list of examples.
    let path = format!("/v1/examples/{example}/feedback");
    assert_eq!(house.post(&path, json!({"good": true})).await.status(), 204);
    assert_eq!(body(house.get("/v1/examples").await, 200).await[0]["standing"], "verified");
    // What nobody asked, what is nobody's, what is no opinion.
    assert_eq!(problem(verdict("x".repeat(36), true).await).await.0, 404);
    assert_eq!(problem(house.post("/v1/examples/none/feedback", json!({"good": true})).await).await.0, 404);
    assert_eq!(problem(house.post(&path, json!({"good": "maybe"})).await).await.0, 400);
    let plain = house.client.post(house.url(&path)).body("{\"good\":true}").send().await.unwrap();
    assert_eq!(problem(plain).await.0, 400, "a form of another page must not do it");
    let lines = house.audited();
    assert!(lines.iter().any(|line| line["action"] == "example" && line["outcome"] == "rejected"));
}

#[tokio::test]
async fn final_analysis_is_handed_to_the_browser_once() {
    let program = "```python\nresult = products['price'].sum()\n```";
    let house =
        house(&["SELECT nothing FROM products", "SELECT nil FROM products", "SELECT nix FROM products", program]).await;
    let question = json!({"question": "What do all products cost together?", "analysis": "browser"});
    let told = body(house.post("/v1/ask", question).await, 500).await;
    let answer = &told["answer"];
    assert_eq!((&answer["status"], &answer["fallback"]), (&json!("gave_up"), &json!(false)), "{told}");
    let analysis = &answer["analysis"];
    assert_eq!(analysis["code"], "result = products['price'].sum()", "{told}");
    let tables = analysis["tables"].as_array().unwrap();
    assert_eq!((tables.len(), &tables[0]["name"], &tables[0]["table"]), (1, &json!("products"), &json!("products")));
    // The rows come the way of every other query: reviewed, read-only, written down.
    let rows = body(house.post("/v1/run", json!({"sql": tables[0]["sql"]})).await, 200).await;
    assert!(rows["rows"]["rows"].as_array().unwrap().len() > 10);
    assert!(
        house
            .audited()
            .iter()
            .all(|line| line["action"] != "query" || line["sql"].as_str() != tables[0]["sql"].as_str())
    );
}

#[tokio::test]
async fn sends_a_strict_content_security_policy() {
    let house = house(&[COUNT]).await;
    let page = house.get("/").await;
    if page.status() == 404 {
        // Without the page its address says how it is had.
        assert!(page.text().await.unwrap().contains("scripts/page.sh"));
    } else {
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers()["x-content-type-options"], "nosniff");
        assert_eq!(house.get("/schema").await.headers()["content-type"], "text/html; charset=utf-8");
    }
    for path in ["/nothing", "/assets/nothing.js", "/assets/../Cargo.toml", "/%2e%2e/Cargo.toml", "/index.html/"] {
        assert_eq!(house.get(path).await.status(), 404, "{path}");
    }
    assert_eq!(house.post("/", json!({})).await.status(), 404);
}

#[tokio::test]
async fn serves_only_files_of_the_pyodide_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    std::fs::write(folder.path().join("in/pyodide.mjs"), "export {}").unwrap();
    std::fs::write(folder.path().join("in/.hidden"), "hidden").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("secret.txt"), folder.path().join("in/link.txt")).unwrap();
    let mut config = timing::config();
    config.server.pyodide = Some(folder.path().join("in"));
    let house = open(Arc::new(ScriptedModel::new(["SELECT 1"])), config).await;
    let file = house.get("/pyodide/pyodide.mjs").await;
    assert_eq!(file.headers()["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(file.text().await.unwrap(), "export {}");
    // It is kept, but not when it has changed.
    std::fs::write(folder.path().join("in/pyodide.mjs"), "export default 2").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::options()
        .append(true)
        .open(folder.path().join("in/pyodide.mjs"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    for _ in 0..2 {
        assert_eq!(house.get("/pyodide/pyodide.mjs").await.text().await.unwrap(), "export default 2");
    }
    for path in [
        "/pyodide/..%2fsecret.txt",
        "/pyodide/link.txt",
        "/pyodide/.hidden",
        "/pyodide/",
        "/pyodide/none.js",
        "/pyodide/in%00.js",
    ] {
        let response = house.get(path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert!(!response.text().await.unwrap().contains("secret\""));
    }
}

/// The page's types are made from this file, so that it says what the server does.
#[test]
fn openapi_file_is_up_to_date() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/openapi.json");
    let now = format!("{}\n", serde_json::to_string_pretty(&querymend_server::http::openapi_document()).unwrap());
    if std::env::var_os("QUERYMEND_BLESS").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == now,
        "web/openapi.json is out of date: QUERYMEND_BLESS=1 cargo test --workspace --test integration"
    );
}

#[tokio::test]
async fn blocks_cross_site_requests_and_disables_caching() {
    let house = teachable(&[COUNT]).await;
    for (site, status) in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)] {
        let reply = house.client.get(house.url("/v1/me")).header("sec-fetch-site", site).send().await.unwrap();
        assert_eq!(reply.status().as_u16(), status, "{site}");
        assert_eq!(reply.headers()["cache-control"], "no-store");
        assert_eq!(reply.headers()["x-content-type-options"], "nosniff");
    }
    // Where the database is, clients are not told; by which name it is asked, they are.
    let added = house.post("/v1/examples", json!({"question": "How many products?", "sql": COUNT})).await;
    assert_eq!(body(added, 201).await["database"], "shop");
    assert_eq!(body(house.get("/v1/examples").await, 200).await[0]["database"], "shop");
}
