//! `querymend trace`: past runs, attempt by attempt.

use std::path::PathBuf;

use clap::Args;
use querymend::{Config, TraceStore};
use serde_json::{Value, json};

use crate::error::{CliError, ExitStatus};
use crate::output::answer::status_label;
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, pluralize};
use crate::output::{Out, OutputFormat, trace_view};
use crate::{state_dir, uuid_time};

/// List past runs of ask and chat, or show one attempt by attempt
#[derive(Debug, Args)]
#[command(
    name = "trace",
    after_help = "Examples:
  querymend trace
  querymend trace last
  querymend trace 0199f3 --format json

Times are in UTC. The last 100 runs are saved, and as many of batches; `trace` in querymend.yaml changes how many and where.
Exit codes: 0 shown, 2 failed."
)]
pub struct TraceCommand {
    /// Run to show: its id, a prefix of it, or `last` [default: list all runs]
    pub id: Option<String>,
    /// List the runs of `ask --batch` instead
    #[arg(long, conflicts_with = "id")]
    pub batch: bool,
    /// Output format; json prints the events of a run in chronological order
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
    /// Configuration with the folder of traces [default: querymend.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Runs `querymend trace`.
pub fn run(show: &TraceCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = match &show.config {
        Some(file) => Config::read(file)?,
        None => Config::load()?,
    };
    match &show.id {
        None => {
            let (traces, ids) = list_ids(if show.batch {
                state_dir::batch_trace_store(&config)
            } else {
                state_dir::trace_store(&config)
            })?;
            write_list(&traces, &ids, show.format, out)?;
        }
        Some(id) => {
            let events = find_trace(&config, id)?;
            match show.format {
                OutputFormat::Text => out.write(trace_view::render_trace(&events).as_bytes())?,
                OutputFormat::Json => out.json(&to_pretty_json(&events)?)?,
            }
        }
    }
    Ok(ExitStatus::Success)
}

fn list_ids(traces: Option<TraceStore>) -> Result<(TraceStore, Vec<String>), CliError> {
    let traces = traces.ok_or_else(state_dir::no_state_dir)?;
    let ids = traces.ids().map_err(|error| read_error(&error))?;
    Ok((traces, ids))
}

/// Returns the events of the run with this id or id prefix, or of the `last` run.
pub fn find_trace(config: &Config, id: &str) -> Result<Vec<Value>, CliError> {
    let (traces, mut ids) = list_ids(state_dir::trace_store(config))?;
    let id = if id == "last" { ids.last().cloned().unwrap_or(id.to_string()) } else { id.to_string() };
    let (of_batches, more) = list_ids(state_dir::batch_trace_store(config))?;
    let id = id.as_str();
    for traces in [traces, of_batches] {
        if let Some(events) = traces.read(id).map_err(|error| read_error(&error))? {
            return Ok(events);
        }
    }
    ids.extend(more);
    let alike = ids.iter().filter(|known| known.starts_with(id)).count();
    Err(match alike {
        0 if ids.is_empty() => {
            CliError::new("there are no saved runs").hint("`querymend ask` and `querymend chat` save their runs")
        }
        0 => CliError::new(format!("there is no saved run `{}`", one_line(id)))
            .hint("`querymend trace` lists all saved runs"),
        n => CliError::new(format!("{n} runs begin with `{}`", one_line(id))).hint("type more of the id"),
    })
}

/// Writes the list of runs, newest first.
fn write_list(traces: &TraceStore, ids: &[String], format: OutputFormat, out: &mut Out) -> Result<(), CliError> {
    let mut runs = Vec::new();
    for id in ids.iter().rev() {
        // Another process may have pruned the run in the meantime.
        let events = traces.read(id).ok().flatten().unwrap_or_default();
        let find = |kind: &str| events.iter().find(|event| event["event"] == kind);
        let (Some(started), answer) = (find("started"), find("finished").map(|event| &event["answer"])) else {
            continue;
        };
        let of = |key: &str| answer.map_or(Value::Null, |answer| answer[key].clone());
        let attempts = of("attempts").as_array().map_or(0, Vec::len);
        runs.push(json!({
            "id": id, "began": uuid_time::uuid_timestamp(id), "status": of("status"), "attempts": attempts,
            "database": started["database"], "model": started["model"], "question": started["question"],
            "sql": of("sql"),
        }));
    }
    match format {
        OutputFormat::Json => out.json(&to_pretty_json(&runs)?)?,
        OutputFormat::Text => {
            for run in &runs {
                let text = |key: &str| one_line(run[key].as_str().unwrap_or_default());
                let question: String = text("question").chars().take(100).collect();
                let (began, status) = (text("began"), text("status"));
                out.line(&format!("{}  {began:20}  {:19}  {question}", text("id"), status_label(&status)))?;
            }
            out.flush()?;
            out.note(&pluralize(runs.len(), "run"));
        }
    }
    Ok(())
}

fn read_error(error: &std::io::Error) -> CliError {
    CliError::new(format!("past runs cannot be read: {error}"))
        .hint("check the folder `trace.folder` and its permissions")
}
