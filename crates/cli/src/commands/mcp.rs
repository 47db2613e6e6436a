//! `querymend mcp`: a database for agents, over stdin and stdout.

use std::sync::Arc;

use clap::Args;

use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::remember::Remembering;
use crate::serving::{self, Options};
use crate::setup::{Asking, Database, runtime};

/// Serve a database to an agent (MCP) over stdin and stdout
#[derive(Debug, Args)]
#[command(
    name = "mcp",
    after_help = "Examples:
  querymend mcp --db shop.db
  querymend mcp --db postgres://reader@localhost/shop --model ollama:qwen2.5-coder

Agents start it themselves. What they are told (Claude Desktop, Cursor and others; in VS Code the first word is `servers`):
  {\"mcpServers\": {\"querymend\": {\"command\": \"querymend\", \"args\": [\"mcp\", \"--db\", \"/data/shop.db\"]}}}
Without a model everything works but the tool `ask`. Nothing can be written to the database.
It ends when stdin is closed."
)]
pub struct Mcp {
    #[command(flatten)]
    pub database: Database,
    #[command(flatten)]
    pub asking: Asking,
    #[command(flatten)]
    pub remembering: Remembering,
}

/// Does it.
pub fn run(mcp: &Mcp, out: &mut Out) -> Result<Exit, Failure> {
    let config = mcp.asking.config()?;
    let runtime = runtime()?;
    let options = Options { database: &mcp.database, asking: &mcp.asking, remembering: &mcp.remembering };
    let service = Arc::new(serving::service(&options, config, &runtime, out)?);
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = querymend_server::mcp::serve_stdio(service) => Some(ended),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    // A thread still waits for stdin, which may never end.
    runtime.shutdown_background();
    match ended {
        None => Ok(Exit::Interrupted),
        Some(Ok(())) => Ok(Exit::Done),
        Some(Err(error)) => Err(Failure::new(format!("what came on stdin is not MCP: {error}"))
            .hint("this command is for agents: `querymend mcp --help` says how they are told about it")),
    }
}
