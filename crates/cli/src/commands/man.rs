//! `querymend man`: manual pages, generated from the command definitions.

use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::error::{CliError, ExitStatus};
use crate::output::Out;

/// Print a manual page, or write all of them to a folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend man check | man -l -
  querymend man model pull
  querymend man --into ~/.local/share/man/man1")]
pub struct ManCommand {
    /// Command to document [default: querymend itself]
    #[arg(num_args = 0..)]
    pub command: Vec<String>,
    /// Folder to write a page for every command to (querymend.1, querymend-ask.1, …); created if it
    /// does not exist
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub into: Option<PathBuf>,
}

/// Runs `querymend man`.
pub fn run(man: &ManCommand, command: Command, out: &mut Out) -> Result<ExitStatus, CliError> {
    // Every command has a `help` subcommand; pages for these would be useless.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default().to_string();
    if let Some(folder) = &man.into {
        let unwritable = |path: &Path, error: std::io::Error| {
            CliError::new(format!("{} cannot be written: {error}", path.display()))
                .hint("check the path and its permissions")
        };
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        let mut waiting = vec![command];
        let mut written = 0;
        while let Some(command) = waiting.pop() {
            waiting.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
            let (name, text) = render_page(command, &version)?;
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| unwritable(&path, error))?;
            written += 1;
        }
        out.note(&format!("wrote {written} pages into {}", folder.display()));
        return Ok(ExitStatus::Success);
    }
    let mut found = &command;
    for name in &man.command {
        found = found.find_subcommand(name).ok_or_else(|| {
            CliError::new(format!("there is no command `{}`", man.command.join(" ")))
                .hint("`querymend --help` lists them")
        })?;
    }
    let (_, text) = render_page(found.clone(), &version)?;
    out.write(&text)?;
    Ok(ExitStatus::Success)
}

/// Renders a page; returns its file name and content.
fn render_page(command: Command, version: &str) -> Result<(String, Vec<u8>), CliError> {
    let page = clap_mangen::Man::new(command).source(format!("querymend {version}")).manual("Querymend");
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| CliError::new(format!("the page cannot be written: {error}")))?;
    Ok((page.get_filename(), text))
}
