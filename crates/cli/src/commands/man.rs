//! `querymend man`: manual pages, made from what the commands say about themselves.

use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Print a manual page, or write all of them into a folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend man check | man -l -
  querymend man model pull
  querymend man --into ~/.local/share/man/man1")]
pub struct Man {
    /// The command it is about [default: all of querymend]
    #[arg(num_args = 0..)]
    pub command: Vec<String>,
    /// Folder that gets a page for every command, querymend.1, querymend-ask.1 and so on; it is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub into: Option<PathBuf>,
}

/// Does it.
pub fn run(man: &Man, command: Command, out: &mut Out) -> Result<Exit, Failure> {
    // Every command has `help`; a page for each of these would say nothing.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default().to_string();
    if let Some(folder) = &man.into {
        let unwritable = |path: &Path, error: std::io::Error| {
            Failure::new(format!("{} cannot be written: {error}", path.display())).hint("check the path and the rights")
        };
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        let mut waiting = vec![command];
        let mut written = 0;
        while let Some(command) = waiting.pop() {
            waiting.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
            let (name, text) = page(command, &version)?;
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| unwritable(&path, error))?;
            written += 1;
        }
        out.note(&format!("wrote {written} pages into {}", folder.display()));
        return Ok(Exit::Done);
    }
    let mut found = &command;
    for name in &man.command {
        found = found.find_subcommand(name).ok_or_else(|| {
            Failure::new(format!("there is no command `{}`", man.command.join(" ")))
                .hint("`querymend --help` lists them")
        })?;
    }
    let (_, text) = page(found.clone(), &version)?;
    out.write(&text)?;
    Ok(Exit::Done)
}

/// The name of a page's file, and the page.
fn page(command: Command, version: &str) -> Result<(String, Vec<u8>), Failure> {
    let page = clap_mangen::Man::new(command).source(format!("querymend {version}")).manual("Querymend");
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Failure::new(format!("the page cannot be written: {error}")))?;
    Ok((page.get_filename(), text))
}
