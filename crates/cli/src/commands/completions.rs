//! `querymend completions`: what shells are told about the commands.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Print what a shell needs to complete commands and options
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend completions bash > ~/.local/share/bash-completion/completions/querymend
  querymend completions fish > ~/.config/fish/completions/querymend.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Does it.
pub fn run(completions: &Completions, mut command: Command, out: &mut Out) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut command, "querymend", &mut script);
    out.write(&script)?;
    Ok(Exit::Done)
}
