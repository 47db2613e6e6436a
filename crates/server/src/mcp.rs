//! MCP: the same service for agents, over a pipe or over HTTP. Nothing outside this module knows the crate that speaks the
//! protocol.

mod agent;
mod arguments;
mod elicitation;
mod over_http;
mod progress;
mod resources;
mod sessions;
mod telling;
mod tools;
mod who;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};

use self::agent::Agent;
pub use self::over_http::{router, router_until};
pub use self::telling::MOST_TEXT;
use crate::service::Service;

/// How long calls that were stopped may take to end.
const LAST: Duration = Duration::from_secs(5);

/// Speaks to the one client at the other end of a pipe, until it hangs up. Questions that still run then are stopped.
pub async fn serve_pipe<R, W>(service: Arc<Service>, read: R, write: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let agent = Agent::new(service);
    let calls = agent.calls();
    match agent.serve((read, write)).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            // What was stopped is still written down.
            tokio::time::timeout(LAST, calls.write()).await.ok();
            Ok(())
        }
        // A client that hangs up before it has said anything wanted nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The same over stdin and stdout. Nothing else may be written to stdout meanwhile.
pub async fn serve_stdio(service: Arc<Service>) -> io::Result<()> {
    let (read, write) = rmcp::transport::stdio();
    serve_pipe(service, read, write).await
}
