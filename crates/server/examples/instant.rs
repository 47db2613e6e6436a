//! A server whose model answers at once, beside one that only says hello: what the server itself costs.
//!
//!     cargo run --release --example instant -- 8642 8643
//!
//! `scripts/server_speed.py` measures both.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use mimalloc::MiMalloc;
use querymend::Config;
use querymend::resilience::Breakers;
use querymend_engine::demo;
use querymend_model::{BoxFuture, CancelSignal, Completion, CompletionRequest, Model};
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user::NoAuth;
use querymend_server::service::{Database, Setup};
use querymend_server::store::InMemoryStore;
use querymend_server::{Service, Shutdown, http, serve};
use tokio::net::TcpListener;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Always writes the same query, which has a fault that is mended.
struct Instant;

impl Model for Instant {
    fn name(&self) -> &str {
        "instant"
    }

    fn complete<'a>(
        &'a self,
        _: &'a CompletionRequest,
        _: &'a mut (dyn FnMut(&str) + Send),
        _: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async { Ok(Completion::text("SELECT id, price FROM products WHERE category = 'Electronics'")) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let ports: Vec<u16> = std::env::args().skip(1).map(|port| port.parse()).collect::<Result<_, _>>()?;
    let [ours, hello] = ports[..] else {
        return Err("two ports: of the server, and of the one that says hello".into());
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    demo::write(&file)?;
    let engine = Arc::from(querymend_engine::open(&file.to_string_lossy())?);
    let databases = vec![Database { name: "shop".into(), engine, identity: "shop".into() }];
    let mut config = Config::default();
    (config.server.limits.requests_per_minute, config.server.limits.max_concurrent_per_user) = (0, 100_000);
    config.server.limits.max_concurrent = 100_000;
    let setup =
        Setup { config, model: Arc::new(Instant), databases, store: None, authenticator: Arc::new(NoAuth::default()) };
    let shelf = Arc::new(InMemoryStore::new(100, Duration::from_secs(60), None));
    let service = Arc::new(Service::new(setup, Arc::new(Breakers::default()), shelf, AuditLog::default()));
    let stopping = Shutdown::default();
    let other = TcpListener::bind(("127.0.0.1", hello)).await?;
    tokio::spawn(async move { axum::serve(other, Router::new().route("/", get(|| async { "hello" }))).await });
    let listener = TcpListener::bind(("127.0.0.1", ours)).await?;
    println!("listening");
    serve(listener, http::router(service), &stopping, Duration::from_secs(5)).await?;
    Ok(())
}
