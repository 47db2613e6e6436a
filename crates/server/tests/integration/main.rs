//! The server, tried as its clients reach it: over HTTP, gRPC and MCP, signed in or not, many at once, and what it tells about itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on must fail, one that tries many orders says how many, and one that is skipped says so"
)]

mod gate;
mod grpc;
mod http;
#[path = "../../../core/tests/integration/long_deadline.rs"]
mod long_deadline;
mod mcp;
mod race;
mod scale;
mod signing;
mod telemetry;
mod tenancy;
mod timing;

// Sources of the product that `race` compiles again find these where the product has them.
mod auth {
    pub mod user {
        pub use querymend_server::User;
    }
}
mod encode {
    pub use querymend_server::encode::column_types;
}
mod sync {
    pub use shuttle::sync::atomic::AtomicUsize;
    pub use shuttle::sync::{Mutex, MutexGuard};
}
