//! `querymend run`: a review, then the rows, read-only and within limits.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use querymend::{Config, refusal};
use querymend_engine::{Cancel, Engine, Error, Limits, open};
use querymend_sql::{Approved, Context, EngineError, Finding, Rows, Severity, inspect, review};

use crate::against::tell_idle;
use crate::commands::check::summary;
use crate::failure::{Exit, Failure};
use crate::input::{self, Text};
use crate::out::Out;
use crate::{render, table};

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
    /// Database to ask: a file, a folder of files, or an address such as postgres://USER@HOST/NAME
    #[arg(long, value_name = "URL")]
    pub db: String,
    /// The SQL itself
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub sql: Option<String>,
    /// How rows are written
    #[arg(long, value_enum, default_value_t = table::Format::Table)]
    pub format: table::Format,
    /// Stop after so many rows
    #[arg(long, value_name = "N", default_value_t = Limits::default().rows)]
    pub max_rows: usize,
    /// Stop after so many bytes of rows
    #[arg(long, value_name = "N", default_value_t = Limits::default().bytes)]
    pub max_bytes: usize,
    /// Stop after so many seconds
    #[arg(long, value_name = "SECS", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,
    /// House rules besides those of querymend.yaml: tables, functions, comments, sizes (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Review it and let the database prepare it, print the SQL that would be sent, and stop there
    #[arg(long)]
    pub dry_run: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("the time must be more than 0 seconds".into()),
    }
}

/// Does it.
pub fn run(run: &Run, out: &mut Out) -> Result<Exit, Failure> {
    let config = Config::load()?;
    let policy = input::policy(run.policy.as_deref())?;
    let text = input::sql(run.file.as_deref(), run.sql.as_deref())?;
    let engine = open(&run.db)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("no thread can be started: {error}")))?;
    let schema = runtime.block_on(engine.schema())?;
    tell_idle(&policy, &schema, out);
    let schema = policy.readable(schema);
    let context = Context { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
    let review = review(&text.text, &context);
    let approved = match review.approve() {
        Ok(approved) if review.is_clean() => approved,
        _ => {
            show(&text, &review.findings, out);
            out.note(&summary(&review));
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
    let limits = Limits { rows: run.max_rows, bytes: run.max_bytes, time: run.timeout, ..config.limits() };
    let outcome = runtime.block_on(execute(&*engine, &approved, &limits));
    // A query that does not let itself be stopped must not keep the program.
    runtime.shutdown_background();
    match outcome {
        Ok(rows) => {
            let exit = answer(&rows, run.format, out)?;
            // It is the rows that are odd: there is no place in the query to point at.
            let odd = inspect(&review, &rows, &context);
            if !odd.is_empty() {
                out.say(&render::findings(engine.name(), "", &odd, out.color_stderr));
            }
            Ok(exit)
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

fn answer(rows: &Rows, format: table::Format, out: &mut Out) -> Result<Exit, Failure> {
    let (text, cut) = table::write(rows, format)?;
    out.rows(&text, format)?;
    out.flush()?;
    let count = rows.rows.len();
    out.note(&format!("{count} {}", if count == 1 { "row" } else { "rows" }));
    if rows.truncated {
        out.say("warning: the answer is truncated: there are more rows than the limits allow");
        out.note("hint: --max-rows and --max-bytes raise them");
    }
    if cut {
        out.note("note: long values are cut short; --format json shows them whole");
    }
    Ok(Exit::Done)
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
        Error::Unavailable { .. } | Error::WrongDialect { .. } | Error::Internal(_) => return Err(error.into()),
    };
    let code = finding.code;
    let name = engine.name();
    // Without a place there is nothing to point at.
    let shown = if placed { sql } else { "" };
    out.say(&render::findings(name, shown, &[finding], out.color_stderr));
    let hint = error.hint().map_or_else(|| format!("`querymend explain {code}` says more"), str::to_string);
    out.say(&format!("hint: {hint}"));
    Ok(Exit::Refused)
}

fn show(text: &Text, findings: &[Finding], out: &Out) {
    if !findings.is_empty() {
        out.say(&render::findings(&text.name, &text.text, findings, out.color_stderr));
    }
}
