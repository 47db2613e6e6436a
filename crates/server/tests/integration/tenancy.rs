//! What belongs to one user is not there for another; roles decide what may be asked. Over real HTTP.

use std::time::{Duration, Instant};

use querymend::config::RoleSection;
use querymend_model::ScriptedReply;
use querymend_server::auth::key_file;
use querymend_sql::Policy;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::signing::{Server, Who, claims, signed, start, told, with};
use crate::timing::{most_admitted, until, within};

const COUNT: &str = "SELECT count(*) AS n FROM products";

/// Analysts ask the shop without its customers, and get five rows; clerks ask everything; admins administer.
async fn server(lines: Vec<ScriptedReply>) -> Server {
    start(
        |config, _| {
            let policy = Policy { deny_tables: vec!["customers".into()], ..Policy::default() };
            let databases = Some(vec!["shop".to_string()]);
            let analyst = RoleSection { databases, policy, max_rows: Some(5), admin: false };
            config.server.roles.insert("analyst".into(), analyst);
            config.server.roles.insert("clerk".into(), RoleSection::default());
            config.server.roles.insert("admin".into(), RoleSection { admin: true, ..RoleSection::default() });
            config
                .server
                .roles
                .insert("nobody".into(), RoleSection { databases: Some(vec![]), ..RoleSection::default() });
        },
        lines,
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_authenticates_with_uniform_rejections() {
    let server = server(vec![]).await;
    let late = signed(&with("ann", json!({"exp": 1})));
    let mut bodies = std::collections::HashSet::new();
    for route in querymend_server::http::ROUTES {
        let path = route.path.replace("{id}", "1").replace("{cursor}", "1").replace("{code}", "no-sql");
        for authorization in [None, Some("Bearer x.y.z".to_owned()), Some(format!("Bearer {late}"))] {
            let mut request = server.request(route.method.clone(), &path);
            if let Some(authorization) = &authorization {
                request = request.header("authorization", authorization);
            }
            if route.method == Method::POST {
                request = request.json(&json!({}));
            }
            if route.is_public {
                within(&path, is_fine(request, route.path == "/readyz")).await;
                continue;
            }
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            assert_eq!(status, 401, "{path} {authorization:?}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            bodies.insert(response.text().await.unwrap());
        }
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let body = bodies.into_iter().next().unwrap();
    assert!(body.contains("\"unauthenticated\"") && !body.contains("expired"), "{body}");
    let root = server.user("ann", "root");
    let (status, problem) = root.get("/v1/databases").await;
    assert_eq!((status, problem["code"].as_str()), (403, Some("forbidden")));
    assert!(problem["hint"].is_string() && !problem.to_string().contains("analyst"), "{problem}");
}

/// Sends a request until it succeeds. Only the readiness probe may fail first: it does where a database was slow a moment ago.
async fn is_fine(request: RequestBuilder, is_readiness: bool) {
    loop {
        match request.try_clone().unwrap().send().await.unwrap().status().as_u16() {
            200 => return,
            status => assert!(status == 503 && is_readiness, "{status}: {request:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn isolates_sessions_and_traces_between_users() {
    let lines = (0..4).map(|_| ScriptedReply::from(COUNT)).collect();
    let server = server(lines).await;
    // The same role, so that nothing but the user keeps them apart; and one who administers.
    let (ann, others) = (server.user("ann", "clerk"), [server.user("bob", "clerk"), server.user("eve", "admin")]);
    let (status, session) = ann.post("/v1/sessions", json!({"database": "shop"})).await;
    assert_eq!(status, 201, "{session}");
    let id = session["session_id"].as_str().unwrap();
    let asked = json!({"question": "How many products are there?", "session_id": id});
    let (status, answer) = ann.post("/v1/ask", asked.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let trace = answer["trace_id"].as_str().unwrap();
    let trace_path = format!("/v1/traces/{trace}");
    let session_path = format!("/v1/sessions/{id}");
    for other in &others {
        let (status, problem) = other.get(&session_path).await;
        let (_, unknown) = other.get("/v1/sessions/0199f3a0-0000-7000-8000-000000000000").await;
        assert_eq!((status, &problem), (404, &unknown), "as if it had never been there");
        assert_eq!(other.delete(&session_path).await.0, 404);
        assert_eq!(other.post("/v1/ask", asked.clone()).await.0, 404);
        assert_eq!(other.get("/v1/sessions").await, (200, json!([])));
        let (status, problem) = other.get(&trace_path).await;
        let (_, unknown) = other.get("/v1/traces/0199f3a0-0000-7000-8000-000000000000").await;
        assert_eq!((status, &problem), (404, &unknown));
    }
    for trick in [&trace[..8], "..%2f..%2fuser-616e6e", &format!("..%2fuser-616e6e%2f{trace}"), "%00", "*"] {
        assert_eq!(others[0].get(&format!("/v1/traces/{trick}")).await.0, 404, "{trick}");
    }
    let (status, events) = ann.get(&trace_path).await;
    assert_eq!(status, 200);
    assert!(events.as_array().is_some_and(|events| events.len() > 2));
    assert_eq!(ann.get("/v1/sessions").await.1.as_array().unwrap().len(), 1);
    // Without signing in nobody has a user's things either; a long name is not taken for another that begins alike.
    let long = "x".repeat(120);
    let (first, second) = (server.user(&format!("{long}1"), "clerk"), server.user(&format!("{long}2"), "clerk"));
    let (_, answer) = first.post("/v1/ask", json!({"question": "How many products?", "database": "shop"})).await;
    let path = format!("/v1/traces/{}", answer["trace_id"].as_str().unwrap());
    assert_eq!((first.get(&path).await.0, second.get(&path).await.0), (200, 404));
    assert_eq!(ann.delete(&session_path).await.0, 204);
    // The audit log says who it was.
    let audit = std::fs::read_to_string(server.folder.path().join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked = |user: &str| lines.iter().filter(|line| line["action"] == "ask" && line["user"] == user).count();
    assert_eq!((asked("ann"), asked("bob"), asked("eve")), (1, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn isolates_examples_between_users() {
    let lines = vec![ScriptedReply::from("SELECT 1 AS n FROM products LIMIT 1"), ScriptedReply::from(COUNT)];
    let server = server(lines).await;
    let (ann, bob, eve) = (server.user("ann", "clerk"), server.user("bob", "clerk"), server.user("eve", "admin"));
    let example = json!({"question": "How many products are there?", "sql": COUNT, "database": "shop"});
    let (status, own) = ann.post("/v1/examples", example.clone()).await;
    assert_eq!(status, 201, "{own}");
    let own = own["id"].as_str().unwrap().to_owned();
    let ids = |told: Value| -> Vec<String> {
        told.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let list = "/v1/examples?database=shop";
    assert_eq!(ids(ann.get(list).await.1), [own.as_str()]);
    for other in [&bob, &eve] {
        assert_eq!(ids(other.get(list).await.1), Vec::<String>::new());
        assert_eq!(other.delete(&format!("/v1/examples/{own}?database=shop")).await.0, 404);
    }
    // The same question of another user is asked of the model; Ann's is answered from memory.
    let question = json!({"question": "How many products are there?", "database": "shop"});
    let (_, answer) = bob.post("/v1/ask", question.clone()).await;
    assert!(answer["remembered"].is_null() && answer["rows"]["rows"] == json!([[1]]), "{answer}");
    let (_, answer) = ann.post("/v1/ask", question.clone()).await;
    assert_eq!(answer["remembered"], json!(own), "{answer}");
    // What all share: only a role that administers adds and removes it.
    let mut shared = example.clone();
    shared["shared"] = json!(true);
    assert_eq!(ann.post("/v1/examples", shared.clone()).await.0, 403);
    let (status, told) = eve.post("/v1/examples", shared).await;
    assert_eq!(status, 201, "{told}");
    let shared = told["id"].as_str().unwrap().to_owned();
    assert_eq!(ids(bob.get(list).await.1), [shared.as_str()]);
    assert_eq!(bob.delete(&format!("/v1/examples/{shared}?database=shop")).await.0, 403);
    // One who complains about it does not take it from the others.
    let (_, session) = bob.post("/v1/sessions", json!({"database": "shop"})).await;
    let mut in_session = question.clone();
    in_session["session_id"] = session["session_id"].clone();
    for _ in 0..3 {
        let (_, answer) = bob.post("/v1/ask", in_session.clone()).await;
        assert_eq!(answer["remembered"], json!(shared), "{answer}");
        let mut complaint = in_session.clone();
        complaint["question"] = json!("That is wrong!");
        bob.post("/v1/ask", complaint).await;
    }
    let (_, told) = eve.get(list).await;
    let kept = told.as_array().unwrap().iter().find(|one| one["id"] == json!(shared)).unwrap();
    assert_eq!((kept["standing"].as_str(), kept["hurt"].as_u64().unwrap_or(0)), (Some("verified"), 0), "{kept}");
    // A shared example of a table that a role may not read is not shown to it.
    let secret = json!({"question": "Who are the customers?", "sql": "SELECT name FROM customers", "database": "shop", "shared": true});
    assert_eq!(eve.post("/v1/examples", secret).await.0, 201);
    let analyst = server.user("cas", "analyst");
    assert_eq!(ids(analyst.get(list).await.1), [shared.as_str()]);
    assert_eq!(eve.delete(&format!("/v1/examples/{shared}?database=shop")).await.0, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn isolates_pages_and_idempotency_keys_between_users() {
    let lines = vec![
        ScriptedReply::from(COUNT),
        ScriptedReply::from("SELECT count(*) AS n FROM orders"),
        ScriptedReply::from(COUNT),
    ];
    let server = server(lines).await;
    let (ann, bob) = (server.user("ann", "clerk"), server.user("bob", "clerk"));
    let query = json!({"sql": "SELECT name FROM products", "database": "shop"});
    let (status, page) = ann.post("/v1/run?page_size=3", query).await;
    assert_eq!(status, 200, "{page}");
    let next = format!("/v1/results/{}?page_size=3", page["cursor"].as_str().unwrap());
    assert_eq!(bob.get(&next).await.0, 404);
    assert_eq!(ann.get(&next).await.0, 200);
    let ask = |question: &str| json!({"question": question, "database": "shop"});
    let send = async |who: &Who<'_>, question: &str| {
        told(who.posting("/v1/ask", ask(question)).header("idempotency-key", "tenancy-1").send().await.unwrap()).await
    };
    let (_, first) = send(&ann, "How many products?").await;
    let (_, other) = send(&bob, "How many orders?").await;
    assert_ne!(first["trace_id"], other["trace_id"]);
    assert_eq!(other["question"], "How many orders?");
    assert_eq!(send(&ann, "How many products?").await.1["trace_id"], first["trace_id"]);
    // The same user with another role is not given what the former role was told.
    let demoted = server.user("ann", "analyst");
    let (_, again) = send(&demoted, "How many products?").await;
    assert_ne!(again["trace_id"], first["trace_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_restrict_databases_tables_and_rows() {
    let lines = vec![
        ScriptedReply::from("SELECT name FROM customers"),
        ScriptedReply::from("SELECT email FROM customers"),
        ScriptedReply::from("SELECT c.name FROM customers AS c"),
        ScriptedReply::from("SELECT name FROM products"),
    ];
    let server = server(lines).await;
    let (analyst, clerk) = (server.user("ann", "analyst"), server.user("bob", "clerk"));
    let (admin, nobody) = (server.user("eve", "admin"), server.user("cas", "nobody"));
    // Databases.
    let names = |told: Value| -> Vec<String> {
        told.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(analyst.get("/v1/databases").await.1), ["shop"]);
    assert_eq!(names(clerk.get("/v1/databases").await.1), ["shop", "vault"]);
    assert_eq!(nobody.get("/v1/databases").await, (200, json!([])));
    let count = json!({"sql": COUNT, "database": "vault"});
    for (path, body) in [
        ("/v1/run", count.clone()),
        ("/v1/check", count.clone()),
        ("/v1/fix", count.clone()),
        ("/v1/explain-empty", count.clone()),
        ("/v1/correct", json!({"original_query": COUNT, "database": "vault"})),
        ("/v1/ask", json!({"question": "How many?", "database": "vault"})),
        ("/v1/sessions", json!({"database": "vault"})),
        ("/v1/examples", json!({"question": "q", "sql": COUNT, "database": "vault"})),
    ] {
        let (status, problem) = analyst.post(path, body).await;
        assert_eq!(status, 404, "{path} {problem}");
        let hint = problem["hint"].as_str().unwrap_or_default();
        assert!(!hint.contains("vault"), "{path} {problem}");
    }
    for path in ["/v1/schema?database=vault", "/v1/values?q=a&database=vault", "/v1/examples?database=vault"] {
        assert_eq!(analyst.get(path).await.0, 404, "{path}");
    }
    assert_eq!(clerk.post("/v1/run", count).await.0, 200);
    assert_eq!(analyst.post("/v1/run", json!({"sql": COUNT})).await.0, 200, "the only one need not be named");
    assert_eq!(nobody.post("/v1/run", json!({"sql": COUNT})).await.0, 403);
    let (status, problem) = clerk.post("/v1/run", json!({"sql": COUNT})).await;
    assert_eq!((status, problem["hint"].as_str().unwrap().contains("vault")), (400, true));
    // Tables.
    let (_, schema) = analyst.get("/v1/schema").await;
    assert!(!schema.to_string().contains("customers\""), "{schema}");
    for sql in [
        "SELECT name FROM customers",
        "SELECT * FROM \"Customers\"",
        "SELECT * FROM main.customers",
        "SELECT count(*) FROM orders WHERE EXISTS (SELECT 1 FROM customers)",
        "WITH c AS (SELECT * FROM customers) SELECT * FROM c",
        "SELECT (SELECT email FROM customers LIMIT 1) FROM products",
        "SELECT name FROM products UNION ALL SELECT email FROM customers",
        "SELECT sql FROM sqlite_master",
    ] {
        let body = json!({"sql": sql, "database": "shop"});
        let (status, problem) = analyst.post("/v1/run", body.clone()).await;
        assert_eq!(status, 400, "{sql} {problem}");
        assert!(!problem.to_string().contains("@"), "{problem}");
        let (_, fixed) = analyst.post("/v1/fix", body.clone()).await;
        assert_ne!(fixed["success"], json!(true), "{sql} {fixed}");
        assert_ne!(analyst.post("/v1/explain-empty", body).await.0, 200, "{sql}");
    }
    let (_, found) = analyst.get("/v1/values?q=O'Brien&database=shop").await;
    assert_eq!(found, json!([]), "values of a table that may not be read");
    let asked = json!({"question": "Who are the customers?", "database": "shop"});
    let (status, answer) = analyst.post("/v1/ask", asked).await;
    assert!(status >= 400 || answer["sql"].as_str().is_none_or(|sql| !sql.contains("customers")), "{answer}");
    let (status, ran) = clerk.post("/v1/run", json!({"sql": "SELECT name FROM customers", "database": "shop"})).await;
    assert_eq!((status, ran["rows"]["rows"].as_array().unwrap().len()), (200, 60));
    // Rows.
    for most in [None, Some(3), Some(1_000_000)] {
        let body = json!({"sql": "SELECT name FROM products", "max_rows": most});
        let (_, ran) = analyst.post("/v1/run", body).await;
        let expected = most.map_or(5, |most: usize| most.min(5));
        assert_eq!(ran["rows"]["rows"].as_array().unwrap().len(), expected, "{ran}");
        assert_eq!(ran["rows"]["truncated"], json!(true));
    }
    // What administers.
    for who in [&analyst, &clerk] {
        assert_eq!(who.get("/v1/breakers").await.0, 403);
        assert_eq!(who.post("/v1/breakers/reset", json!({})).await.0, 403);
    }
    assert_eq!(admin.get("/v1/breakers").await.0, 200);
    assert_eq!(admin.post("/v1/breakers/reset", json!({})).await.0, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn isolates_rate_limits_between_users() {
    let server = start(
        |config, _| {
            config.server.limits.requests_per_minute = 20;
            config.server.limits.max_concurrent_per_user = 2;
        },
        vec![ScriptedReply::Hang, ScriptedReply::Hang],
    )
    .await;
    let begun = Instant::now();
    let (ann, bob) = (server.user("ann", "any"), server.user("bob", "any"));
    // Two questions that hang are all that Ann may have running.
    let ask = json!({"question": "How many products?", "database": "shop"});
    let hanging: Vec<_> = (0..2).map(|_| tokio::spawn(ann.posting("/v1/ask", ask.clone()).send())).collect();
    until("both run", || server.service.running_requests() == 2).await;
    let refused = ann.posting("/v1/check", json!({"sql": COUNT, "database": "shop"})).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(bob.get("/v1/databases").await.0, 200);
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
    until("clients that are gone do not count", || server.service.running_requests() == 0).await;
    // In a minute Ann has twenty requests, of which three are spent.
    let mut admitted = 3 + within("Ann has asked too often", admitted_until_refused(&server, &ann.token)).await;
    assert!((20..=most_admitted(20, begun)).contains(&admitted), "{admitted}");
    assert_eq!(bob.get("/v1/databases").await.0, 200);
    // A new token of the same user is no new user.
    let again = signed(&with("ann", json!({"jti": "other"})));
    admitted += within("and still has", admitted_until_refused(&server, &again)).await;
    assert!(admitted <= most_admitted(20, begun), "{admitted}");
}

/// Asks until that is too often, and returns how many requests were admitted before.
async fn admitted_until_refused(server: &Server, token: &str) -> usize {
    let mut admitted = 0;
    loop {
        let response = server.request(Method::GET, "/v1/databases").bearer_auth(token).send().await.unwrap();
        match response.status().as_u16() {
            200 => admitted += 1,
            status => {
                assert_eq!(status, 429);
                let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
                assert!((1..=3).contains(&wait), "{wait}");
                return admitted;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_tokens_of_one_name_are_different_users() {
    let key = std::sync::Mutex::new(String::new());
    let server = start(
        |config, folder| {
            let file = folder.join("keys.jsonl");
            *key.lock().unwrap() = key_file::create(&file, "ann", None, false).unwrap();
            config.server.auth.as_mut().unwrap().keys_file = Some(file);
        },
        vec![],
    )
    .await;
    let key = key.into_inner().unwrap();
    let ann = server.user("ann", "any");
    assert_eq!(ann.post("/v1/sessions", json!({"database": "shop"})).await.0, 201);
    let send = async |name: &str, value: &str| {
        told(server.request(Method::GET, "/v1/sessions").header(name, value).send().await.unwrap()).await
    };
    assert_eq!(send("x-api-key", &key).await, (200, json!([])));
    assert_eq!(send("authorization", &format!("Bearer {key}")).await, (200, json!([])));
    assert_eq!(send("x-api-key", &ann.token).await.0, 401, "a token is no key");
    assert_eq!(send("authorization", &format!("Bearer {}", signed(&claims("key:ann")))).await.0, 401);
    let both = server.request(Method::GET, "/v1/sessions").header("x-api-key", &key).bearer_auth(&ann.token);
    assert_eq!(both.send().await.unwrap().status().as_u16(), 401);
    let twice = server.request(Method::GET, "/v1/sessions").bearer_auth(&ann.token).bearer_auth("x.y.z");
    assert_eq!(twice.send().await.unwrap().status().as_u16(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn prevents_dns_rebinding_without_auth() {
    let server = start(|config, _| config.server.auth = None, vec![]).await;
    let port = server.url.rsplit(':').next().unwrap();
    for (host, status) in [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        (format!("rebound.example:{port}"), 403),
        ("localhost.rebound.example".to_owned(), 403),
        ("127.0.0.1.rebound.example".to_owned(), 403),
    ] {
        let response = server.request(Method::GET, "/v1/databases").header("host", &host).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{host}");
    }
}
