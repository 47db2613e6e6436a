//! `querymend completions`: shell completion scripts.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::{CliError, ExitStatus};
use crate::output::Out;

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend completions bash > ~/.local/share/bash-completion/completions/querymend
  querymend completions fish > ~/.config/fish/completions/querymend.fish")]
pub struct CompletionsCommand {
    /// Shell to complete for
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Runs `querymend completions`.
pub fn run(completions: &CompletionsCommand, mut command: Command, out: &mut Out) -> Result<ExitStatus, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut command, "querymend", &mut script);
    out.write(&script)?;
    Ok(ExitStatus::Success)
}
