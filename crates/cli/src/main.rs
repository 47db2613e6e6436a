//! The `querymend` command: reads the options, calls the command, ends with its exit code.

mod against;
mod answer;
mod chosen;
mod clarify;
mod commands;
mod failure;
mod given;
mod input;
mod interrupt;
mod logging;
mod mend;
mod missing;
mod nearest;
mod out;
mod pulling;
mod remember;
mod render;
mod sarif;
mod serving;
mod setup;
mod state;
mod story;
mod table;
mod watch;
mod when;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use mimalloc::MiMalloc;

use crate::commands::{
    ask, chat, check, completions, demo, dialects, doctor, eval, explain, fix, key, man, mcp, memory, model, run,
    schema, serve, trace,
};
use crate::out::{Color, Out};

/// Questions are made of many small texts, which it hands out faster than the system does.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Querymend answers questions from databases, mends the SQL on the way, and runs only what cannot do harm
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
struct Querymend {
    /// When to use colour
    #[arg(long, global = true, help_heading = "Global options", value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
    /// Say nothing but results and errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true, help_heading = "Global options", conflicts_with = "quiet")]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ask(ask::AskQuestion),
    Chat(chat::Chat),
    Trace(trace::ShowTrace),
    Eval(eval::Eval),
    Check(check::Check),
    Fix(fix::Fix),
    Explain(explain::Explain),
    Schema(schema::ShowSchema),
    Run(run::Run),
    Doctor(doctor::Doctor),
    Serve(serve::Serve),
    Mcp(mcp::Mcp),
    Model(model::Models),
    Memory(memory::Memories),
    Key(key::Keys),
    Demo(demo::Demo),
    /// List the dialects and the names they go by
    #[command(after_help = "Examples:\n  querymend dialects\n  querymend check --dialect postgres query.sql")]
    Dialects,
    Completions(completions::Completions),
    Man(man::Man),
}

/// Commands that other tools have at the top, and where they are here.
const ELSEWHERE: &[(&str, &str)] =
    &[("seed", "querymend memory seed"), ("examples", "querymend memory list"), ("pull", "querymend model pull")];

/// Ends the program with what is wrong with the command line.
fn misread(error: &clap::Error) -> ! {
    let invalid = error.get(clap::error::ContextKind::InvalidSubcommand).map(ToString::to_string);
    let known = ELSEWHERE.iter().find(|(word, _)| invalid.as_deref() == Some(word));
    match known {
        Some((word, command)) => {
            let message = format!("there is no command `{word}`: it is `{command}` here");
            Querymend::command().error(clap::error::ErrorKind::InvalidSubcommand, message).exit()
        }
        None => error.exit(),
    }
}

fn main() -> ExitCode {
    let querymend = Querymend::try_parse().unwrap_or_else(|error| misread(&error));
    let mut out = Out::new(querymend.color, querymend.quiet, querymend.verbose);
    if querymend.verbose {
        logging::start(out.color_stderr);
    }
    let outcome = match &querymend.command {
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
        Command::Completions(shell) => completions::run(shell, Querymend::command(), &mut out),
        Command::Man(man) => man::run(man, Querymend::command(), &mut out),
    };
    let exit = outcome.and_then(|exit| out.flush().map(|()| exit)).unwrap_or_else(|failure| {
        out.flush().ok();
        out.error(&failure);
        failure.exit
    });
    exit.into()
}
