//! `querymend key`: API keys for `querymend serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use querymend::Config;
use querymend_server::auth::key_file::{self, ApiKeyRecord};
use serde_json::json;

use crate::error::{CliError, ExitStatus};
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, pluralize};
use crate::output::{Out, OutputFormat};

/// Create, list and revoke API keys for the server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend key new reports --role analyst --keys keys.jsonl
  querymend key list --keys keys.jsonl
  querymend key revoke reports --keys keys.jsonl

A key is shown only once, when it is created: the file contains its hash. Send it as
`Authorization: Bearer KEY` or `X-Api-Key: KEY`. A running server reloads the file when it changes.
Exit codes: 0 done, 1 the file has lines that cannot be parsed, 2 failed.")]
pub struct KeyCommand {
    #[command(subcommand)]
    pub action: KeyAction,
}

#[derive(Debug, Subcommand)]
pub enum KeyAction {
    /// Create a key and print it once
    New {
        /// User of the key; sessions, traces and the audit log identify it as `key:NAME`
        name: String,
        /// Role of the user, one of `server.roles` [default: `server.default_role`]
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
        /// Allow another key for a user that has one, for example to replace it
        #[arg(long)]
        another: bool,
        #[command(flatten)]
        key_file: KeyFileArgs,
    },
    /// List valid keys
    List {
        /// Output format of keys
        #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
        format: OutputFormat,
        #[command(flatten)]
        key_file: KeyFileArgs,
    },
    /// Revoke a key; a running server rejects it a second later
    Revoke {
        /// Id of a key, or name of a user, to revoke all of their keys
        which: String,
        #[command(flatten)]
        key_file: KeyFileArgs,
    },
}

/// Options that locate the key file.
#[derive(Debug, Args)]
pub struct KeyFileArgs {
    /// Key file [default: `server.auth.keys_file` of the configuration]
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Configuration with the key file and the roles [default: querymend.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Runs `querymend key`.
pub fn run(keys: &KeyCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    match &keys.action {
        KeyAction::New { name, role, another, key_file } => {
            let (file, config) = key_file.resolve()?;
            if let Some(role) = role {
                validate_role(role, &config, out)?;
            }
            let key = key_file::create(&file, name, role.as_deref(), *another)?;
            out.line(&key)?;
            out.flush()?;
            out.note("store it now; it will not be shown again");
        }
        KeyAction::List { format, key_file } => {
            let (file, _) = key_file.resolve()?;
            let listing = key_file::read(&file)?;
            write_keys(&listing.keys, *format, out)?;
            for line in &listing.invalid_lines {
                out.message(&format!(
                    "warning: line {line} of {} cannot be parsed; no server starts with it",
                    file.display()
                ));
            }
            if !listing.invalid_lines.is_empty() {
                out.note("hint: remove it from the file; if it was a key, create another with `querymend key new`");
                return Ok(ExitStatus::Refused);
            }
        }
        KeyAction::Revoke { which, key_file } => {
            let (file, _) = key_file.resolve()?;
            for key in key_file::revoke(&file, which)? {
                out.line(&format!("{}  {}", key.id, one_line(&key.name)))?;
            }
            out.flush()?;
            out.note("revoked");
        }
    }
    Ok(ExitStatus::Success)
}

impl KeyFileArgs {
    /// Returns the key file and the configuration.
    fn resolve(&self) -> Result<(PathBuf, Config), CliError> {
        let config = match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::load()?,
        };
        let named = config.server.auth.as_ref().and_then(|auth| auth.keys_file.clone());
        let file = self.keys.clone().or(named).ok_or_else(|| {
            CliError::new("no key file is configured")
                .hint("name a file with --keys, or `server.auth.keys_file` in querymend.yaml")
        })?;
        Ok((file, config))
    }
}

/// Checks that a role exists: a key with an unknown role could not sign in.
///
/// If the configuration has no roles, the server's configuration may be elsewhere, so this is only
/// a note.
fn validate_role(role: &str, config: &Config, out: &Out) -> Result<(), CliError> {
    let roles = &config.server.roles;
    if roles.is_empty() {
        let role = one_line(role);
        out.note(&format!("note: no roles are configured here, so the role `{role}` cannot be checked"));
        return Ok(());
    }
    if roles.contains_key(role) {
        return Ok(());
    }
    let known: Vec<&str> = roles.keys().map(String::as_str).collect();
    Err(CliError::new(format!("there is no role `{role}`")).hint(format!("`server.roles` has {}", known.join(", "))))
}

fn write_keys(keys: &[ApiKeyRecord], format: OutputFormat, out: &mut Out) -> Result<(), CliError> {
    match format {
        OutputFormat::Json => {
            let to_json =
                |key: &ApiKeyRecord| json!({"id": key.id, "name": key.name, "role": key.role, "made": key.made});
            out.json(&to_pretty_json(&keys.iter().map(to_json).collect::<Vec<_>>())?)?;
        }
        OutputFormat::Text => {
            for key in keys {
                let role = key.role.as_deref().unwrap_or("-");
                out.line(&format!("{}  {}  {}", key.id, one_line(&key.name), one_line(role)))?;
            }
            out.flush()?;
            out.note(&pluralize(keys.len(), "key"));
        }
    }
    Ok(())
}
