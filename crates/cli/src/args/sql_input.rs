//! SQL input of `check` and `fix`.

use std::path::PathBuf;

use clap::Args;
use querymend::Config;

use crate::args::schema_source::SchemaArgs;
use crate::error::CliError;
use crate::input::{self, SourceText};

/// Options shared by `check` and `fix`.
#[derive(Debug, Args)]
pub struct SqlInputArgs {
    /// File with the SQL, or `-` for stdin [default: stdin if it is piped]
    pub file: Option<PathBuf>,
    /// SQL text
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub sql: Option<String>,
    #[command(flatten)]
    pub schema_args: SchemaArgs,
    /// Access policy: allowed and denied tables and functions, comments, size limits (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

impl SqlInputArgs {
    /// Loads the configuration, with its policy intersected with the policy file.
    pub fn load_config(&self) -> Result<Config, CliError> {
        input::load_config(self.policy.as_deref())
    }

    /// Reads the SQL.
    pub fn read_sql(&self) -> Result<SourceText, CliError> {
        input::read_sql(self.file.as_deref(), self.sql.as_deref())
    }
}
