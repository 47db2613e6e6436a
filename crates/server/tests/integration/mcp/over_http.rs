//! Who is heard over HTTP, and how much of it.

use std::collections::BTreeMap;
use std::process::Command;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_works_over_http() {
    let shop = open_shop([DEAR]);
    let server = listening(&shop).await;
    every_tool(&server.client(None).await).await;
    idle(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_works_without_a_session() {
    let shop = open_shop([DEAR]);
    let server = listening(&shop).await;
    let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = Client::default().serve_with_lifecycle(to(server.url(), None), newest).await.unwrap();
    every_tool(&client).await;
    idle(&shop).await;
}

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");

/// The protocol's own client for Python, as other people's programs use it.
#[tokio::test(flavor = "multi_thread")]
async fn python_client_works_over_http() {
    if std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|wanted| wanted == "none") {
        return;
    }
    let fetched = Command::new(format!("{SCRIPTS}/mcp_client.sh")).arg("fetch").output().unwrap();
    let said = String::from_utf8_lossy(&fetched.stderr);
    assert!(fetched.status.success(), "no MCP client: {said}QUERYMEND_TEST_CLIENTS=none leaves this test out");
    let python = String::from_utf8(fetched.stdout).unwrap();
    let shop = open_shop([DEAR]);
    let server = listening(&shop).await;
    let url = server.url();
    let run = move || {
        let mut client = Command::new(python.trim());
        client.arg(format!("{SCRIPTS}/mcp_client.py")).args(["http", &url]).env("NO_PROXY", "127.0.0.1");
        client.output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let seen: Value = serde_json::from_str(&out).unwrap();
    assert!(seen["ask"]["failed"] == false && seen["ask"]["stages"][0].is_string(), "{seen}");
    idle(&shop).await;
}

/// Lets Ann and Bob in by their names. Bob may ask only one of the databases.
struct Two;

impl Authenticator for Two {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, User> {
        Box::pin(async move {
            let name = credentials.authorization.and_then(|text| text.strip_prefix("Bearer ")).unwrap_or_default();
            let databases = match name {
                "ann" => None,
                "bob" => Some(vec!["shared".to_owned()]),
                _ => return Err(Problem::new(ProblemCode::Unauthenticated, "sign in first")),
            };
            let role = Arc::new(RoleSection { databases, ..RoleSection::default() });
            Ok(User { id: Some(name.to_owned()), role_name: Some(name.to_owned()), role })
        })
    }

    fn requires_credentials(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_isolated() {
    let shop = shop(&["secret", "shared"], [DEAR, DEAR], Arc::new(Two), timing::config());
    let server = listening(&shop).await;
    let nobody = server.post(&initialize()).send().await.unwrap();
    assert_eq!((nobody.status().as_u16(), &nobody.headers()["www-authenticate"]), (401, &"Bearer".parse().unwrap()));
    assert_eq!(server.post(&initialize()).bearer_auth("eve").send().await.unwrap().status(), 401);

    let (ann, bob) = (server.client(Some("ann")).await, server.client(Some("bob")).await);
    // The database that Bob may not ask is not there for him, in no list and no message.
    let (text, data) = refused(&bob, "schema", json!({ "database": "secret" })).await;
    assert_eq!(
        (data["code"].as_str(), text.contains("available databases: shared\n")),
        (Some("not_found"), true),
        "{text}"
    );
    told(&bob, "run_sql", json!({ "sql": DEAR })).await;
    assert!(text_at(&bob, "querymend://schema/secret").await.is_err());
    assert!(text_at(&ann, "querymend://schema/secret").await.is_ok());
    let listed = serde_json::to_string(&bob.list_resources(None).await.unwrap()).unwrap();
    assert!(listed.contains("schema/shared") && !listed.contains("secret"), "{listed}");
    // Nor are Ann's conversations.
    let first = json!({ "question": "Which two products cost most?", "session_id": "new", "database": "shared" });
    let talk = told(&ann, "ask", first).await.1["session_id"].clone();
    let (_, data) = refused(&bob, "ask", json!({ "question": "And the third?", "session_id": talk })).await;
    assert_eq!(data["code"], "not_found");

    // A session of the protocol belongs to whoever opened it: to others it is as if it were not there.
    let session = server.session("ann").await;
    let within = |token: &str| server.post(&list_tools()).bearer_auth(token).header("mcp-session-id", &session).send();
    let other = within("bob").await.unwrap();
    let unknown = server.post(&list_tools()).bearer_auth("bob").header("mcp-session-id", "none").send().await.unwrap();
    assert_eq!((other.status().as_u16(), unknown.status().as_u16()), (404, 404));
    assert_eq!(other.text().await.unwrap(), unknown.text().await.unwrap());
    assert_eq!(server.post(&list_tools()).header("mcp-session-id", &session).send().await.unwrap().status(), 401);
    let client = web();
    let end = client.delete(server.url()).bearer_auth("bob").header("mcp-session-id", &session).send().await.unwrap();
    assert_eq!(end.status(), 404);
    assert_eq!(within("ann").await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_sessions_per_user() {
    let mut config = timing::config();
    config.server.limits.sessions = 3;
    let shop = shop(&["shared"], SILENT, Arc::new(Two), config);
    let server = listening(&shop).await;
    let bobs = server.session("bob").await;
    let mut anns = Vec::new();
    for _ in 0..20 {
        anns.push(server.session("ann").await);
    }
    let mut states = BTreeMap::new();
    for id in &anns {
        let response = server.post(&list_tools()).bearer_auth("ann").header("mcp-session-id", id).send().await.unwrap();
        *states.entry(response.status().as_u16()).or_insert(0) += 1;
    }
    assert_eq!(states, BTreeMap::from([(200, 3), (404, 17)]));
    let response = server.post(&list_tools()).bearer_auth("bob").header("mcp-session-id", bobs).send().await.unwrap();
    assert_eq!(response.status(), 200, "others are not affected");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_foreign_hosts_and_origins() {
    let shop = open_shop(SILENT);
    let server = listening(&shop).await;
    let status = async |header: &'static str, value: &'static str| {
        server.post(&initialize()).header(header, value).send().await.unwrap().status().as_u16()
    };
    assert_eq!(status("host", "evil.example").await, 403);
    assert_eq!(status("host", "localhost:8642").await, 200);
    assert_eq!(status("origin", "https://evil.example").await, 403);
    assert_eq!(status("origin", "null").await, 403);
    assert_eq!(status("origin", "http://localhost:6274").await, 200);
    // A page can send other kinds than JSON without asking the server first.
    let client = web();
    let plain = client.post(server.url()).header("accept", "application/json, text/event-stream");
    let plain = plain.header("content-type", "text/plain").body(initialize().to_string()).send().await.unwrap();
    assert_eq!(plain.status(), 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_malformed_requests() {
    let mut config = timing::config();
    config.server.limits.body_bytes = 10_000;
    let shop = shop(&["shop"], SILENT, Arc::new(NoAuth::default()), config);
    let server = listening(&shop).await;
    let client = web();
    let send = async |body: String| {
        let request = client.post(server.url()).header("accept", "application/json, text/event-stream");
        request.header("content-type", "application/json").body(body).send().await.unwrap()
    };
    assert_eq!(send("x".repeat(100_000)).await.status(), 413);
    for (body, code) in [
        ("{", Some(-32700)),
        ("\u{0}", Some(-32700)),
        ("garbage", Some(-32700)),
        ("[]", None),
        ("null", None),
        ("{\"jsonrpc\": \"2.0\"}", None),
    ] {
        let response = send(body.to_owned()).await;
        let status = response.status().as_u16();
        assert!((400..500).contains(&status), "{body}: {status}");
        let said: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        match code {
            Some(code) => assert_eq!((status, &said["error"]["code"]), (400, &json!(code)), "{body}: {said}"),
            None => assert!(said["status"] == status || said["error"]["code"].is_i64(), "{body}: {said}"),
        }
    }
    assert_eq!(client.put(server.url()).send().await.unwrap().status(), 405);
    every_tool_still_works(&server).await;
}

async fn every_tool_still_works(server: &Listening) {
    told(&server.client(None).await, "run_sql", json!({ "sql": DEAR })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_requests_over_the_concurrency_limit() {
    let mut config = timing::config();
    config.server.limits.max_concurrent_per_user = 3;
    let shop = shop(
        &["shop"],
        [ScriptedReply::Hang, ScriptedReply::Hang, ScriptedReply::Hang],
        Arc::new(NoAuth::default()),
        config,
    );
    let server = listening(&shop).await;
    let (tell, mut hear) = mpsc::unbounded_channel();
    let client = Client { tell: Some(tell), ..Client::default() };
    let client = client.serve(to(server.url(), None)).await.unwrap();
    let mut handles = Vec::new();
    for _ in 0..3 {
        let request =
            ClientRequest::CallToolRequest(Request::new(asked("ask", json!({ "question": "How many orders?" }))));
        handles.push(client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap());
        let writing = async { while hear.recv().await.unwrap() != "generation" {} };
        within("the model is asked", writing).await;
    }
    let fourth = server.post(&initialize()).send().await.unwrap();
    assert_eq!((fourth.status().as_u16(), fourth.headers().contains_key("retry-after")), (429, true));
    assert_eq!(shop.service.running_requests(), 3);
    drop(client);
    drop(handles);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_idle_streams() {
    let shop = open_shop(SILENT);
    let server = listening(&shop).await;
    let session = server.session("anyone").await;
    let client = web();
    let stream = client.get(server.url()).header("accept", "text/event-stream").header("mcp-session-id", session);
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    server.stopping.stop();
    // Nothing else would end it: it waits for open streams without a limit.
    assert!(within("it stops", server.task).await.unwrap().unwrap());
    stream.bytes().await.ok();
}
