//! Querymend as a service. Every face (HTTP with server-sent events, gRPC, MCP) asks the same [`Service`] and listens to the same
//! events; none of them decides anything.

pub mod audit;
pub mod gate;
pub mod http;
pub mod rates;
pub mod results;
mod serve;
pub mod service;
pub mod shelf;
pub mod user;

pub use gate::{gate, may_bind};
pub use serve::{Stopping, serve};
pub use service::{Service, Setup};
pub use user::{Gate, User};
