//! `querymend mcp`: serves a database to agents over stdin and stdout.

use std::sync::Arc;

use clap::Args;

use crate::args::database::DatabaseArgs;
use crate::args::memory::MemoryArgs;
use crate::args::model::ModelArgs;
use crate::error::{CliError, ExitStatus};
use crate::output::Out;
use crate::runtime::build_runtime;
use crate::service_builder::{self, ServiceOptions};

/// Serve a database to an agent (MCP) over stdin and stdout
#[derive(Debug, Args)]
#[command(
    name = "mcp",
    after_help = "Examples:
  querymend mcp --db shop.db
  querymend mcp --db postgres://reader@localhost/shop --model ollama:qwen2.5-coder

Agents start it themselves. Their configuration (Claude Desktop, Cursor and others; in VS Code the first key is `servers`):
  {\"mcpServers\": {\"querymend\": {\"command\": \"querymend\", \"args\": [\"mcp\", \"--db\", \"/data/shop.db\"]}}}
Without a model every tool except `ask` works. Access to the database is read-only.
The server exits when stdin is closed."
)]
pub struct McpCommand {
    #[command(flatten)]
    pub database: DatabaseArgs,
    #[command(flatten)]
    pub model_args: ModelArgs,
    #[command(flatten)]
    pub memory_args: MemoryArgs,
}

/// Runs `querymend mcp`.
pub fn run(mcp: &McpCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = mcp.model_args.load_config()?;
    let runtime = build_runtime()?;
    let options =
        ServiceOptions { database: &mcp.database, model_args: &mcp.model_args, memory_args: &mcp.memory_args };
    let service = Arc::new(service_builder::build_service(&options, config, &runtime, out)?);
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = querymend_server::mcp::serve_stdio(service) => Some(ended),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    // A thread is still blocked on stdin, which may never end.
    runtime.shutdown_background();
    match ended {
        None => Ok(ExitStatus::Interrupted),
        Some(Ok(())) => Ok(ExitStatus::Success),
        Some(Err(error)) => Err(CliError::new(format!("the input on stdin is not MCP: {error}"))
            .hint("this command is for agents: `querymend mcp --help` shows how to configure them")),
    }
}
