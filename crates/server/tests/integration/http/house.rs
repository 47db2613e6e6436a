//! A server for one test: the demo database, a model that says what it is told to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use querymend::Config;
use querymend::resilience::Breakers;
use querymend_engine::{Engine, demo};
use querymend_model::{Model, ScriptedModel};
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user::NoAuth;
use querymend_server::service::{Database, Setup};
use querymend_server::store::InMemoryStore;
use querymend_server::{ConnectionLimits, Service, Shutdown, http, serve_with_limits};
use querymend_testing::hang_timeout;
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::long_deadline::LongDeadline;
use crate::timing::{self, NEVER};

pub struct House {
    pub address: SocketAddr,
    pub service: Arc<Service>,
    pub stopping: Shutdown,
    pub task: JoinHandle<std::io::Result<bool>>,
    pub audit: PathBuf,
    pub client: Client,
    pub folder: tempfile::TempDir,
}

/// A server whose model says these texts, one after the other; the last one again and again.
pub async fn house(texts: &[&str]) -> House {
    let again = texts.last().into_iter().cycle().take(50);
    open(Arc::new(ScriptedModel::new(texts.iter().chain(again).map(ToString::to_string))), timing::config()).await
}

pub fn setup(folder: &std::path::Path, model: Arc<dyn Model>, config: Config) -> Setup {
    let file = folder.join("shop.db");
    if !file.exists() {
        demo::write(&file).unwrap();
    }
    let engine: Arc<dyn Engine> = Arc::from(querymend_engine::open(&file.to_string_lossy()).unwrap());
    // A test that sets the query timeout needs it to expire.
    let engine: Arc<dyn Engine> = if config.limits.time == NEVER { Arc::new(LongDeadline(engine)) } else { engine };
    let databases = vec![Database { name: "shop".into(), engine, identity: "shop".into() }];
    Setup { config, model, databases, store: None, authenticator: Arc::new(NoAuth::default()) }
}

pub async fn open(model: Arc<dyn Model>, config: Config) -> House {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit.jsonl");
    let limits = config.server.limits.clone();
    let breakers = Arc::new(Breakers::new(config.circuit_breaker));
    let setup = setup(folder.path(), model, config);
    let runs = Some((folder.path().join("runs"), 100));
    let shelf = Arc::new(InMemoryStore::new(limits.sessions, limits.session_age, runs));
    let service = Arc::new(Service::new(setup, breakers, shelf, AuditLog::open(&audit).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stopping = Shutdown::default();
    let (router, stop) = (http::router(Arc::clone(&service)), stopping.clone());
    let bounds = ConnectionLimits::from(&limits);
    let task = tokio::spawn(async move { serve_with_limits(listener, router, &stop, NEVER, &bounds).await });
    let client = querymend_net::http::client_builder("127.0.0.1", None, hang_timeout()).unwrap();
    // The server closes idle keep-alive connections after ten seconds, perhaps just when the next request is sent.
    let client = client.timeout(hang_timeout()).pool_max_idle_per_host(0).build().unwrap();
    House { address, service, stopping, task, audit, client, folder }
}

impl House {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        self.client.post(self.url(path)).json(&body).send().await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    /// The lines of the audit log.
    pub fn audited(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.audit).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The body of a response that must have this status.
pub async fn body(response: Response, status: u16) -> Value {
    let got = response.status().as_u16();
    let text = response.text().await.unwrap();
    assert_eq!(got, status, "{text}");
    if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
}

/// The problem of a response: its status, code and detail.
pub async fn problem(response: Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let kind =
        response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let told = body(response, status).await;
    assert_eq!(kind, "application/problem+json", "{told}");
    assert_eq!(told["status"], status, "{told}");
    (status, told["code"].as_str().unwrap().to_owned(), told["detail"].as_str().unwrap().to_owned())
}
