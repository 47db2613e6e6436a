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
use querymend::guard::Breakers;
use querymend_engine::demo;
use querymend_model::{Answer, Cancel, Model, Reply, Request};
use querymend_server::audit::Audit;
use querymend_server::service::{Database, Setup};
use querymend_server::shelf::Here;
use querymend_server::user::Open;
use querymend_server::{Service, Stopping, http, serve};
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

    fn complete<'a>(&'a self, _: &'a Request, _: &'a mut (dyn FnMut(&str) + Send), _: &'a Cancel) -> Answer<'a, Reply> {
        Box::pin(async { Ok(Reply::text("SELECT id, price FROM products WHERE category = 'Electronics'")) })
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
    (config.server.limits.per_minute, config.server.limits.concurrent) = (0, 100_000);
    config.server.limits.concurrent_all = 100_000;
    let setup = Setup { config, model: Arc::new(Instant), databases, store: None, gate: Arc::new(Open::default()) };
    let shelf = Arc::new(Here::new(100, Duration::from_secs(60), None));
    let service = Arc::new(Service::new(setup, Arc::new(Breakers::default()), shelf, Audit::default()));
    let stopping = Stopping::default();
    let other = TcpListener::bind(("127.0.0.1", hello)).await?;
    tokio::spawn(async move { axum::serve(other, Router::new().route("/", get(|| async { "hello" }))).await });
    let listener = TcpListener::bind(("127.0.0.1", ours)).await?;
    println!("listening");
    serve(listener, http::router(service), &stopping, Duration::from_secs(5)).await?;
    Ok(())
}
