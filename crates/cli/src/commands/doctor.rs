//! `querymend doctor`: checks a database connection before it is relied on.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use querymend::Config;
use querymend::linking::value_sampling;
use querymend_engine::{CheckStatus, Engine, HealthCheck};
use querymend_sql::{NotIndexed, NotIndexedReason, Schema, ValueIndex};
use serde_json::json;

use crate::args::database::DatabaseArgs;
use crate::args::schema_source::{describe_unindexed_column, unindexed_column_hint};
use crate::error::{CliError, ExitStatus};
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, pluralize};
use crate::output::{Out, OutputFormat};
use crate::runtime::build_runtime;
use crate::state_dir;

/// Check a database: connection, read-only locks, privileges of its user
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all checks passed or gave only warnings, 1 a check failed, 2 the command failed.

Examples:
  querymend doctor --db shop.db
  QUERYMEND_DB_PASSWORD=… querymend doctor --db postgres://reader@db.example/shop
  querymend doctor --dialect trino --db-host trino.example --db-user ana --catalog hive --schema sales")]
pub struct DoctorCommand {
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Configuration file [default: querymend.yaml in the current folder, else in the user's
    /// configuration folder]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Output format of checks
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
}

/// Runs `querymend doctor`.
pub fn run(doctor: &DoctorCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = match &doctor.config {
        Some(file) => Config::read(file)?,
        None => Config::load()?,
    };
    let config = state_dir::with_value_cache(config);
    let address = doctor.database.require_address(&config)?;
    let (name, dialect, checks) = match doctor.database.open_at(&address, &config) {
        Ok(engine) => {
            let checks = build_runtime()?.block_on(run_checks(&*engine, &config));
            (engine.name().to_string(), Some(engine.dialect().name), checks)
        }
        // A database that cannot be opened is a result of the check, not a failure of the command.
        Err(failure) => {
            let check = HealthCheck::failed("connection", failure.message, failure.hint.unwrap_or_default());
            (redact_address(&address), None, vec![check])
        }
    };
    match doctor.format {
        OutputFormat::Text => out.write(render_checks(&name, &checks).as_bytes())?,
        OutputFormat::Json => {
            let checks: Vec<_> = checks
                .iter()
                .map(|check| {
                    json!({"check": check.name, "standing": check_status_label(check.status), "seen": check.detail, "hint": check.hint})
                })
                .collect();
            out.json(&to_pretty_json(&json!({"database": name, "dialect": dialect, "checks": checks}))?)?;
        }
    }
    let works = checks.iter().all(|check| check.status != CheckStatus::Failed);
    Ok(if works { ExitStatus::Success } else { ExitStatus::Refused })
}

/// Redacts an address that could not be parsed. Only the scheme of a server URL is shown, since the
/// rest may contain a password.
fn redact_address(address: &str) -> String {
    match address.split_once("://") {
        Some((kind, _)) if !matches!(kind, "sqlite" | "file") => format!("{kind}://…"),
        _ => address.to_string(),
    }
}

/// Runs the checks of the engine, and checks that tables and values can be read.
async fn run_checks(engine: &dyn Engine, config: &Config) -> Vec<HealthCheck> {
    let mut checks = match engine.check_health().await {
        Ok(checks) => checks,
        Err(error) => {
            return vec![HealthCheck::failed("connection", error.to_string(), error.hint().unwrap_or_default())];
        }
    };
    let begun = Instant::now();
    let schema = engine.schema().await;
    checks.push(match &schema {
        Ok(schema) if schema.tables().is_empty() => HealthCheck::warning(
            "tables",
            "no table can be read",
            "name another database or schema, or grant its user SELECT",
        ),
        Ok(schema) => {
            let columns: usize = schema.tables().iter().map(|table| table.columns.len()).sum();
            let took = begun.elapsed().as_millis();
            let columns = pluralize(columns, "column");
            HealthCheck::passed("tables", format!("{} with {columns}, read in {took} ms", schema.tables().len()))
        }
        Err(error) => HealthCheck::failed("tables", error.to_string(), error.hint().unwrap_or_default()),
    });
    if let Some(schema) = schema.ok().filter(|schema| config.values.enabled && !schema.tables().is_empty()) {
        checks.push(check_values(engine, schema, config).await);
    }
    checks
}

/// Maximum number of unindexed columns to name.
const MAX_NAMED_COLUMNS: usize = 5;

/// Checks whether the values of all text columns can be indexed.
async fn check_values(engine: &dyn Engine, schema: Schema, config: &Config) -> HealthCheck {
    let begun = Instant::now();
    let schema = config.policy.filter_schema(schema);
    let values = value_sampling::load_or_sample(engine, &schema, &config.policy, &config.values).await;
    let took = begun.elapsed().as_millis();
    let indexed = format!("{}, in {took} ms", describe_index(&values));
    let left_out: Vec<&NotIndexed> =
        values.not_indexed().iter().filter(|column| column.reason != NotIndexedReason::Sensitive).collect();
    let Some(first) = left_out.first() else { return HealthCheck::passed("values", indexed) };
    let mut named: Vec<String> =
        left_out.iter().take(MAX_NAMED_COLUMNS).map(|column| describe_unindexed_column(column)).collect();
    if left_out.len() > MAX_NAMED_COLUMNS {
        named.push(format!("and {} more", left_out.len() - MAX_NAMED_COLUMNS));
    }
    HealthCheck::warning(
        "values",
        format!("{indexed}; not indexed: {}", named.join("; ")),
        unindexed_column_hint(first.reason),
    )
}

/// Formats the index as `12 columns indexed, 10 of them whole; 2 sensitive columns not read`.
fn describe_index(values: &ValueIndex) -> String {
    let whole = values.columns().iter().filter(|column| column.whole).count();
    let is_sensitive = |column: &&NotIndexed| column.reason == NotIndexedReason::Sensitive;
    let sensitive = values.not_indexed().iter().filter(is_sensitive).count();
    let indexed = pluralize(values.columns().len(), "column");
    format!("{indexed} indexed, {whole} of them completely; {} not read", pluralize(sensitive, "sensitive column"))
}

fn check_status_label(standing: CheckStatus) -> &'static str {
    match standing {
        CheckStatus::Passed => "ok",
        CheckStatus::Warning => "warning",
        CheckStatus::Failed => "error",
    }
}

fn render_checks(name: &str, checks: &[HealthCheck]) -> String {
    let width = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or_default();
    let mut text = format!("{}\n", one_line(name));
    for check in checks {
        let (word, what) = (check_status_label(check.status), check.name);
        text.push_str(&format!("  {word:7}  {what:width$}  {}\n", one_line(&check.detail)));
        if let Some(hint) = check.hint.as_deref().filter(|hint| !hint.is_empty()) {
            text.push_str(&format!("  {:7}  {:width$}  hint: {}\n", "", "", one_line(hint)));
        }
    }
    text
}
