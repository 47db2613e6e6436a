//! `querymend key`: keys by which programs sign in to `querymend serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use querymend::Config;
use querymend_server::gate::keyfile::{self, Record};
use serde_json::json;

use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::out::{Out, counted};
use crate::render::one_line;

/// How keys are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Make, list and revoke keys by which programs sign in to the server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend key new reports --role analyst --keys keys.jsonl
  querymend key list --keys keys.jsonl
  querymend key revoke reports --keys keys.jsonl

A key is shown once, when it is made: the file holds only what it can be checked with. It is sent as
`Authorization: Bearer KEY` or `X-Api-Key: KEY`. A server that runs reads the file again when it changes.
Exit codes: 0 done, 1 the list has lines that cannot be read, 2 could not be done.")]
pub struct Keys {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Make a key and show it, this one time
    New {
        /// Who uses it; sessions, traces and the audit log know them as `key:NAME`
        name: String,
        /// Their role, one of `server.roles` [default: `server.default_role`]
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
        /// One more key for somebody who has one, for example to replace it
        #[arg(long)]
        another: bool,
        #[command(flatten)]
        place: Place,
    },
    /// List the keys that are valid
    List {
        /// How they are listed
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke a key: a server that runs refuses it a second later
    Revoke {
        /// Its id, or the name of its user, whose keys are all revoked then
        which: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Where keys are kept.
#[derive(Debug, Args)]
pub struct Place {
    /// File of keys [default: `server.sign_in.keys_file` of the configuration]
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Configuration that says where keys are kept and which roles there are [default: querymend.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Does it.
pub fn run(keys: &Keys, out: &mut Out) -> Result<Exit, Failure> {
    match &keys.action {
        Action::New { name, role, another, place } => {
            let (file, config) = place.find()?;
            if let Some(role) = role {
                is_role(role, &config, out)?;
            }
            let key = keyfile::make(&file, name, role.as_deref(), *another).map_err(told)?;
            out.line(&key)?;
            out.flush()?;
            out.note("keep it: it is not shown again");
        }
        Action::List { format, place } => {
            let (file, _) = place.find()?;
            let listing = keyfile::read(&file).map_err(told)?;
            list(&listing.keys, *format, out)?;
            for line in &listing.broken {
                out.say(&format!(
                    "warning: line {line} of {} cannot be read; no server starts with it",
                    file.display()
                ));
            }
            if !listing.broken.is_empty() {
                out.note("hint: take it out of the file; if it was a key, make another with `querymend key new`");
                return Ok(Exit::Refused);
            }
        }
        Action::Revoke { which, place } => {
            let (file, _) = place.find()?;
            for key in keyfile::revoke(&file, which).map_err(told)? {
                out.line(&format!("{}  {}", key.id, one_line(&key.name)))?;
            }
            out.flush()?;
            out.note("revoked");
        }
    }
    Ok(Exit::Done)
}

impl Place {
    /// The file, with the configuration that there is.
    fn find(&self) -> Result<(PathBuf, Config), Failure> {
        let config = match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::load()?,
        };
        let named = config.server.sign_in.as_ref().and_then(|sign_in| sign_in.keys_file.clone());
        let file = self.keys.clone().or(named).ok_or_else(|| {
            Failure::new("nothing says where keys are kept")
                .hint("name a file with --keys, or `server.sign_in.keys_file` in querymend.yaml")
        })?;
        Ok((file, config))
    }
}

/// A role that is not there would let nobody in. Where the configuration of the server is elsewhere, nothing is known of them.
fn is_role(role: &str, config: &Config, out: &Out) -> Result<(), Failure> {
    let roles = &config.server.roles;
    if roles.is_empty() {
        let role = one_line(role);
        out.note(&format!("note: no roles are configured here, so nothing is known of the role `{role}`"));
        return Ok(());
    }
    if roles.contains_key(role) {
        return Ok(());
    }
    let known: Vec<&str> = roles.keys().map(String::as_str).collect();
    Err(Failure::new(format!("there is no role `{role}`")).hint(format!("`server.roles` has {}", known.join(", "))))
}

fn list(keys: &[Record], format: Format, out: &mut Out) -> Result<(), Failure> {
    match format {
        Format::Json => {
            let told = |key: &Record| json!({"id": key.id, "name": key.name, "role": key.role, "made": key.made});
            out.json(&pretty(&keys.iter().map(told).collect::<Vec<_>>())?)?;
        }
        Format::Text => {
            for key in keys {
                let role = key.role.as_deref().unwrap_or("-");
                out.line(&format!("{}  {}  {}", key.id, one_line(&key.name), one_line(role)))?;
            }
            out.flush()?;
            out.note(&counted(keys.len(), "key"));
        }
    }
    Ok(())
}

fn told(error: querymend_net::Error) -> Failure {
    Failure::new(error.message).hint(error.hint)
}
