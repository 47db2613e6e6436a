//! `querymend trace`: past runs, attempt by attempt.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use querymend::{Config, Traces};
use serde_json::{Value, json};

use crate::answer::ending;
use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::out::{Out, counted};
use crate::render::one_line;
use crate::{state, story, when};

/// How a run is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// The events, as they happened
    Json,
}

/// List past runs of ask and chat, or show one attempt by attempt
#[derive(Debug, Args)]
#[command(
    name = "trace",
    after_help = "Examples:
  querymend trace
  querymend trace last
  querymend trace 0199f3 --format json

Times are in UTC. The last 100 runs are kept, and as many of batches; `trace` in querymend.yaml changes how many and where.
Exit codes: 0 shown, 2 could not be done."
)]
pub struct ShowTrace {
    /// Run to show: its id or the beginning of it, or `last` [default: list all runs]
    pub id: Option<String>,
    /// List the runs of `ask --batch` instead
    #[arg(long, conflicts_with = "id")]
    pub batch: bool,
    /// How a run is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Configuration that says where runs are kept [default: querymend.yaml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Does it.
pub fn run(show: &ShowTrace, out: &mut Out) -> Result<Exit, Failure> {
    let config = match &show.config {
        Some(file) => Config::read(file)?,
        None => Config::load()?,
    };
    match &show.id {
        None => {
            let (traces, ids) = kept(if show.batch { state::batch_traces(&config) } else { state::traces(&config) })?;
            list(&traces, &ids, show.format, out)?;
        }
        Some(id) => {
            let events = find(&config, id)?;
            match show.format {
                Format::Text => out.write(story::tell(&events).as_bytes())?,
                Format::Json => out.json(&pretty(&events)?)?,
            }
        }
    }
    Ok(Exit::Done)
}

fn kept(traces: Option<Traces>) -> Result<(Traces, Vec<String>), Failure> {
    let traces = traces.ok_or_else(state::nowhere)?;
    let ids = traces.ids().map_err(|error| unreadable(&error))?;
    Ok((traces, ids))
}

/// The events of one run, by its id, the beginning of it, or `last`.
pub fn find(config: &Config, id: &str) -> Result<Vec<Value>, Failure> {
    let (traces, mut ids) = kept(state::traces(config))?;
    let id = if id == "last" { ids.last().cloned().unwrap_or(id.to_string()) } else { id.to_string() };
    let (of_batches, more) = kept(state::batch_traces(config))?;
    let id = id.as_str();
    for traces in [traces, of_batches] {
        if let Some(events) = traces.read(id).map_err(|error| unreadable(&error))? {
            return Ok(events);
        }
    }
    ids.extend(more);
    let alike = ids.iter().filter(|known| known.starts_with(id)).count();
    Err(match alike {
        0 if ids.is_empty() => Failure::new("no run is kept").hint("`querymend ask` and `querymend chat` keep theirs"),
        0 => Failure::new(format!("no run `{}` is kept", one_line(id))).hint("`querymend trace` lists those that are"),
        n => Failure::new(format!("{n} runs begin with `{}`", one_line(id))).hint("write more of the id"),
    })
}

/// The newest first.
fn list(traces: &Traces, ids: &[String], format: Format, out: &mut Out) -> Result<(), Failure> {
    let mut runs = Vec::new();
    for id in ids.iter().rev() {
        // A run that another process has just taken away is not there any more.
        let events = traces.read(id).ok().flatten().unwrap_or_default();
        let find = |kind: &str| events.iter().find(|event| event["event"] == kind);
        let (Some(started), answer) = (find("started"), find("finished").map(|event| &event["answer"])) else {
            continue;
        };
        let of = |key: &str| answer.map_or(Value::Null, |answer| answer[key].clone());
        let attempts = of("attempts").as_array().map_or(0, Vec::len);
        runs.push(json!({
            "id": id, "began": when::began(id), "status": of("status"), "attempts": attempts,
            "database": started["database"], "model": started["model"], "question": started["question"],
            "sql": of("sql"),
        }));
    }
    match format {
        Format::Json => out.json(&pretty(&runs)?)?,
        Format::Text => {
            for run in &runs {
                let text = |key: &str| one_line(run[key].as_str().unwrap_or_default());
                let question: String = text("question").chars().take(100).collect();
                let (began, status) = (text("began"), text("status"));
                out.line(&format!("{}  {began:20}  {:10}  {question}", text("id"), ending(&status)))?;
            }
            out.flush()?;
            out.note(&counted(runs.len(), "run"));
        }
    }
    Ok(())
}

fn unreadable(error: &std::io::Error) -> Failure {
    Failure::new(format!("past runs cannot be read: {error}"))
        .hint("check the folder `trace.folder` and its permissions")
}
