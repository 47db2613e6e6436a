//! A server over the demo database, on a port of its own, with a model that says what it is told to.

use std::path::Path;
use std::sync::Arc;

use querymend::resilience::{BreakerSettings, Breakers};
use querymend_model::{
    BoxFuture, CancelSignal, Completion, CompletionRequest, Error, Model, ScriptedModel, ScriptedReply, Usage,
};
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user::{Authenticator, NoAuth};
use querymend_server::http::router;
use querymend_server::service::Database;
use querymend_server::store::InMemoryStore;
use querymend_server::{ConnectionLimits, Service, Setup, Shutdown, serve_with_limits};
use querymend_testing::hang_timeout;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::long_deadline::LongDeadline;
use crate::timing::{self, NEVER, until};

/// The draft that rules mend, and one that they cannot.
pub const MISNAMED: &str = "SELECT id, price FROM products WHERE category = 'Electronics'";
pub const HOPELESS: &str = "SELECT wingspan FROM dragons_of_the_north";
pub const FINE: &str = "SELECT name FROM products WHERE category = 'Electronics'";

/// A server that runs.
pub struct House {
    pub address: String,
    pub service: Arc<Service>,
    pub client: reqwest::Client,
    stopping: Shutdown,
    _folder: tempfile::TempDir,
}

impl Drop for House {
    fn drop(&mut self) {
        self.stopping.stop();
    }
}

/// What a server is made of, before it runs.
pub struct Plan {
    pub model: Arc<dyn Model>,
    pub gate: Arc<dyn Authenticator>,
    pub threshold: u32,
}

impl Plan {
    pub fn new(model: impl Model + 'static) -> Self {
        Self { model: Arc::new(model), gate: Arc::new(NoAuth::default()), threshold: 5 }
    }
}

/// Starts it; `with` adds those who listen.
pub async fn house(plan: Plan, with: impl FnOnce(Service) -> Service) -> House {
    let folder = tempfile::tempdir().unwrap();
    let service = Arc::new(with(service(folder.path(), plan)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let stopping = Shutdown::default();
    let (router, stop) = (router(Arc::clone(&service)), stopping.clone());
    let bounds = ConnectionLimits::from(&service.config().server.limits);
    tokio::spawn(async move { serve_with_limits(listener, router, &stop, NEVER, &bounds).await });
    let client = querymend_net::http::client_builder("127.0.0.1", None, hang_timeout()).unwrap();
    let client = client.pool_max_idle_per_host(0).build().unwrap();
    House { address, service, client, stopping, _folder: folder }
}

fn service(folder: &Path, plan: Plan) -> Service {
    let file = folder.join("shop.db");
    querymend_engine::demo::write(&file).unwrap();
    let engine = querymend_engine::open(&file.to_string_lossy()).unwrap();
    let engine = Arc::new(LongDeadline(Arc::from(engine)));
    let mut config = timing::config();
    config.self_correction.fallback = false;
    config.server.limits.requests_per_minute = 0;
    config.server.limits.max_concurrent_per_user = 1_000;
    let settings = BreakerSettings { failure_threshold: plan.threshold, ..config.circuit_breaker };
    let setup = Setup {
        config,
        model: plan.model,
        databases: vec![Database { name: "shop".into(), engine, identity: "shop".into() }],
        store: None,
        authenticator: plan.gate,
    };
    let shelf = Arc::new(InMemoryStore::new(100, NEVER, None));
    let audit = AuditLog::open(&folder.join("audit.jsonl")).unwrap();
    Service::new(setup, Arc::new(Breakers::new(settings)), shelf, audit)
}

impl House {
    /// Asks a question, and gives back the status and the body.
    pub async fn ask(&self, question: &str) -> (u16, Value) {
        self.post("/v1/ask", &json!({"question": question}), None).await
    }

    pub async fn post(&self, path: &str, body: &Value, traceparent: Option<&str>) -> (u16, Value) {
        let mut request = self.client.post(format!("{}{path}", self.address)).json(body);
        if let Some(parent) = traceparent {
            request = request.header("traceparent", parent);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// What stands under `/metrics` once nothing runs any more: a request does until all of its answer is sent.
    pub async fn metrics_at_rest(&self) -> String {
        until("nothing runs", || self.service.running_requests() == 0).await;
        self.metrics().await
    }

    /// What stands under `/metrics`.
    pub async fn metrics(&self) -> String {
        let response = self.client.get(format!("{}/metrics", self.address)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        response.text().await.unwrap()
    }
}

/// A reply that took some tokens and cost something.
pub fn paid(text: &str) -> ScriptedReply {
    ScriptedReply::Reply(Completion {
        usage: Usage { input: 100, output: 20, cost_usd: Some(0.25) },
        ..Completion::text(text)
    })
}

pub fn down() -> ScriptedReply {
    ScriptedReply::Fail(Error::Unreachable { model: "script".into(), message: "refused".into(), transient: true })
}

pub fn script(lines: impl IntoIterator<Item = ScriptedReply>) -> ScriptedModel {
    ScriptedModel::new(lines)
}

/// Says the same to everyone, as often as they like.
pub struct Parrot(pub &'static str);

impl Model for Parrot {
    fn name(&self) -> &str {
        "test:parrot"
    }

    fn complete<'a>(
        &'a self,
        _: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        _: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            watch(self.0);
            Ok(Completion { usage: Usage { input: 7, output: 3, cost_usd: None }, ..Completion::text(self.0) })
        })
    }
}

/// Whether tests that need programs of others are left out.
pub fn left_out() -> bool {
    std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|clients| clients == "none")
}

/// A script of this project.
pub fn telemetry_script() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/telemetry.sh")
}
