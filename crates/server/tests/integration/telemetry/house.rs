//! A server over the demo database, on a port of its own, with a model that says what it is told to.

use std::path::Path;
use std::sync::Arc;

use querymend::guard::{BreakerSettings, Breakers};
use querymend_model::{Answer, Cancel, Error, Line, Model, Reply, Request, Script, Usage};
use querymend_server::audit::Audit;
use querymend_server::http::router;
use querymend_server::service::Database;
use querymend_server::shelf::Here;
use querymend_server::user::{Gate, Open};
use querymend_server::{Bounds, Service, Setup, Stopping, serve_within};
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
    stopping: Stopping,
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
    pub gate: Arc<dyn Gate>,
    pub threshold: u32,
}

impl Plan {
    pub fn new(model: impl Model + 'static) -> Self {
        Self { model: Arc::new(model), gate: Arc::new(Open::default()), threshold: 5 }
    }
}

/// Starts it; `with` adds those who listen.
pub async fn house(plan: Plan, with: impl FnOnce(Service) -> Service) -> House {
    let folder = tempfile::tempdir().unwrap();
    let service = Arc::new(with(service(folder.path(), plan)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let stopping = Stopping::default();
    let (router, stop) = (router(Arc::clone(&service)), stopping.clone());
    let bounds = Bounds::from(&service.config().server.limits);
    tokio::spawn(async move { serve_within(listener, router, &stop, NEVER, &bounds).await });
    let client = querymend_net::http::client("127.0.0.1", None, hang_timeout()).unwrap();
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
    config.server.limits.per_minute = 0;
    config.server.limits.concurrent = 1_000;
    let settings = BreakerSettings { failure_threshold: plan.threshold, ..config.circuit_breaker };
    let setup = Setup {
        config,
        model: plan.model,
        databases: vec![Database { name: "shop".into(), engine, identity: "shop".into() }],
        store: None,
        gate: plan.gate,
    };
    let shelf = Arc::new(Here::new(100, NEVER, None));
    let audit = Audit::open(&folder.join("audit.jsonl")).unwrap();
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
        until("nothing runs", || self.service.running() == 0).await;
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
pub fn paid(text: &str) -> Line {
    Line::Say(Reply { usage: Usage { input: 100, output: 20, cost_usd: Some(0.25) }, ..Reply::text(text) })
}

pub fn down() -> Line {
    Line::Fail(Error::Unreachable { model: "script".into(), message: "refused".into(), transient: true })
}

pub fn script(lines: impl IntoIterator<Item = Line>) -> Script {
    Script::new(lines)
}

/// Says the same to everyone, as often as they like.
pub struct Parrot(pub &'static str);

impl Model for Parrot {
    fn name(&self) -> &str {
        "test:parrot"
    }

    fn complete<'a>(
        &'a self,
        _: &'a Request,
        watch: &'a mut (dyn FnMut(&str) + Send),
        _: &'a Cancel,
    ) -> Answer<'a, Reply> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            watch(self.0);
            Ok(Reply { usage: Usage { input: 7, output: 3, cost_usd: None }, ..Reply::text(self.0) })
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
