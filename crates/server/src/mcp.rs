//! MCP server for agents, over stdio or HTTP.
//!
//! The protocol crate (`rmcp`) is not exposed outside this module.

mod arguments;
mod caller;
mod elicitation;
mod handler;
mod progress;
mod render;
mod resources;
mod sessions;
mod streamable_http;
mod tools;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};

use self::handler::McpHandler;
pub use self::render::MAX_TEXT_BYTES;
pub use self::streamable_http::{router, router_with_shutdown};
use crate::service::Service;

/// Grace period for cancelled calls at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves one client over a pipe until it disconnects. Calls in flight are then cancelled.
pub async fn serve_pipe<R, W>(service: Arc<Service>, read: R, write: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let handler = McpHandler::new(service);
    let calls = handler.running_calls();
    match handler.serve((read, write)).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            // Cancelled calls still write their audit log entries.
            tokio::time::timeout(SHUTDOWN_TIMEOUT, calls.write()).await.ok();
            Ok(())
        }
        // A client that disconnects before `initialize` is not an error.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Serves one client over stdin and stdout. Nothing else may write to stdout.
pub async fn serve_stdio(service: Arc<Service>) -> io::Result<()> {
    let (read, write) = rmcp::transport::stdio();
    serve_pipe(service, read, write).await
}
