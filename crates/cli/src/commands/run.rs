//! `querymend run`: a review, then the rows, read-only and within limits.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use querymend::{Config, refusal};
use querymend_engine::{Cancel, Engine, Error, Limits};
use querymend_sql::{Approved, Context, EngineError, Finding, Rows, Severity, inspect, review};

use crate::against::tell_idle;
use crate::commands::check::summary;
use crate::failure::{Exit, Failure};
use crate::input::{self, Text};
use crate::out::Out;
use crate::setup::Database;
use crate::{answer, render, table};

/// Review a query, then run it read-only and print the rows
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend run --db shop.db query.sql
  querymend run --db shop.db --sql 'SELECT count(*) FROM products' --format csv
  querymend run --db shop.db --dry-run query.sql

Rows go to stdout, everything else to stderr: what is odd about the query before them, what is odd about the rows after them.
Exit codes: 0 answered, 1 refused by the review or the database, 2 could not be done, 130 stopped with Ctrl-C.")]
pub struct Run {
    /// File with the SQL, or `-` for stdin [default: stdin when it is piped]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub database: Database,
    /// The SQL itself
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub sql: Option<String>,
    /// How rows are written
    #[arg(long, value_enum, default_value_t = table::Format::Table)]
    pub format: table::Format,
    /// Stop after so many rows [default: `limits.rows` of querymend.yaml, else 10000]
    #[arg(long, value_name = "N")]
    pub max_rows: Option<usize>,
    /// Stop after so many bytes of rows [default: `limits.bytes` of querymend.yaml, else 67108864]
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<usize>,
    /// Stop after so many seconds, or a time such as 500ms, 30s or 2m [default: `limits.time` of querymend.yaml, else 30]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub timeout: Option<Duration>,
    /// House rules besides those of querymend.yaml: tables, functions, comments, sizes (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Review it and let the database prepare it, print the SQL that would be sent, and stop there
    #[arg(long)]
    pub dry_run: bool,
}

/// Seconds, or a number with a unit as the configuration has it.
fn time(text: &str) -> Result<Duration, String> {
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

impl Run {
    /// How far the query may go.
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

/// Does it.
pub fn run(run: &Run, out: &mut Out) -> Result<Exit, Failure> {
    let config = input::config(run.policy.as_deref())?;
    let policy = &config.policy;
    let text = input::sql(run.file.as_deref(), run.sql.as_deref())?;
    let engine = run.database.open(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("no thread can be started: {error}")))?;
    let schema = runtime.block_on(engine.schema())?;
    tell_idle(policy, &schema, out);
    let schema = policy.readable(schema);
    let context = Context { schema: Some(&schema), dialect: engine.dialect(), policy, question: None };
    let review = review(&text.text, &context);
    let approved = match review.approve() {
        Ok(approved) if review.is_clean() => approved,
        _ => {
            show(&text, &review.findings, out);
            out.note(&summary(&review));
            if let Some(hint) = render::more(&review.findings, true) {
                out.note(&hint);
            }
            return Ok(Exit::Refused);
        }
    };
    let doubts: Vec<Finding> = review.findings.iter().filter(|f| f.severity == Severity::Warning).cloned().collect();
    show(&text, &doubts, out);
    out.detail(&format!("sent to {}: {}", engine.name(), approved.sql()));

    if run.dry_run {
        return match runtime.block_on(engine.probe(&approved)) {
            Ok(()) => {
                out.line(approved.sql())?;
                out.note("dry run: the database would run this");
                Ok(Exit::Done)
            }
            Err(error) => rejected(error, &approved, &*engine, out),
        };
    }
    let outcome = runtime.block_on(execute(&*engine, &approved, &run.limits(&config)));
    // A query that does not let itself be stopped must not keep the program.
    runtime.shutdown_background();
    match outcome {
        Ok(rows) => {
            write_rows(&rows, run.format, out)?;
            // Of rows that were cut off nobody knows whether there are none, or only one.
            let odd = if rows.truncated { Vec::new() } else { inspect(&review, &rows, &context) };
            // It is the rows that are odd: there is no place in the query to point at.
            if !odd.is_empty() {
                out.say(&render::findings(engine.name(), "", &odd, out.color_stderr));
            }
            Ok(Exit::Done)
        }
        Err(error) => rejected(error, &approved, &*engine, out),
    }
}

/// Runs the query until it is done or Ctrl-C is pressed; a second Ctrl-C does not wait for the database.
async fn execute(engine: &dyn Engine, query: &Approved, limits: &Limits) -> Result<Rows, Error> {
    let cancel = Cancel::new();
    let mut answer = pin!(engine.execute(query, limits, &cancel));
    tokio::select! {
        outcome = &mut answer => return outcome,
        pressed = tokio::signal::ctrl_c() => {
            if pressed.is_err() {
                // Without a handler the system stops the program itself.
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

fn write_rows(rows: &Rows, format: table::Format, out: &mut Out) -> Result<(), Failure> {
    let (text, cut) = table::write(rows, format)?;
    out.rows(&text, format)?;
    out.flush()?;
    answer::tell_rows(rows, cut, "--max-rows and --max-bytes raise them", out);
    Ok(())
}

/// What the database said, with what it means.
fn rejected(error: Error, approved: &Approved, engine: &dyn Engine, out: &Out) -> Result<Exit, Failure> {
    let sql = approved.sql();
    let (finding, placed) = match &error {
        Error::Cancelled => {
            out.say("stopped");
            return Ok(Exit::Interrupted);
        }
        Error::Rejected(said) => (refusal::finding(said, sql, engine.dialect()), said.position.is_some()),
        Error::TimedOut { .. } => {
            let said = EngineError { message: error.to_string(), ..EngineError::default() };
            (refusal::named("timed-out", &said, sql, ""), false)
        }
        Error::StepLimit { .. } | Error::Unavailable { .. } | Error::WrongDialect { .. } | Error::Internal(_) => {
            return Err(error.into());
        }
    };
    let name = engine.name();
    // Without a place there is nothing to point at.
    let shown = if placed { sql } else { "" };
    let found = [finding];
    out.say(&render::findings(name, shown, &found, out.color_stderr));
    let own = error.hint().map(|hint| format!("hint: {hint}"));
    if let Some(hint) = own.or_else(|| render::more(&found, true)) {
        out.say(&hint);
    }
    Ok(Exit::Refused)
}

fn show(text: &Text, findings: &[Finding], out: &Out) {
    if !findings.is_empty() {
        out.say(&render::findings(&text.name, &text.text, findings, out.color_stderr));
    }
}
