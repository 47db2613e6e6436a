//! `ask --batch`: a question on every line in, an answer on every line out, as soon as it is there.
//!
//! Databases are opened once and stay open; the model is shared. A line that cannot be asked gets an answer that says why,
//! and the others go on. With `--out` a batch that was stopped is taken up again where it stopped.

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
use querymend::guard::Breakers;
use querymend::{Answer, Ask, Cancel, Clarify, Config, Event, Querymend, Status, Stop, Traces, log};
use querymend_memory::ExampleStore;
use querymend_model::Model;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::sink::Sink;
use super::{AskQuestion, shared};
use crate::answer::word;
use crate::chosen;
use crate::commands::batch::address;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::interrupt;
use crate::out::Out;
use crate::setup::{Database, runtime};
use crate::state;

/// The options of a batch of questions.
#[derive(Debug, Clone, Args)]
pub struct Lines {
    /// Take one question per line, {"id", "db"?, "question", "evidence"?}; one JSON answer per line comes out
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub batch: Option<PathBuf>,
    /// Folder that the `db` paths of a batch start from
    #[arg(long, value_name = "DIR", requires = "batch", default_value = ".")]
    pub root: PathBuf,
    /// Questions of a batch that are under way at a time
    #[arg(long, value_name = "N", requires = "batch", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
    /// Add the answers of a batch to this file, and do not ask again what is answered in it already
    #[arg(long, value_name = "FILE", requires = "batch", visible_alias = "resume")]
    pub out: Option<PathBuf>,
}

/// A line of the input.
#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    id: Value,
    question: String,
    db: Option<String>,
    evidence: Option<String>,
}

/// What all questions share.
struct Desk {
    model: Arc<dyn Model>,
    config: Config,
    database: Database,
    /// For lines that name no database.
    common: Option<String>,
    root: PathBuf,
    open: Mutex<HashMap<String, Slot>>,
    breakers: Arc<Breakers>,
    /// What is remembered, and whether it may answer.
    store: Option<Arc<dyn ExampleStore>>,
    fresh: bool,
    /// Where runs are kept, if they are.
    traces: Option<Traces>,
    kept: AtomicUsize,
    /// Why a run could not be kept.
    unkept: Mutex<Option<io::Error>>,
}

/// After so many runs the older ones are let go.
const PRUNED: usize = 64;

type Slot = Arc<OnceLock<Result<Arc<Querymend>, Failure>>>;

/// Answers every line of a file, or of stdin (`-`).
pub fn run(file: &Path, ask: &AskQuestion, config: &Config, out: &mut Out) -> Result<Exit, Failure> {
    let options = &ask.lines;
    if !options.root.is_dir() {
        return Err(Failure::new(format!("--root `{}` is no folder", options.root.display()))
            .hint("name the folder that the `db` paths of the lines start from"));
    }
    let name = file.display().to_string();
    let (input, length): (Box<dyn Read + Send>, Option<u64>) = if file == Path::new("-") {
        (Box::new(io::stdin()), None)
    } else {
        let count = |file: File| Ok(BufReader::new(file).split(b'\n').count() as u64);
        let length = if out.live() && file.is_file() { File::open(file).and_then(count).ok() } else { None };
        (Box::new(File::open(file).map_err(|error| input::unreadable(&name, &error))?), length)
    };
    let runtime = runtime()?;
    let desk = Arc::new(Desk {
        model: chosen::model(&ask.asking, Some(&ask.unnamed), config, out)?,
        config: config.clone(),
        database: ask.database.clone(),
        common: ask.database.address(config)?,
        root: options.root.clone(),
        open: Mutex::new(HashMap::new()),
        breakers: Arc::new(Breakers::new(config.circuit_breaker)),
        store: runtime.block_on(ask.remembering.store(false, config))?,
        fresh: ask.remembering.fresh,
        traces: state::batch_traces(config).filter(Traces::keeps),
        kept: AtomicUsize::new(0),
        unkept: Mutex::new(None),
    });
    let mut sink = Sink::open(options.out.as_deref(), file)?;
    let bar = bar(out, length);
    let cancel = Cancel::new();
    let work = answer_all(input, &desk, options.jobs.into(), &cancel, &mut sink, &bar, out);
    let done = interrupt::guarded(&runtime, &cancel, work);
    bar.finish_and_clear();
    runtime.shutdown_background();
    desk.prune();
    if let Some(error) = desk.unkept.lock().unwrap_or_else(PoisonError::into_inner).take() {
        out.note(&format!("note: not all runs could be kept for `querymend trace`: {error}"));
    }
    let Some(totals) = done.transpose()? else {
        out.say("stopped");
        return Ok(Exit::Interrupted);
    };
    out.flush()?;
    if let Some(error) = totals.broken {
        return Err(input::unreadable(&name, &error));
    }
    out.note(&totals.counts());
    if cancel.is_cancelled() {
        out.say("stopped");
        return Ok(Exit::Interrupted);
    }
    Ok(if totals.failed > 0 { Exit::Failed } else { Exit::Done })
}

fn bar(out: &Out, length: Option<u64>) -> ProgressBar {
    if !out.live() {
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

/// How many lines came to what.
#[derive(Default)]
struct Totals {
    answered: usize,
    gave_up: usize,
    failed: usize,
    known: usize,
    broken: Option<io::Error>,
}

impl Totals {
    fn counts(&self) -> String {
        let mut counts = format!("{} answered, {} given up, {} failed", self.answered, self.gave_up, self.failed);
        if self.known > 0 {
            counts.push_str(&format!(", {} were answered already", self.known));
        }
        counts
    }

    fn add(&mut self, status: Status) {
        match status {
            Status::Answered | Status::Chat | Status::Drafted => self.answered += 1,
            Status::GaveUp | Status::AskUser | Status::Abstained | Status::Refused => self.gave_up += 1,
            Status::Failed => self.failed += 1,
        }
    }
}

async fn answer_all(
    input: Box<dyn Read + Send>,
    desk: &Arc<Desk>,
    jobs: usize,
    cancel: &Cancel,
    sink: &mut Sink,
    bar: &ProgressBar,
    out: &mut Out,
) -> Result<Totals, Failure> {
    let (sender, mut lines) = mpsc::channel(64);
    // Not waited for: a pipe that is open but silent must not keep the program.
    std::thread::spawn(move || read(input, &sender));
    let mut totals = Totals::default();
    let mut under_way: JoinSet<Option<(Status, Value)>> = JoinSet::new();
    let mut more = true;
    let mut number = 0;
    loop {
        tokio::select! {
            line = lines.recv(), if more && under_way.len() < jobs && !cancel.is_cancelled() => match line {
                None => more = false,
                Some(Err(error)) => totals.broken = Some(error),
                Some(Ok(line)) => {
                    number += 1;
                    match request(&line, number) {
                        None => {}
                        Some(Err((id, failure))) => {
                            totals.add(Status::Failed);
                            sink.write(&unasked(&id, &failure), out)?;
                        }
                        Some(Ok(request)) if sink.knows(&request.id) => totals.known += 1,
                        Some(Ok(request)) => {
                            let (desk, cancel) = (Arc::clone(desk), cancel.clone());
                            under_way.spawn(one(desk, request, cancel));
                            continue;
                        }
                    }
                    bar.inc(1);
                }
            },
            Some(done) = under_way.join_next(), if !under_way.is_empty() => {
                bar.inc(1);
                // Nothing comes of a question that was cancelled on the way.
                let Ok(Some((status, line))) = done else { continue };
                totals.add(status);
                sink.write(&line, out)?;
            }
            // Ctrl-C is noticed while nothing comes in.
            () = tokio::time::sleep(Duration::from_millis(100)), if more && !cancel.is_cancelled() => {}
            else => break,
        }
        if out.closed() {
            break;
        }
        bar.set_message(format!("{} answered", totals.answered));
    }
    Ok(totals)
}

fn read(input: Box<dyn Read + Send>, lines: &mpsc::Sender<io::Result<Vec<u8>>>) {
    for line in input::lines(BufReader::new(input)) {
        let failed = line.is_err();
        if lines.blocking_send(line).is_err() || failed {
            return;
        }
    }
}

/// What a line asks; nothing if it is empty.
fn request(line: &[u8], number: usize) -> Option<Result<Request, (Value, Failure)>> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    Some(serde_json::from_slice(line).map_err(|error| {
        let whole: Value = serde_json::from_slice(line).unwrap_or_default();
        let failure = Failure::new(format!("line {number} cannot be read: {error}")).hint(
            r#"a line is {"id": …, "db": "…", "question": "…", "evidence": "…"}; evidence may be left out, and db with --db"#,
        );
        (whole["id"].clone(), failure)
    }))
}

/// Asks one question. A fault of ours must not take the other lines with it.
async fn one(desk: Arc<Desk>, request: Request, cancel: Cancel) -> Option<(Status, Value)> {
    let id = request.id.clone();
    let asked = tokio::spawn(async move {
        let querymend = desk.querymend(request.db.as_deref())?;
        let ask = Ask {
            question: request.question,
            evidence: request.evidence,
            fresh: desk.fresh,
            clarify: Some(Clarify::Off),
            ..Ask::default()
        };
        let mut events: Vec<Event> = Vec::new();
        let keeps = desk.traces.is_some();
        let mut hear = |event: &Event| {
            log(event);
            if keeps && !matches!(event, Event::Text { .. }) {
                events.push(event.clone());
            }
        };
        let answer = querymend.ask_with(ask, &mut hear, &cancel).await;
        desk.keep(&answer.trace_id, &events);
        Ok(answer)
    });
    let answered = asked.await.unwrap_or_else(|_| {
        Err(Failure::new("Querymend stumbled over this question")
            .hint("this is a fault in Querymend: please report it with the line"))
    });
    match answered {
        Ok(answer) if answer.stop == Stop::Cancelled => None,
        Ok(answer) => Some((answer.status, reply(&id, &answer))),
        Err(failure) => Some((Status::Failed, unasked(&id, &failure))),
    }
}

impl Desk {
    /// The database that a line names, opened at its first use.
    fn querymend(&self, db: Option<&str>) -> Result<Arc<Querymend>, Failure> {
        let named = db.map(|db| address(db, &self.root)).or_else(|| self.common.clone());
        let Some(address) = named else {
            return Err(Failure::new("the line names no database").hint("add `db` to it, or name one with --db"));
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = Arc::clone(open.entry(address.clone()).or_default());
        drop(open);
        slot.get_or_init(|| {
            shared(&address, &self.database, &self.model, &self.config, &self.breakers, self.store.as_ref())
        })
        .clone()
    }

    /// Keeps a run for `querymend trace`. That it cannot be kept is no reason to withhold the answer.
    fn keep(&self, id: &str, events: &[Event]) {
        let Some(traces) = &self.traces else { return };
        if let Err(error) = traces.add(id, events) {
            *self.unkept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        if self.kept.fetch_add(1, Ordering::Relaxed) % PRUNED == PRUNED - 1 {
            self.prune();
        }
    }

    fn prune(&self) {
        if let Some(Err(error)) = self.traces.as_ref().map(Traces::prune) {
            *self.unkept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

fn reply(id: &Value, answer: &Answer) -> Value {
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

/// The same for a line that could not be asked.
fn unasked(id: &Value, failure: &Failure) -> Value {
    json!({
        "id": id,
        "status": word(&Status::Failed),
        "sql": null,
        "attempts": [],
        "llm_calls": 0,
        "fixes": [],
        "confidence": "low",
        "reasons": [],
        "stop": null,
        "fallback": false,
        "trace_id": null,
        "error": failure.what,
        "hint": failure.hint,
    })
}
