//! `querymend run`: reviews a query and runs it read-only, within limits.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use querymend::{Config, engine_finding};
use querymend_engine::{CancelFlag, Engine, Error, Limits};
use querymend_sql::{Approved, EngineError, Finding, ReviewContext, Rows, Severity, inspect_rows, review};

use crate::args::database::DatabaseArgs;
use crate::commands::check::verdict_summary;
use crate::deny_lists::warn_unmatched_denies;
use crate::error::{CliError, ExitStatus};
use crate::input::{self, SourceText};
use crate::output::{Out, answer, diagnostics, table};

/// Review a query, then run it read-only and print the rows
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend run --db shop.db query.sql
  querymend run --db shop.db --sql 'SELECT count(*) FROM products' --format csv
  querymend run --db shop.db --dry-run query.sql

Rows go to stdout, everything else to stderr: warnings about the query before the rows, warnings about the rows after them.
Exit codes: 0 answered, 1 refused by the review or the database, 2 failed, 130 stopped with Ctrl-C.")]
pub struct RunCommand {
    /// File with the SQL, or `-` for stdin [default: stdin if it is piped]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// SQL text
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub sql: Option<String>,
    /// Output format of rows
    #[arg(long, value_enum, default_value_t = table::ResultFormat::Table)]
    pub format: table::ResultFormat,
    /// Maximum number of rows [default: `limits.rows` of querymend.yaml, else 10000]
    #[arg(long, value_name = "N")]
    pub max_rows: Option<usize>,
    /// Maximum number of bytes of rows [default: `limits.bytes` of querymend.yaml, else 67108864]
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<usize>,
    /// Timeout in seconds, or with a unit, such as 500ms, 30s or 2m [default: `limits.time` of
    /// querymend.yaml, else 30]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Access policy in addition to that of querymend.yaml: tables, functions, comments, size
    /// limits (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Review the query, let the database prepare it, and print the SQL that would be sent, without
    /// running it
    #[arg(long)]
    pub dry_run: bool,
}

/// Parses a number of seconds, or a duration with a unit as in the configuration.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    if let Some(time) = querymend::config::duration::parse(text) {
        return Ok(time);
    }
    let wrong = || format!("`{text}` is neither a number of seconds nor a time such as 500ms, 30s or 2m");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("the time must be more than 0 seconds".into()),
    }
}

impl RunCommand {
    /// Returns the limits of the configuration, overridden by the options.
    fn limits(&self, config: &Config) -> Limits {
        let usual = config.limits();
        Limits {
            rows: self.max_rows.unwrap_or(usual.rows),
            bytes: self.max_bytes.unwrap_or(usual.bytes),
            time: self.timeout.unwrap_or(usual.time),
            ..usual
        }
    }
}

/// Runs `querymend run`.
pub fn run(run: &RunCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = input::load_config(run.policy.as_deref())?;
    let policy = &config.policy;
    let text = input::read_sql(run.file.as_deref(), run.sql.as_deref())?;
    let engine = run.database.open(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))?;
    let schema = runtime.block_on(engine.schema())?;
    warn_unmatched_denies(policy, &schema, out);
    let schema = policy.filter_schema(schema);
    let context = ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy, question: None };
    let review = review(&text.text, &context);
    let approved = match review.approve() {
        Ok(approved) if review.is_clean() => approved,
        _ => {
            show_findings(&text, &review.findings, out);
            out.note(&verdict_summary(&review));
            if let Some(hint) = diagnostics::explain_hint(&review.findings, true) {
                out.note(&hint);
            }
            return Ok(ExitStatus::Refused);
        }
    };
    let doubts: Vec<Finding> = review.findings.iter().filter(|f| f.severity == Severity::Warning).cloned().collect();
    show_findings(&text, &doubts, out);
    out.detail(&format!("sent to {}: {}", engine.name(), approved.sql()));

    if run.dry_run {
        return match runtime.block_on(engine.probe(&approved)) {
            Ok(()) => {
                out.line(approved.sql())?;
                out.note("dry run: the database accepts the query");
                Ok(ExitStatus::Success)
            }
            Err(error) => report_engine_error(error, &approved, &*engine, out),
        };
    }
    let outcome = runtime.block_on(execute_interruptible(&*engine, &approved, &run.limits(&config)));
    // A query that cannot be cancelled must not keep the process alive.
    runtime.shutdown_background();
    match outcome {
        Ok(rows) => {
            write_rows(&rows, run.format, out)?;
            // From truncated rows it is unknown whether the full result is empty or a single row.
            let odd = if rows.truncated { Vec::new() } else { inspect_rows(&review, &rows, &context) };
            // These findings are about the rows, so there is no span in the query to annotate.
            if !odd.is_empty() {
                out.message(&diagnostics::render_findings(engine.name(), "", &odd, out.color_stderr));
            }
            Ok(ExitStatus::Success)
        }
        Err(error) => report_engine_error(error, &approved, &*engine, out),
    }
}

/// Runs the query until it is done or cancelled by Ctrl-C; a second Ctrl-C does not wait for the
/// database.
async fn execute_interruptible(engine: &dyn Engine, query: &Approved, limits: &Limits) -> Result<Rows, Error> {
    let cancel = CancelFlag::new();
    let mut answer = pin!(engine.execute(query, limits, &cancel));
    tokio::select! {
        outcome = &mut answer => return outcome,
        pressed = tokio::signal::ctrl_c() => {
            if pressed.is_err() {
                // Without a handler, the default signal action terminates the process.
                return answer.await;
            }
            cancel.cancel();
        }
    }
    tokio::select! {
        outcome = answer => outcome,
        _ = tokio::signal::ctrl_c() => Err(Error::Cancelled),
    }
}

fn write_rows(rows: &Rows, format: table::ResultFormat, out: &mut Out) -> Result<(), CliError> {
    let (text, cut) = table::render_rows(rows, format)?;
    out.rows(&text, format)?;
    out.flush()?;
    answer::note_row_count(rows, cut, "--max-rows and --max-bytes raise them", out);
    Ok(())
}

/// Reports an error of the database as a finding.
fn report_engine_error(
    error: Error,
    approved: &Approved,
    engine: &dyn Engine,
    out: &Out,
) -> Result<ExitStatus, CliError> {
    let sql = approved.sql();
    let (finding, placed) = match &error {
        Error::Cancelled => {
            out.message("stopped");
            return Ok(ExitStatus::Interrupted);
        }
        Error::Rejected(engine_error) => {
            (engine_finding::from_error(engine_error, sql, engine.dialect()), engine_error.position.is_some())
        }
        Error::TimedOut { .. } => {
            let engine_error = EngineError { message: error.to_string(), ..EngineError::default() };
            (engine_finding::from_error_with_code("timed-out", &engine_error, sql, ""), false)
        }
        Error::StepLimit { .. } | Error::Unavailable { .. } | Error::WrongDialect { .. } | Error::Internal(_) => {
            return Err(error.into());
        }
    };
    let name = engine.name();
    // Without a position there is nothing to annotate.
    let shown = if placed { sql } else { "" };
    let found = [finding];
    out.message(&diagnostics::render_findings(name, shown, &found, out.color_stderr));
    let own = error.hint().map(|hint| format!("hint: {hint}"));
    if let Some(hint) = own.or_else(|| diagnostics::explain_hint(&found, true)) {
        out.message(&hint);
    }
    Ok(ExitStatus::Refused)
}

fn show_findings(text: &SourceText, findings: &[Finding], out: &Out) {
    if !findings.is_empty() {
        out.message(&diagnostics::render_findings(&text.name, &text.text, findings, out.color_stderr));
    }
}
