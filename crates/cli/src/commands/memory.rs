//! `querymend memory`: what is remembered of answers.

mod desk;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use querymend::Config;
use querymend_memory::{Provenance, Standing};

use self::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::remember;
use crate::setup::{Database, runtime};

/// List, search, judge and exchange the questions that are remembered with their queries
#[derive(Debug, Args)]
#[command(
    name = "memory",
    after_help = "Examples:
  querymend memory seed examples.yaml --db shop.db
  querymend memory search 'orders of last year' --db shop.db
  querymend memory list --standing unverified
  querymend memory approve 3f2a
  querymend memory verify --db shop.db

Questions that are like the one asked are shown to the model with their queries. One that was asked before is answered from
memory, without a model, if its query is verified and still fits the tables. `chat` keeps answers that nobody complained about as
unverified.
Exit codes: 0 done, 1 verify found stale examples, 2 could not be done."
)]
pub struct Memories {
    #[command(subcommand)]
    what: What,
    /// Memory of answers: a file, chroma://HOST:PORT/COLLECTION or postgres://… [default: memory.db in the state folder]
    #[arg(long, value_name = "STORE", global = true)]
    store: Option<String>,
    /// Configuration [default: querymend.yaml here, else in the user's configuration folder]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
    format: Format,
}

/// How examples are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Subcommand)]
enum What {
    List(List),
    Show(Show),
    Search(Search),
    /// Say that examples are right: they may answer by themselves
    Approve(Ids),
    /// Say that examples are wrong: they are not used, and not captured again
    Reject(Ids),
    /// Forget examples
    Remove(Ids),
    Seed(Seed),
    Export(Export),
    Verify(Verify),
    /// Count what is remembered, by standing, origin and database
    Stats,
}

/// List what is remembered, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend memory list --standing unverified\n  querymend memory list --db shop.db --limit 20"
)]
struct List {
    #[command(flatten)]
    database: Database,
    /// Only examples of this standing
    #[arg(long, value_name = "STANDING", value_parser = standing)]
    standing: Option<Standing>,
    /// Only examples that came from here
    #[arg(long, value_name = "PROVENANCE", value_parser = provenance)]
    provenance: Option<Provenance>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show one example whole
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend memory show 3f2a")]
struct Show {
    /// Its id, or the beginning of it
    id: String,
}

/// Find the examples that a model would be shown for a question
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend memory search 'orders of last year' --db shop.db")]
struct Search {
    /// The question
    question: String,
    #[command(flatten)]
    database: Database,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
}

/// Say that examples are right, are wrong, or are to be forgotten
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend memory approve 3f2a 90bc\n  querymend memory reject 3f2a\n  querymend memory remove 3f2a"
)]
struct Ids {
    /// Their ids, or the beginnings of them
    #[arg(required = true)]
    ids: Vec<String>,
}

/// Take in a file of questions with their queries
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend memory seed examples.yaml --db shop.db
  querymend memory seed spider.csv --dialect sqlite

The file is YAML, JSON, JSON lines or CSV; each entry has `question` and one of `expected_sql`, `sql`, `query`, and may have
`database`, `dialect` and `metric`. Each query is reviewed first, against the tables where a database is named: what cannot be run, or
does more than read, is not taken in.
A file with a mistake in it is refused whole.")]
struct Seed {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    database: Database,
}

/// Write what is remembered, in the form that `seed` takes in
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend memory export > examples.yaml\n  querymend memory export --db shop.db --out shop.yaml"
)]
struct Export {
    #[command(flatten)]
    database: Database,
    /// File to write, in the form that its name says (.yaml, .json, .jsonl, .csv) [default: stdout, as YAML]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Review each query against the tables of today; those that do not fit are marked and no longer used
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend memory verify --db shop.db")]
struct Verify {
    #[command(flatten)]
    database: Database,
}

fn standing(word: &str) -> Result<Standing, String> {
    let names = || Standing::ALL.map(Standing::name).join(", ");
    Standing::ALL.into_iter().find(|known| known.name() == word).ok_or_else(|| format!("it is one of {}", names()))
}

fn provenance(word: &str) -> Result<Provenance, String> {
    let names = || Provenance::ALL.map(Provenance::name).join(", ");
    Provenance::ALL.into_iter().find(|known| known.name() == word).ok_or_else(|| format!("it is one of {}", names()))
}

/// Does it.
pub fn run(memories: &Memories, out: &mut Out) -> Result<Exit, Failure> {
    let config = match &memories.config {
        Some(file) => Config::read(file)?,
        None => Config::load()?,
    };
    let runtime = runtime()?;
    let store = runtime.block_on(remember::open(memories.store.as_deref(), &config))?;
    let mut desk = Desk { store, runtime, config, format: memories.format, out };
    match &memories.what {
        What::List(list) => desk.list(list),
        What::Show(show) => desk.show(show),
        What::Search(search) => desk.search(search),
        What::Approve(ids) => desk.judge(ids, Standing::Verified),
        What::Reject(ids) => desk.judge(ids, Standing::Rejected),
        What::Remove(ids) => desk.remove(ids),
        What::Seed(seed) => desk.seed(seed),
        What::Export(export) => desk.export(export),
        What::Verify(verify) => desk.verify(verify),
        What::Stats => desk.stats(),
    }
}
