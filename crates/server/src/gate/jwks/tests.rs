//! A real server whose keys change, fail and come late.
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

struct Answers {
    next: Mutex<(StatusCode, String)>,
    asked: AtomicUsize,
    /// So many requests may be answered.
    open: Semaphore,
}

impl Answers {
    fn say(&self, status: StatusCode, text: impl Into<String>) {
        *self.next.lock().unwrap() = (status, text.into());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Acquire)
    }
}

async fn answer(State(answers): State<Arc<Answers>>) -> impl IntoResponse {
    answers.asked.fetch_add(1, Ordering::AcqRel);
    answers.open.acquire().await.unwrap().forget();
    let (status, text) = answers.next.lock().unwrap().clone();
    (status, [("location", "/elsewhere")], text)
}

fn set(names: &[&str]) -> String {
    let key = |name: &&str| json!({"kty": "OKP", "crv": "Ed25519", "kid": name, "x": "A".repeat(43)});
    json!({"keys": names.iter().map(key).collect::<Vec<_>>()}).to_string()
}

async fn keys(soonest: Duration, age: Duration, names: &[&str]) -> (Arc<Answers>, Jwks) {
    let next = Mutex::new((StatusCode::OK, set(names)));
    let answers = Arc::new(Answers { next, asked: AtomicUsize::new(0), open: Semaphore::new(1_000) });
    let elsewhere = set(&["elsewhere"]);
    let router = Router::new()
        .route("/keys", get(answer))
        .route("/elsewhere", get(move || async move { elsewhere }))
        .with_state(Arc::clone(&answers));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let stopping = crate::Stopping::default();
    tokio::spawn(async move { crate::serve(listener, router, &stopping, Duration::ZERO).await });
    let made = Jwks::of_url(&url, Algorithm::EdDSA).unwrap();
    let mut inner = Arc::into_inner(made.0).unwrap();
    inner.pace = Pace { soonest, age };
    if let Source::Server(client, _) = &mut inner.source {
        // A slow machine is no server that fails.
        let patient = http::client("127.0.0.1", None, hang_timeout()).unwrap().timeout(hang_timeout());
        *client = patient.build().unwrap();
    }
    (answers, Jwks(Arc::new(inner)))
}

async fn knows(keys: &Jwks, name: &str) -> bool {
    match keys.key(Some(name)).await {
        Ok(_) => true,
        Err(Turned::Away(_)) => false,
        Err(Turned::Later(..)) => panic!("there are no keys at all"),
    }
}

#[tokio::test]
async fn a01_keys_are_kept_and_asked_for_again_when_one_is_unknown() {
    let (server, keys) = keys(Duration::ZERO, HOUR, &["a"]).await;
    for _ in 0..5 {
        assert!(knows(&keys, "a").await);
    }
    assert_eq!(server.asked(), 1);
    assert!(!knows(&keys, "b").await);
    assert_eq!(server.asked(), 2);
    server.say(StatusCode::OK, set(&["b"]));
    assert!(knows(&keys, "b").await);
    assert!(!knows(&keys, "a").await, "the old one was withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn l12_however_many_unknown_keys_are_named_the_server_is_asked_once() {
    let (server, keys) = keys(HOUR, HOUR, &["a"]).await;
    let keys = Arc::new(keys);
    let named = (0..50).map(|n| {
        let keys = Arc::clone(&keys);
        tokio::spawn(async move { knows(&keys, &format!("unknown-{n}")).await })
    });
    for known in named.collect::<Vec<_>>() {
        assert!(!known.await.unwrap());
    }
    assert!(knows(&keys, "a").await);
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a01_keys_that_cannot_be_renewed_go_on_being_used() {
    let (server, keys) = keys(Duration::ZERO, Duration::ZERO, &["a"]).await;
    assert!(knows(&keys, "a").await);
    for (status, text) in [
        (StatusCode::INTERNAL_SERVER_ERROR, set(&["b"])),
        (StatusCode::FOUND, String::new()),
        (StatusCode::OK, "<html>".to_owned()),
        (StatusCode::OK, "{\"keys\":[]}".to_owned()),
        (StatusCode::OK, format!("{{\"keys\":[],\"more\":\"{}\"}}", "x".repeat(LONGEST))),
    ] {
        server.say(status, text);
        let before = server.asked();
        assert!(knows(&keys, "a").await, "{status}");
        assert!(server.asked() > before);
        assert!(!knows(&keys, "b").await && !knows(&keys, "elsewhere").await, "{status}");
    }
    server.say(StatusCode::OK, set(&["b"]));
    assert!(!knows(&keys, "a").await, "old keys are asked for again before they are used");
}

#[tokio::test]
async fn a01_without_any_key_clients_are_told_to_come_again() {
    let (server, keys) = keys(HOUR, HOUR, &[]).await;
    for _ in 0..2 {
        let told = keys.key(Some("a")).await.map(|_| ()).expect_err("there is no key");
        assert!(matches!(told, Turned::Later(ProblemCode::Unavailable, _, 3_600)));
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn l12_a_client_that_hangs_up_does_not_keep_others_from_new_keys() {
    let (server, keys) = keys(HOUR, HOUR, &["a"]).await;
    server.open.forget_permits(1_000);
    let asked = async {
        while server.asked() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = keys.key(Some("a")) => panic!("nothing was answered yet"),
        asked = tokio::time::timeout(hang_timeout(), asked) => asked.expect("the server is asked"),
    }
    server.open.add_permits(1);
    assert!(knows(&keys, "a").await);
    assert_eq!(server.asked(), 1);
}
