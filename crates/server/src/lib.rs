//! Querymend as a service.
//!
//! All protocols (HTTP with server-sent events, gRPC, MCP) call the same [`Service`] and receive
//! the same events; they contain no logic of their own.

pub mod audit;
pub mod auth;
mod caller;
pub mod clock;
pub mod encode;
mod error;
pub mod grpc;
pub mod http;
pub mod limits;
mod listen;
pub mod mcp;
pub mod observe;
mod problem;
mod request_body;
mod request_context;
mod request_task;
pub mod service;
pub mod store;
mod sync;
mod wire_name;

use std::pin::Pin;
use std::sync::Arc;

use querymend::Problem;

pub use auth::user::{Authenticator, User};
pub use auth::{build_authenticator, check_bind_address};
pub use listen::{ConnectionLimits, Shutdown, serve, serve_with_limits};
pub use request_context::RequestContext;
pub use service::{Service, Setup};

/// Boxed future of a fallible operation.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;

/// Returns the router of all protocols on one port. Must be called within a Tokio runtime.
pub fn app_router(service: Arc<Service>, shutdown: &Shutdown) -> axum::Router {
    let mcp = mcp::router_with_shutdown(Arc::clone(&service), shutdown);
    http::router(Arc::clone(&service)).merge(grpc::router(service)).merge(mcp)
}
