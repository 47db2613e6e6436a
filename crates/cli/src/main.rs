//! The `querymend` command.

mod against;
mod commands;
mod failure;
mod input;
mod lines;
mod out;
mod render;
mod sarif;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::check;
use crate::failure::Exit;
use crate::out::{Color, Out};

/// Finds and explains what is wrong with SQL before a database sees it, and runs only what is safe to run
#[derive(Debug, Parser)]
#[command(name = "querymend", version)]
struct Querymend {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
}

fn main() -> ExitCode {
    let querymend = Querymend::parse();
    let mut out = Out::new(querymend.color, querymend.quiet, querymend.verbose);
    let outcome = match &querymend.command {
        Command::Check(check) => check::run(check, &mut out),
    };
    let exit = outcome.and_then(|exit| out.flush().map(|()| exit)).unwrap_or_else(|failure| {
        out.flush().ok();
        out.error(&failure);
        Exit::Failed
    });
    exit.into()
}
