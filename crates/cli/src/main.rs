//! The `querymend` command: parses the options, runs the command and returns its exit code.

mod args;
mod clarify;
mod commands;
mod deny_lists;
mod did_you_mean;
mod error;
mod input;
mod logging;
mod model_download;
mod model_selection;
mod no_model;
mod output;
mod repair;
mod runtime;
mod service_builder;
mod signals;
mod state_dir;
mod uuid_time;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use mimalloc::MiMalloc;

use crate::commands::{
    ask, chat, check, completions, demo, dialects, doctor, eval, explain, fix, key, man, mcp, memory, model, run,
    schema, serve, trace,
};
use crate::output::{Color, Out};

/// Questions cause many small string allocations, which mimalloc serves faster than the system
/// allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Querymend answers questions from databases, repairs the SQL on the way, and runs only read-only
/// queries
#[derive(Debug, Parser)]
#[command(
    name = "querymend",
    version,
    after_help = "Examples:
  querymend demo
  querymend ask --db querymend-demo.db --model ollama:qwen2.5-coder 'Which products cost more than 100?'
  querymend check --db querymend-demo.db --sql 'SELECT id, price FROM products'
  querymend explain unknown-column"
)]
struct Cli {
    /// When to use colors
    #[arg(long, global = true, help_heading = "Global options", value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
    /// Print only results and errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, help_heading = "Global options", conflicts_with = "quiet")]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ask(ask::AskCommand),
    Chat(chat::ChatCommand),
    Trace(trace::TraceCommand),
    Eval(eval::EvalCommand),
    Check(check::CheckCommand),
    Fix(fix::FixCommand),
    Explain(explain::ExplainCommand),
    Schema(schema::SchemaCommand),
    Run(run::RunCommand),
    Doctor(doctor::DoctorCommand),
    Serve(serve::ServeCommand),
    Mcp(mcp::McpCommand),
    Model(model::ModelCommand),
    Memory(memory::MemoryCommand),
    Key(key::KeyCommand),
    Demo(demo::DemoCommand),
    /// List dialects and their aliases
    #[command(after_help = "Examples:\n  querymend dialects\n  querymend check --dialect postgres query.sql")]
    Dialects,
    Completions(completions::CompletionsCommand),
    Man(man::ManCommand),
}

/// Top-level commands of other tools, and their equivalents here.
const COMMAND_REDIRECTS: &[(&str, &str)] =
    &[("seed", "querymend memory seed"), ("examples", "querymend memory list"), ("pull", "querymend model pull")];

/// Exits with a usage error.
fn exit_with_usage_error(error: &clap::Error) -> ! {
    let invalid = error.get(clap::error::ContextKind::InvalidSubcommand).map(ToString::to_string);
    let known = COMMAND_REDIRECTS.iter().find(|(word, _)| invalid.as_deref() == Some(word));
    match known {
        Some((word, command)) => {
            let message = format!("there is no command `{word}`: use `{command}`");
            Cli::command().error(clap::error::ErrorKind::InvalidSubcommand, message).exit()
        }
        None => error.exit(),
    }
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| exit_with_usage_error(&error));
    let mut out = Out::new(cli.color, cli.quiet, cli.verbose);
    if cli.verbose {
        logging::start(out.color_stderr);
    }
    let outcome = match &cli.command {
        Command::Ask(ask) => ask::run(ask, &mut out),
        Command::Chat(chat) => chat::run(chat, &mut out),
        Command::Eval(eval) => eval::run(eval, &mut out),
        Command::Trace(show) => trace::run(show, &mut out),
        Command::Check(check) => check::run(check, &mut out),
        Command::Fix(fix) => fix::run(fix, &mut out),
        Command::Explain(explain) => explain::run(explain, &mut out),
        Command::Schema(show) => schema::run(show, &mut out),
        Command::Run(run) => run::run(run, &mut out),
        Command::Serve(serve) => serve::run(serve, &mut out),
        Command::Doctor(doctor) => doctor::run(doctor, &mut out),
        Command::Mcp(mcp) => mcp::run(mcp, &mut out),
        Command::Memory(memories) => memory::run(memories, &mut out),
        Command::Key(keys) => key::run(keys, &mut out),
        Command::Model(models) => model::run(models, &mut out),
        Command::Demo(demo) => demo::run(demo, &mut out),
        Command::Dialects => dialects::run(&mut out),
        Command::Completions(shell) => completions::run(shell, Cli::command(), &mut out),
        Command::Man(man) => man::run(man, Cli::command(), &mut out),
    };
    let exit = outcome.and_then(|exit| out.flush().map(|()| exit)).unwrap_or_else(|failure| {
        out.flush().ok();
        out.error(&failure);
        failure.status
    });
    exit.into()
}
