//! Querymend as a service. Every face (HTTP with server-sent events, gRPC, MCP) asks the same [`Service`] and listens to the same
//! events; none of them decides anything.

pub mod audit;
pub mod gate;
pub mod grpc;
pub mod heard;
pub mod http;
pub mod logs;
pub mod mcp;
pub mod metrics;
pub mod otlp;
pub mod rates;
pub mod results;
mod sent;
mod serve;
pub mod service;
pub mod shelf;
mod sync;
pub mod user;

use std::sync::Arc;

pub use gate::{gate, may_bind};
pub use serve::{Bounds, Stopping, serve, serve_within};
pub use service::{Service, Setup};
pub use user::{Gate, User};

/// Every face of a service, on one port. It must be called where tasks can be spawned.
pub fn faces(service: Arc<Service>, stopping: &Stopping) -> axum::Router {
    let others = grpc::router(Arc::clone(&service)).merge(mcp::router_until(Arc::clone(&service), stopping));
    http::router(service).merge(others)
}
