//! The query that `check` and `fix` are given, and what it is held against.

use std::path::PathBuf;

use clap::Args;
use querymend::Config;

use crate::against::Against;
use crate::failure::Failure;
use crate::input::{self, Text};

/// The options that both have.
#[derive(Debug, Args)]
pub struct Given {
    /// File with the SQL, or `-` for stdin [default: stdin when it is piped]
    pub file: Option<PathBuf>,
    /// The SQL itself
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub sql: Option<String>,
    #[command(flatten)]
    pub against: Against,
    /// House rules: tables and functions that may be used, comments, sizes (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

impl Given {
    /// The configuration, with the house rules that are named besides its own.
    pub fn config(&self) -> Result<Config, Failure> {
        input::config(self.policy.as_deref())
    }

    /// The SQL.
    pub fn text(&self) -> Result<Text, Failure> {
        input::sql(self.file.as_deref(), self.sql.as_deref())
    }
}
