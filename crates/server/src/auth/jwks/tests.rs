//! Tests against a real server whose keys change, fail and are delayed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must fail")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use querymend_testing::hang_timeout;
use serde_json::json;
use tokio::sync::Semaphore;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

struct FakeJwksServer {
    next: Mutex<(StatusCode, String)>,
    request_count: AtomicUsize,
    /// Number of requests that may still be answered.
    permits: Semaphore,
}

impl FakeJwksServer {
    fn respond_with(&self, status: StatusCode, text: impl Into<String>) {
        *self.next.lock().unwrap() = (status, text.into());
    }

    fn requests(&self) -> usize {
        self.request_count.load(Ordering::Acquire)
    }
}

async fn answer(State(answers): State<Arc<FakeJwksServer>>) -> impl IntoResponse {
    answers.request_count.fetch_add(1, Ordering::AcqRel);
    answers.permits.acquire().await.unwrap().forget();
    let (status, text) = answers.next.lock().unwrap().clone();
    (status, [("location", "/elsewhere")], text)
}

fn set(names: &[&str]) -> String {
    let key = |name: &&str| json!({"kty": "OKP", "crv": "Ed25519", "kid": name, "x": "A".repeat(43)});
    json!({"keys": names.iter().map(key).collect::<Vec<_>>()}).to_string()
}

async fn start_server(soonest: Duration, age: Duration, names: &[&str]) -> (Arc<FakeJwksServer>, Jwks) {
    let next = Mutex::new((StatusCode::OK, set(names)));
    let answers = Arc::new(FakeJwksServer { next, request_count: AtomicUsize::new(0), permits: Semaphore::new(1_000) });
    let elsewhere = set(&["elsewhere"]);
    let router = Router::new()
        .route("/keys", get(answer))
        .route("/elsewhere", get(move || async move { elsewhere }))
        .with_state(Arc::clone(&answers));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let stopping = crate::Shutdown::default();
    tokio::spawn(async move { crate::serve(listener, router, &stopping, Duration::ZERO).await });
    let made = Jwks::from_url(&url, Algorithm::EdDSA).unwrap();
    let mut inner = Arc::into_inner(made.0).unwrap();
    inner.refresh_policy = RefreshPolicy { min_interval: soonest, ttl: age };
    if let JwksSource::Server(client, _) = &mut inner.source {
        // A slow machine must not count as a failing server.
        let patient = http::client_builder("127.0.0.1", None, hang_timeout()).unwrap().timeout(hang_timeout());
        *client = patient.build().unwrap();
    }
    (answers, Jwks(Arc::new(inner)))
}

async fn is_known(keys: &Jwks, name: &str) -> bool {
    match keys.key(Some(name)).await {
        Ok(_) => true,
        Err(AuthError::Rejected(_)) => false,
        Err(AuthError::Unavailable(..)) => panic!("there are no keys at all"),
    }
}

#[tokio::test]
async fn caches_keys_and_refreshes_on_an_unknown_key() {
    let (server, keys) = start_server(Duration::ZERO, HOUR, &["a"]).await;
    for _ in 0..5 {
        assert!(is_known(&keys, "a").await);
    }
    assert_eq!(server.requests(), 1);
    assert!(!is_known(&keys, "b").await);
    assert_eq!(server.requests(), 2);
    server.respond_with(StatusCode::OK, set(&["b"]));
    assert!(is_known(&keys, "b").await);
    assert!(!is_known(&keys, "a").await, "the old one was withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_cause_only_one_refresh() {
    let (server, keys) = start_server(HOUR, HOUR, &["a"]).await;
    let keys = Arc::new(keys);
    let named = (0..50).map(|n| {
        let keys = Arc::clone(&keys);
        tokio::spawn(async move { is_known(&keys, &format!("unknown-{n}")).await })
    });
    for known in named.collect::<Vec<_>>() {
        assert!(!known.await.unwrap());
    }
    assert!(is_known(&keys, "a").await);
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn stale_keys_stay_valid_while_the_refresh_fails() {
    let (server, keys) = start_server(Duration::ZERO, Duration::ZERO, &["a"]).await;
    assert!(is_known(&keys, "a").await);
    for (status, text) in [
        (StatusCode::INTERNAL_SERVER_ERROR, set(&["b"])),
        (StatusCode::FOUND, String::new()),
        (StatusCode::OK, "<html>".to_owned()),
        (StatusCode::OK, "{\"keys\":[]}".to_owned()),
        (StatusCode::OK, format!("{{\"keys\":[],\"more\":\"{}\"}}", "x".repeat(MAX_SET_BYTES))),
    ] {
        server.respond_with(status, text);
        let before = server.requests();
        assert!(is_known(&keys, "a").await, "{status}");
        assert!(server.requests() > before);
        assert!(!is_known(&keys, "b").await && !is_known(&keys, "elsewhere").await, "{status}");
    }
    server.respond_with(StatusCode::OK, set(&["b"]));
    assert!(!is_known(&keys, "a").await, "old keys are asked for again before they are used");
}

#[tokio::test]
async fn reports_unavailable_with_retry_after_without_keys() {
    let (server, keys) = start_server(HOUR, HOUR, &[]).await;
    for _ in 0..2 {
        let error = keys.key(Some("a")).await.map(|_| ()).expect_err("there is no key");
        assert!(matches!(error, AuthError::Unavailable(ProblemCode::Unavailable, _, 3_600)));
    }
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn dropped_request_does_not_block_a_refresh() {
    let (server, keys) = start_server(HOUR, HOUR, &["a"]).await;
    server.permits.forget_permits(1_000);
    let asked = async {
        while server.requests() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = keys.key(Some("a")) => panic!("nothing was answered yet"),
        asked = tokio::time::timeout(hang_timeout(), asked) => asked.expect("the server is asked"),
    }
    server.permits.add_permits(1);
    assert!(is_known(&keys, "a").await);
    assert_eq!(server.requests(), 1);
}
