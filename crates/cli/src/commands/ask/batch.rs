//! `ask --batch`: reads one question per line and writes one answer per line, in order of
//! completion.
//!
//! Databases are opened once and stay open; the model is shared. A line that cannot be asked gets
//! an answer with the error, and the other lines continue. With `--out`, an interrupted batch
//! resumes at the first unanswered line.

mod sink;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use querymend::resilience::Breakers;
use querymend::{
    Answer, AnswerStatus, AskInput, CancellationToken, Clarify, Config, Event, Querymend, StopReason, TraceStore, log,
};
use querymend_memory::ExampleStore;
use querymend_model::Model;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::sink::AnswerSink;
use super::{AskCommand, open_shared};
use crate::args::database::DatabaseArgs;
use crate::commands::batch::resolve_address;
use crate::error::{CliError, ExitStatus};
use crate::output::Out;
use crate::output::answer::wire_name;
use crate::runtime::build_runtime;
use crate::{input, model_selection, signals, state_dir};

/// Options of a batch of questions.
#[derive(Debug, Clone, Args)]
pub struct AskBatchArgs {
    /// Read one question per line, {"id", "db"?, "question", "evidence"?}, and write one JSON
    /// answer per line
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub batch: Option<PathBuf>,
    /// Folder that the `db` paths of a batch are relative to
    #[arg(long, value_name = "DIR", requires = "batch", default_value = ".")]
    pub root: PathBuf,
    /// Number of questions of a batch to process concurrently
    #[arg(long, value_name = "N", requires = "batch", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Append the answers of a batch to this file, and skip questions that it already answers
    #[arg(long, value_name = "FILE", requires = "batch", visible_alias = "resume")]
    pub out: Option<PathBuf>,
}

/// Line of the input.
#[derive(Deserialize)]
struct AskBatchLine {
    #[serde(default)]
    id: Value,
    question: String,
    db: Option<String>,
    evidence: Option<String>,
}

/// State shared by all questions of a batch.
struct AskBatchWorker {
    model: Arc<dyn Model>,
    config: Config,
    database: DatabaseArgs,
    /// Database of lines that name none.
    default_database: Option<String>,
    root: PathBuf,
    instances: Mutex<HashMap<String, InstanceSlot>>,
    breakers: Arc<Breakers>,
    /// Memory of answers; `None` if it is disabled.
    store: Option<Arc<dyn ExampleStore>>,
    fresh: bool,
    /// Store for traces; `None` if traces are disabled.
    traces: Option<TraceStore>,
    saved_traces: AtomicUsize,
    /// Last error of saving a trace.
    trace_error: Mutex<Option<io::Error>>,
}

/// Number of saved traces after which old ones are pruned.
const PRUNE_BATCH_SIZE: usize = 64;

type InstanceSlot = Arc<OnceLock<Result<Arc<Querymend>, CliError>>>;

/// Answers every line of a file, or of stdin (`-`).
pub fn run(file: &Path, ask: &AskCommand, config: &Config, out: &mut Out) -> Result<ExitStatus, CliError> {
    let options = &ask.batch_args;
    if !options.root.is_dir() {
        return Err(CliError::new(format!("--root `{}` is not a folder", options.root.display()))
            .hint("name the folder that the `db` paths of the lines start from"));
    }
    let name = file.display().to_string();
    let (input, length): (Box<dyn Read + Send>, Option<u64>) = if file == Path::new("-") {
        (Box::new(io::stdin()), None)
    } else {
        let count = |file: File| Ok(BufReader::new(file).split(b'\n').count() as u64);
        let length = if out.is_live() && file.is_file() { File::open(file).and_then(count).ok() } else { None };
        (Box::new(File::open(file).map_err(|error| input::read_error(&name, &error))?), length)
    };
    let runtime = build_runtime()?;
    let worker = Arc::new(AskBatchWorker {
        model: model_selection::select_model(
            &ask.answer_args.model_args,
            Some(&ask.answer_args.auto_pull),
            config,
            out,
        )?,
        config: config.clone(),
        database: ask.database.clone(),
        default_database: ask.database.address(config)?,
        root: options.root.clone(),
        instances: Mutex::new(HashMap::new()),
        breakers: Arc::new(Breakers::new(config.circuit_breaker)),
        store: runtime.block_on(ask.answer_args.memory_args.open_if_enabled(false, config))?,
        fresh: ask.answer_args.memory_args.fresh,
        traces: state_dir::batch_trace_store(config).filter(TraceStore::is_enabled),
        saved_traces: AtomicUsize::new(0),
        trace_error: Mutex::new(None),
    });
    let mut sink = AnswerSink::open(options.out.as_deref(), file)?;
    let bar = progress_bar(out, length);
    let cancel = CancellationToken::new();
    let work = answer_all(input, &worker, options.jobs.into(), &cancel, &mut sink, &bar, out);
    let done = signals::run_until_interrupted(&runtime, &cancel, work);
    bar.finish_and_clear();
    runtime.shutdown_background();
    worker.prune();
    if let Some(error) = worker.trace_error.lock().unwrap_or_else(PoisonError::into_inner).take() {
        out.note(&format!("note: not all runs could be saved for `querymend trace`: {error}"));
    }
    let Some(totals) = done.transpose()? else {
        out.message("stopped");
        return Ok(ExitStatus::Interrupted);
    };
    out.flush()?;
    if let Some(error) = totals.read_error {
        return Err(input::read_error(&name, &error));
    }
    out.note(&totals.summary());
    if cancel.is_cancelled() {
        out.message("stopped");
        return Ok(ExitStatus::Interrupted);
    }
    Ok(if totals.failed > 0 { ExitStatus::Failed } else { ExitStatus::Success })
}

fn progress_bar(out: &Out, length: Option<u64>) -> ProgressBar {
    if !out.is_live() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    let template = if length.is_some() {
        "{wide_bar} {pos}/{len} {elapsed}, {eta} left  {msg}"
    } else {
        "{spinner} {pos} questions, {elapsed}  {msg}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Number of lines by outcome.
#[derive(Default)]
struct AskBatchTotals {
    answered: usize,
    gave_up: usize,
    failed: usize,
    already_answered: usize,
    read_error: Option<io::Error>,
}

impl AskBatchTotals {
    fn summary(&self) -> String {
        let mut counts = format!("{} answered, {} given up, {} failed", self.answered, self.gave_up, self.failed);
        if self.already_answered > 0 {
            counts.push_str(&format!(", {} were answered already", self.already_answered));
        }
        counts
    }

    fn add(&mut self, status: AnswerStatus) {
        match status {
            AnswerStatus::Answered | AnswerStatus::Chat | AnswerStatus::Drafted => self.answered += 1,
            AnswerStatus::GaveUp | AnswerStatus::AskUser | AnswerStatus::Abstained | AnswerStatus::Refused => {
                self.gave_up += 1
            }
            AnswerStatus::Failed => self.failed += 1,
        }
    }
}

async fn answer_all(
    input: Box<dyn Read + Send>,
    worker: &Arc<AskBatchWorker>,
    jobs: usize,
    cancel: &CancellationToken,
    sink: &mut AnswerSink,
    bar: &ProgressBar,
    out: &mut Out,
) -> Result<AskBatchTotals, CliError> {
    let (sender, mut lines) = mpsc::channel(64);
    // The thread is not joined: an idle pipe must not keep the process alive.
    std::thread::spawn(move || send_lines(input, &sender));
    let mut totals = AskBatchTotals::default();
    let mut under_way: JoinSet<Option<(AnswerStatus, Value)>> = JoinSet::new();
    let mut more = true;
    let mut number = 0;
    loop {
        tokio::select! {
            line = lines.recv(), if more && under_way.len() < jobs && !cancel.is_cancelled() => match line {
                None => more = false,
                Some(Err(error)) => totals.read_error = Some(error),
                Some(Ok(line)) => {
                    number += 1;
                    match parse_line(&line, number) {
                        None => {}
                        Some(Err((id, failure))) => {
                            totals.add(AnswerStatus::Failed);
                            sink.write(&error_to_json(&id, &failure), out)?;
                        }
                        Some(Ok(request)) if sink.has_answer(&request.id) => totals.already_answered += 1,
                        Some(Ok(request)) => {
                            let (worker, cancel) = (Arc::clone(worker), cancel.clone());
                            under_way.spawn(answer_line(worker, request, cancel));
                            continue;
                        }
                    }
                    bar.inc(1);
                }
            },
            Some(done) = under_way.join_next(), if !under_way.is_empty() => {
                bar.inc(1);
                // A cancelled question has no result.
                let Ok(Some((status, line))) = done else { continue };
                totals.add(status);
                sink.write(&line, out)?;
            }
            // Wake up to check for Ctrl-C while no input arrives.
            () = tokio::time::sleep(Duration::from_millis(100)), if more && !cancel.is_cancelled() => {}
            else => break,
        }
        if out.is_closed() {
            break;
        }
        bar.set_message(format!("{} answered", totals.answered));
    }
    Ok(totals)
}

fn send_lines(input: Box<dyn Read + Send>, lines: &mpsc::Sender<io::Result<Vec<u8>>>) {
    for line in input::bounded_lines(BufReader::new(input)) {
        let failed = line.is_err();
        if lines.blocking_send(line).is_err() || failed {
            return;
        }
    }
}

/// Parses a line; `None` if it is blank.
fn parse_line(line: &[u8], number: usize) -> Option<Result<AskBatchLine, (Value, CliError)>> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    Some(serde_json::from_slice(line).map_err(|error| {
        let whole: Value = serde_json::from_slice(line).unwrap_or_default();
        let failure = CliError::new(format!("line {number} cannot be read: {error}")).hint(
            r#"a line is {"id": …, "db": "…", "question": "…", "evidence": "…"}; evidence may be left out, and db with --db"#,
        );
        (whole["id"].clone(), failure)
    }))
}

/// Answers one line in its own task, so that a panic does not affect other lines.
async fn answer_line(
    worker: Arc<AskBatchWorker>,
    request: AskBatchLine,
    cancel: CancellationToken,
) -> Option<(AnswerStatus, Value)> {
    let id = request.id.clone();
    let task = tokio::spawn(async move {
        let querymend = worker.instance_for(request.db.as_deref())?;
        let ask = AskInput {
            question: request.question,
            evidence: request.evidence,
            bypass_memory: worker.fresh,
            clarify: Some(Clarify::Off),
            ..AskInput::default()
        };
        let mut events: Vec<Event> = Vec::new();
        let keeps = worker.traces.is_some();
        let mut on_event = |event: &Event| {
            log(event);
            if keeps && !matches!(event, Event::Text { .. }) {
                events.push(event.clone());
            }
        };
        let answer = querymend.ask_with(ask, &mut on_event, &cancel).await;
        worker.save_trace(&answer.trace_id, &events);
        Ok(answer)
    });
    let answered = task.await.unwrap_or_else(|_| {
        Err(CliError::new("an internal error occurred on this question")
            .hint("this is a bug in Querymend: please report it with the line"))
    });
    match answered {
        Ok(answer) if answer.stop == StopReason::Cancelled => None,
        Ok(answer) => Some((answer.status, answer_to_json(&id, &answer))),
        Err(failure) => Some((AnswerStatus::Failed, error_to_json(&id, &failure))),
    }
}

impl AskBatchWorker {
    /// Returns the instance for the database that a line names, opened on first use.
    fn instance_for(&self, db: Option<&str>) -> Result<Arc<Querymend>, CliError> {
        let named = db.map(|db| resolve_address(db, &self.root)).or_else(|| self.default_database.clone());
        let Some(address) = named else {
            return Err(CliError::new("the line names no database").hint("add `db` to it, or name one with --db"));
        };
        let mut open = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = Arc::clone(open.entry(address.clone()).or_default());
        drop(open);
        slot.get_or_init(|| {
            open_shared(&address, &self.database, &self.model, &self.config, &self.breakers, self.store.as_ref())
        })
        .clone()
    }

    /// Saves a trace for `querymend trace`. A failure is recorded but does not withhold the answer.
    fn save_trace(&self, id: &str, events: &[Event]) {
        let Some(traces) = &self.traces else { return };
        if let Err(error) = traces.save_without_prune(id, events) {
            *self.trace_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        if self.saved_traces.fetch_add(1, Ordering::Relaxed) % PRUNE_BATCH_SIZE == PRUNE_BATCH_SIZE - 1 {
            self.prune();
        }
    }

    fn prune(&self) {
        if let Some(Err(error)) = self.traces.as_ref().map(TraceStore::prune) {
            *self.trace_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

fn answer_to_json(id: &Value, answer: &Answer) -> Value {
    let attempts: Vec<Value> =
        answer.attempts.iter().map(|attempt| json!({ "sql": attempt.sql, "error": attempt.error })).collect();
    let mut reply = json!({
        "id": id,
        "status": answer.status,
        "sql": answer.sql,
        "attempts": attempts,
        "llm_calls": answer.metadata.llm_calls,
        "fixes": answer.fixes,
        "confidence": answer.confidence,
        "confidence_features": answer.confidence_features,
        "reasons": answer.reasons,
        "stop": answer.stop,
        "fallback": answer.fallback,
        "trace_id": answer.trace_id,
    });
    if let Some(text) = &answer.text {
        reply["text"] = json!(text);
    }
    if let Some(problem) = &answer.problem {
        reply["error"] = json!(problem.message);
        reply["hint"] = json!(problem.hint);
    }
    reply
}

/// Returns the JSON answer for a line that could not be asked.
fn error_to_json(id: &Value, failure: &CliError) -> Value {
    json!({
        "id": id,
        "status": wire_name(&AnswerStatus::Failed),
        "sql": null,
        "attempts": [],
        "llm_calls": 0,
        "fixes": [],
        "confidence": "low",
        "reasons": [],
        "stop": null,
        "fallback": false,
        "trace_id": null,
        "error": failure.message,
        "hint": failure.hint,
    })
}
