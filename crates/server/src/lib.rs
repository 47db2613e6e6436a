//! Querymend as a service. Every face (HTTP with server-sent events, gRPC, MCP) asks the same [`Service`] and listens to the same
//! events; none of them decides anything.

pub mod audit;
pub mod heard;
pub mod http;
pub mod logs;
pub mod metrics;
pub mod otlp;
pub mod rates;
pub mod results;
mod serve;
pub mod service;
pub mod shelf;
pub mod user;

pub use serve::{Stopping, serve};
pub use service::{Service, Setup};
pub use user::{Gate, User};
