//! `querymend completions` and `querymend man`: what shells and `man` are told about the commands.

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

/// Print a manual page
#[derive(Debug, Args)]
pub struct Man {
    /// The command it is about [default: all of querymend]
    pub command: Option<String>,
}

/// Does it.
pub fn man(man: &Man, mut command: Command, out: &mut Out) -> Result<Exit, Failure> {
    command.build();
    let page = match &man.command {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            found.ok_or_else(|| {
                Failure::new(format!("there is no command `{name}`")).hint("`querymend --help` lists them")
            })?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .map_err(|error| Failure::new(format!("the page cannot be written: {error}")))?;
    out.write(&text)?;
    Ok(Exit::Done)
}
