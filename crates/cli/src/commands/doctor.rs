//! `querymend doctor`: looks a connection over before anybody relies on it.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use querymend::Config;
use querymend::context::values;
use querymend_engine::{Check, Engine, Standing};
use querymend_sql::{NotIndexed, NotIndexedReason, Schema, Values};
use serde_json::json;

use crate::against::{described, remedy};
use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::out::{Out, counted};
use crate::render::one_line;
use crate::setup::{Database, runtime};
use crate::state;

/// How what was found is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Look a database over: connection, read-only locks, the rights of its user
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 all is well or could only be safer, 1 something does not work, 2 the command could not be carried out.

Examples:
  querymend doctor --db shop.db
  QUERYMEND_DB_PASSWORD=… querymend doctor --db postgres://reader@db.example/shop
  querymend doctor --dialect trino --db-host trino.example --db-user ana --catalog hive --schema sales"
)]
pub struct Doctor {
    #[command(flatten)]
    pub database: Database,
    /// Configuration [default: querymend.yaml here, else in the user's configuration folder]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How what was found is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// Does it.
pub fn run(doctor: &Doctor, out: &mut Out) -> Result<Exit, Failure> {
    let config = match &doctor.config {
        Some(file) => Config::read(file)?,
        None => Config::load()?,
    };
    let config = state::with_value_cache(config);
    let address = doctor.database.must_have_address(&config)?;
    let (name, dialect, checks) = match doctor.database.open_at(&address, &config) {
        Ok(engine) => {
            let checks = runtime()?.block_on(examine(&*engine, &config));
            (engine.name().to_string(), Some(engine.dialect().name), checks)
        }
        // A database that is not there is what a doctor is asked about.
        Err(failure) => {
            let check = Check::bad("connection", failure.what, failure.hint.unwrap_or_default());
            (without_secrets(&address), None, vec![check])
        }
    };
    match doctor.format {
        Format::Text => out.write(as_text(&name, &checks).as_bytes())?,
        Format::Json => {
            let checks: Vec<_> = checks
                .iter()
                .map(|check| {
                    json!({"check": check.what, "standing": word(check.standing), "seen": check.seen, "hint": check.hint})
                })
                .collect();
            out.json(&pretty(&json!({"database": name, "dialect": dialect, "checks": checks}))?)?;
        }
    }
    let works = checks.iter().all(|check| check.standing != Standing::Bad);
    Ok(if works { Exit::Done } else { Exit::Refused })
}

/// An address that could not be made sense of. Of a server's only the kind is repeated: the rest may hold a password.
fn without_secrets(address: &str) -> String {
    match address.split_once("://") {
        Some((kind, _)) if !matches!(kind, "sqlite" | "file") => format!("{kind}://…"),
        _ => address.to_string(),
    }
}

/// What the engine finds, and whether its tables and their values can be read.
async fn examine(engine: &dyn Engine, config: &Config) -> Vec<Check> {
    let mut checks = match engine.examine().await {
        Ok(checks) => checks,
        Err(error) => return vec![Check::bad("connection", error.to_string(), error.hint().unwrap_or_default())],
    };
    let begun = Instant::now();
    let schema = engine.schema().await;
    checks.push(match &schema {
        Ok(schema) if schema.tables().is_empty() => Check::doubtful(
            "tables",
            "there are none that can be read",
            "name another database or schema, or have its user granted SELECT",
        ),
        Ok(schema) => {
            let columns: usize = schema.tables().iter().map(|table| table.columns.len()).sum();
            let took = begun.elapsed().as_millis();
            let columns = counted(columns, "column");
            Check::good("tables", format!("{} with {columns}, read in {took} ms", schema.tables().len()))
        }
        Err(error) => Check::bad("tables", error.to_string(), error.hint().unwrap_or_default()),
    });
    if let Some(schema) = schema.ok().filter(|schema| config.values.enabled && !schema.tables().is_empty()) {
        checks.push(examine_values(engine, schema, config).await);
    }
    checks
}

/// Columns that are named where some are not indexed.
const MAX_NAMED_COLUMNS: usize = 5;

/// Whether the values of all text columns can be indexed.
async fn examine_values(engine: &dyn Engine, schema: Schema, config: &Config) -> Check {
    let begun = Instant::now();
    let schema = config.policy.readable(schema);
    let values = values::load(engine, &schema, &config.policy, &config.values).await;
    let took = begun.elapsed().as_millis();
    let indexed = format!("{}, in {took} ms", describe_index(&values));
    let left_out: Vec<&NotIndexed> =
        values.not_indexed().iter().filter(|column| column.reason != NotIndexedReason::Sensitive).collect();
    let Some(first) = left_out.first() else { return Check::good("values", indexed) };
    let mut named: Vec<String> = left_out.iter().take(MAX_NAMED_COLUMNS).map(|column| described(column)).collect();
    if left_out.len() > MAX_NAMED_COLUMNS {
        named.push(format!("and {} more", left_out.len() - MAX_NAMED_COLUMNS));
    }
    Check::doubtful("values", format!("{indexed}; not indexed: {}", named.join("; ")), remedy(first.reason))
}

/// `12 columns indexed, 10 of them whole, 2 sensitive columns not read`.
fn describe_index(values: &Values) -> String {
    let whole = values.columns().iter().filter(|held| held.whole).count();
    let is_sensitive = |column: &&NotIndexed| column.reason == NotIndexedReason::Sensitive;
    let sensitive = values.not_indexed().iter().filter(is_sensitive).count();
    let indexed = counted(values.columns().len(), "column");
    format!("{indexed} indexed, {whole} of them whole; {} not read", counted(sensitive, "sensitive column"))
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Good => "ok",
        Standing::Doubtful => "warning",
        Standing::Bad => "error",
    }
}

fn as_text(name: &str, checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.what.chars().count()).max().unwrap_or_default();
    let mut text = format!("{}\n", one_line(name));
    for check in checks {
        let (word, what) = (word(check.standing), check.what);
        text.push_str(&format!("  {word:7}  {what:width$}  {}\n", one_line(&check.seen)));
        if let Some(hint) = check.hint.as_deref().filter(|hint| !hint.is_empty()) {
            text.push_str(&format!("  {:7}  {:width$}  hint: {}\n", "", "", one_line(hint)));
        }
    }
    text
}
