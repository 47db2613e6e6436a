//! `--batch`: reads one query per line and writes one answer per line, in input order.
//!
//! One thread reads, several process, the main thread writes. The number of chunks in flight is
//! bounded, so memory does not grow with the input. A line that cannot be processed gets an answer
//! with the error, and the other lines continue.

mod check;
mod fix;
mod task;
mod worker;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use clap::Args;
use querymend::Config;

pub use self::check::CheckTask;
pub use self::fix::FixTask;
use self::task::BatchTask;
pub use self::worker::resolve_address;
use self::worker::{BatchOutput, BatchWorker, InputLine, MAX_LINE_BYTES};
use crate::args::schema_source::{SchemaArgs, value_settings};
use crate::error::{CliError, ExitStatus};
use crate::input;
use crate::output::Out;

/// Maximum number of lines in a chunk.
const CHUNK_LINES: usize = 64;
const CHUNK_BYTES: usize = 1 << 20;
/// Stack size of worker threads, equal to that of the main thread.
const WORKER_STACK_BYTES: usize = 8 << 20;

/// Options of a batch.
#[derive(Debug, Clone, Args)]
pub struct BatchArgs {
    /// Read one query per line, {"id", "sql", "db"?, "dialect"?, "schema"?}, and write one JSON
    /// answer per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "sql", "format"])]
    pub batch: Option<PathBuf>,
    /// Folder that the `db` and `schema` paths of a batch are relative to
    #[arg(long, value_name = "DIR", requires = "batch", conflicts_with_all = ["file", "sql"], default_value = ".")]
    pub root: PathBuf,
    /// Number of worker threads of a batch [default: one per processor]
    #[arg(long, value_name = "N", requires = "batch", conflicts_with_all = ["file", "sql"], value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
}

impl BatchArgs {
    /// Returns the number of worker threads.
    pub fn threads(&self) -> usize {
        let jobs = self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
        jobs.max(1)
    }

    /// Processes every line of a file, or of stdin (`-`).
    pub fn run(
        &self,
        file: &Path,
        job: impl BatchTask,
        against: &SchemaArgs,
        config: Config,
        out: &mut Out,
    ) -> Result<ExitStatus, CliError> {
        let name = file.display().to_string();
        let input: Box<dyn Read + Send> = if file == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(file).map_err(|error| input::read_error(&name, &error))?)
        };
        if !self.root.is_dir() {
            return Err(CliError::new(format!("--root `{}` is not a folder", self.root.display()))
                .hint("name the folder that the `db` paths of the lines start from"));
        }
        // Lines name their own databases, so the database of the environment or configuration is
        // not a default for them.
        let common = match against.has_explicit_schema() {
            true => Some(Arc::new(against.load(&config, out)?.apply_policy_with_warnings(&config.policy, out))),
            false => None,
        };
        let values = value_settings(&config, against.no_values);
        let worker = BatchWorker::new(job, &self.root, config.policy, against.dialect, common, values);
        run_batch(input, &name, worker, self.threads(), out)
    }
}

fn run_batch<J: BatchTask>(
    input: Box<dyn Read + Send>,
    name: &str,
    worker: BatchWorker<J>,
    threads: usize,
    out: &mut Out,
) -> Result<ExitStatus, CliError> {
    let worker = Arc::new(worker);
    let (work, waiting) = sync_channel(threads);
    let (done, results) = channel();
    let (ticket, tickets) = sync_channel(threads * 4);
    for _ in 0..threads * 4 {
        // The channel has capacity for all tickets, and its receiver is still in scope.
        ticket.send(()).ok();
    }
    let waiting = Arc::new(Mutex::new(waiting));
    for _ in 0..threads {
        let (worker, waiting, done) = (Arc::clone(&worker), Arc::clone(&waiting), done.clone());
        spawn_thread(move || process_chunks(&worker, &waiting, &done))?;
    }
    // The reader is not joined: after the output is closed, it may still block on an idle pipe.
    spawn_thread(move || read_chunks(BufReader::with_capacity(256 << 10, input), &tickets, &work, &done))?;
    write_in_order(&results, &ticket, name, J::OUTCOMES, out)
}

fn spawn_thread(work: impl FnOnce() + Send + 'static) -> Result<(), CliError> {
    match thread::Builder::new().stack_size(WORKER_STACK_BYTES).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(CliError::new(format!("cannot start a thread: {error}")).hint("use fewer with --jobs")),
    }
}

struct Chunk {
    number: usize,
    first_line: usize,
    lines: Vec<InputLine>,
}

type ChunkResult = Result<(usize, BatchOutput), io::Error>;

fn read_chunks(
    mut input: BufReader<Box<dyn Read + Send>>,
    tickets: &Receiver<()>,
    work: &SyncSender<Chunk>,
    done: &Sender<ChunkResult>,
) {
    let mut first_line = 1;
    for number in 0.. {
        if tickets.recv().is_err() {
            return;
        }
        match read_chunk(&mut input) {
            Ok(lines) if lines.is_empty() => return,
            Ok(lines) => {
                let next = first_line + lines.len();
                if work.send(Chunk { number, first_line, lines }).is_err() {
                    return;
                }
                first_line = next;
            }
            Err(error) => {
                done.send(Err(error)).ok();
                return;
            }
        }
    }
}

/// Reads the available lines, up to one chunk.
///
/// Does not wait for a second line once it has one: an interactive writer may want an answer first.
fn read_chunk(input: &mut BufReader<Box<dyn Read + Send>>) -> io::Result<Vec<InputLine>> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    while let Some(line) = read_line(input, MAX_LINE_BYTES)? {
        bytes += match &line {
            InputLine::Text(text) => text.len(),
            InputLine::TooLong => 0,
        };
        lines.push(line);
        if lines.len() >= CHUNK_LINES || bytes >= CHUNK_BYTES || !input.buffer().contains(&b'\n') {
            break;
        }
    }
    Ok(lines)
}

fn read_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<InputLine>> {
    let mut text = Vec::new();
    let mut too_long = false;
    let mut started = false;
    loop {
        let there = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            there => there?,
        };
        if there.is_empty() {
            break;
        }
        started = true;
        let newline = there.iter().position(|b| *b == b'\n');
        let piece = &there[..newline.unwrap_or(there.len())];
        too_long |= text.len() + piece.len() > max_bytes;
        if too_long {
            text = Vec::new();
        } else {
            text.extend_from_slice(piece);
        }
        let used = newline.map_or(there.len(), |n| n + 1);
        input.consume(used);
        if newline.is_some() {
            break;
        }
    }
    Ok(started.then_some(if too_long { InputLine::TooLong } else { InputLine::Text(text) }))
}

fn process_chunks<J: BatchTask>(worker: &BatchWorker<J>, waiting: &Mutex<Receiver<Chunk>>, done: &Sender<ChunkResult>) {
    let mut state = worker.new_state();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(chunk) = next else { return };
        let mut answers = BatchOutput::default();
        for (i, line) in chunk.lines.iter().enumerate() {
            worker.process_line(line, chunk.first_line + i, &mut state, &mut answers);
        }
        if done.send(Ok((chunk.number, answers))).is_err() {
            return;
        }
    }
}

fn write_in_order(
    results: &Receiver<ChunkResult>,
    ticket: &SyncSender<()>,
    name: &str,
    outcomes: &[&'static str],
    out: &mut Out,
) -> Result<ExitStatus, CliError> {
    let mut early: BTreeMap<usize, BatchOutput> = BTreeMap::new();
    let mut next = 0;
    let mut total = BatchOutput::default();
    let mut broken = None;
    loop {
        let outcome = match results.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                out.flush()?;
                match results.recv() {
                    Ok(outcome) => outcome,
                    Err(_) => break,
                }
            }
        };
        match outcome {
            Ok((number, answers)) => early.insert(number, answers),
            Err(error) => {
                broken = Some(input::read_error(name, &error));
                None
            }
        };
        while let Some(answers) = early.remove(&next) {
            out.write(&answers.text)?;
            for (outcome, count) in answers.outcomes {
                *total.outcomes.entry(outcome).or_default() += count;
            }
            total.failed += answers.failed;
            next += 1;
            // At the end of the input the reader is gone and does not need the ticket.
            ticket.try_send(()).ok();
        }
        if out.is_closed() {
            break;
        }
    }
    out.flush()?;
    if let Some(failure) = broken {
        return Err(failure);
    }
    if !out.is_closed() {
        let count = |outcome: &&str| total.outcomes.get(outcome).copied().unwrap_or_default();
        let mut counts: Vec<String> = outcomes.iter().map(|outcome| format!("{} {outcome}", count(outcome))).collect();
        if total.failed > 0 {
            counts.push(format!("{} could not be processed", total.failed));
        }
        out.note(&counts.join(", "));
    }
    Ok(if total.failed > 0 { ExitStatus::Failed } else { ExitStatus::Success })
}
