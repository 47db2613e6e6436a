//! `querymend memory`: manages the example store.

mod actions;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use querymend::Config;
use querymend_memory::{Provenance, VerificationStatus};

use self::actions::MemoryActions;
use crate::args::database::DatabaseArgs;
use crate::args::memory;
use crate::error::{CliError, ExitStatus};
use crate::output::{Out, OutputFormat};
use crate::runtime::build_runtime;

/// List, search, verify, import and export remembered questions with their queries
#[derive(Debug, Args)]
#[command(
    name = "memory",
    after_help = "Examples:
  querymend memory seed examples.yaml --db shop.db
  querymend memory search 'orders of last year' --db shop.db
  querymend memory list --standing unverified
  querymend memory approve 3f2a
  querymend memory verify --db shop.db

Similar questions are shown to the model with their queries, as few-shot examples. A question that was asked before is answered
from memory, without a model, if its query is verified and still matches the schema. `chat` saves answers that were not rejected
as unverified.
Exit codes: 0 done, 1 verify found stale examples, 2 failed."
)]
pub struct MemoryCommand {
    #[command(subcommand)]
    action: MemoryAction,
    /// Memory of answers: a file, chroma://HOST:PORT/COLLECTION or postgres://… [default: memory.db
    /// in the state folder]
    #[arg(long, value_name = "STORE", global = true)]
    store: Option<String>,
    /// Configuration file [default: querymend.yaml in the current folder, else in the user's
    /// configuration folder]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, global = true)]
    format: OutputFormat,
}

#[derive(Debug, Subcommand)]
enum MemoryAction {
    List(ListExamplesArgs),
    Show(ShowExampleArgs),
    Search(SearchExamplesArgs),
    /// Mark examples as correct, so that they may answer questions without a model
    Approve(ExampleIdsArgs),
    /// Mark examples as wrong, so that they are neither used nor captured again
    Reject(ExampleIdsArgs),
    /// Remove examples
    Remove(ExampleIdsArgs),
    Seed(SeedExamplesArgs),
    Export(ExportExamplesArgs),
    Verify(VerifyExamplesArgs),
    /// Count examples by standing, provenance and database
    Stats,
}

/// List examples, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend memory list --standing unverified\n  querymend memory list --db shop.db --limit 20"
)]
struct ListExamplesArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Only examples with this standing
    #[arg(long, value_name = "STANDING", value_parser = parse_verification_status)]
    standing: Option<VerificationStatus>,
    /// Only examples with this provenance
    #[arg(long, value_name = "PROVENANCE", value_parser = parse_provenance)]
    provenance: Option<Provenance>,
    /// Maximum number of examples to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show one example in full
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend memory show 3f2a")]
struct ShowExampleArgs {
    /// Id of the example, or a prefix of it
    id: String,
}

/// Find the examples that would be shown to a model for a question
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend memory search 'orders of last year' --db shop.db")]
struct SearchExamplesArgs {
    /// Question to search for
    question: String,
    #[command(flatten)]
    database: DatabaseArgs,
    /// Maximum number of examples to return
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
}

/// Mark examples as correct or wrong, or remove them
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend memory approve 3f2a 90bc\n  querymend memory reject 3f2a\n  querymend memory remove 3f2a"
)]
struct ExampleIdsArgs {
    /// Ids of the examples, or prefixes of them
    #[arg(required = true)]
    ids: Vec<String>,
}

/// Import a file of questions with their queries
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend memory seed examples.yaml --db shop.db
  querymend memory seed spider.csv --dialect sqlite

The file is YAML, JSON, JSON lines or CSV; each entry has `question` and one of `expected_sql`, `sql`, `query`, and may have
`database`, `dialect` and `metric`. Each query is reviewed first, against the schema if a database is given: queries that
cannot run or that write are not imported.
A file with an error is rejected as a whole.")]
struct SeedExamplesArgs {
    /// File to import
    file: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Export examples in the format that `seed` imports
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend memory export > examples.yaml\n  querymend memory export --db shop.db --out shop.yaml"
)]
struct ExportExamplesArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// File to write, in the format of its extension (.yaml, .json, .jsonl, .csv) [default: stdout,
    /// as YAML]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Review each query against the current schema; queries that do not match are marked stale and not
/// used
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend memory verify --db shop.db")]
struct VerifyExamplesArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

fn parse_verification_status(word: &str) -> Result<VerificationStatus, String> {
    let names = || VerificationStatus::ALL.map(VerificationStatus::name).join(", ");
    VerificationStatus::ALL
        .into_iter()
        .find(|known| known.name() == word)
        .ok_or_else(|| format!("it is one of {}", names()))
}

fn parse_provenance(word: &str) -> Result<Provenance, String> {
    let names = || Provenance::ALL.map(Provenance::name).join(", ");
    Provenance::ALL.into_iter().find(|known| known.name() == word).ok_or_else(|| format!("it is one of {}", names()))
}

/// Runs `querymend memory`.
pub fn run(memories: &MemoryCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = match &memories.config {
        Some(file) => Config::read(file)?,
        None => Config::load()?,
    };
    let runtime = build_runtime()?;
    let store = runtime.block_on(memory::open_store(memories.store.as_deref(), &config))?;
    let mut actions = MemoryActions { store, runtime, config, format: memories.format, out };
    match &memories.action {
        MemoryAction::List(list) => actions.list(list),
        MemoryAction::Show(show) => actions.show(show),
        MemoryAction::Search(search) => actions.search(search),
        MemoryAction::Approve(ids) => actions.set_status(ids, VerificationStatus::Verified),
        MemoryAction::Reject(ids) => actions.set_status(ids, VerificationStatus::Rejected),
        MemoryAction::Remove(ids) => actions.remove(ids),
        MemoryAction::Seed(seed) => actions.seed(seed),
        MemoryAction::Export(export) => actions.export(export),
        MemoryAction::Verify(verify) => actions.verify(verify),
        MemoryAction::Stats => actions.stats(),
    }
}
