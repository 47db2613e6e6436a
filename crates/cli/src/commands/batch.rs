//! `--batch`: a query on every line in, an answer on every line out, in the same order.
//!
//! One thread reads, several work, this one writes. Only so many chunks are under way at a time, so a long input
//! takes no more memory than a short one. A line that cannot be looked at gets an answer that says why, and the others
//! go on.

mod checking;
mod desk;
mod job;
mod mending;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use clap::Args;
use querymend::Config;

pub use self::checking::Checking;
pub use self::desk::address;
use self::desk::{Answers, Desk, LONGEST_LINE, Line};
use self::job::Job;
pub use self::mending::Mending;
use crate::against::{Against, readable};
use crate::failure::{Exit, Failure};
use crate::input;
use crate::out::Out;

/// Lines that one thread takes at a time, unless they are long.
const CHUNK_LINES: usize = 64;
const CHUNK_BYTES: usize = 1 << 20;
/// The stack of the threads that work: as large as that of the main thread.
const STACK: usize = 8 << 20;

/// The options of a batch.
#[derive(Debug, Clone, Args)]
pub struct Batch {
    /// Take one query per line, {"id", "sql", "db"?, "dialect"?, "schema"?}; one JSON answer per line comes out
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "sql", "format"])]
    pub batch: Option<PathBuf>,
    /// Folder that the `db` and `schema` paths of a batch start from
    #[arg(long, value_name = "DIR", requires = "batch", conflicts_with_all = ["file", "sql"], default_value = ".")]
    pub root: PathBuf,
    /// Threads that work on a batch [default: one for each processor]
    #[arg(long, value_name = "N", requires = "batch", conflicts_with_all = ["file", "sql"], value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
}

impl Batch {
    /// How many threads work.
    pub fn threads(&self) -> usize {
        let jobs = self.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
        jobs.max(1)
    }

    /// Answers every line of a file, or of stdin (`-`).
    pub fn run(
        &self,
        file: &Path,
        job: impl Job,
        against: &Against,
        config: Config,
        out: &mut Out,
    ) -> Result<Exit, Failure> {
        let name = file.display().to_string();
        let input: Box<dyn Read + Send> = if file == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(file).map_err(|error| input::unreadable(&name, &error))?)
        };
        if !self.root.is_dir() {
            return Err(Failure::new(format!("--root `{}` is no folder", self.root.display()))
                .hint("name the folder that the `db` paths of the lines start from"));
        }
        // Lines name their databases themselves: what is asked otherwise is not taken for the others.
        let common = match against.is_named() {
            true => Some(Arc::new(against.load(&config, out)?.within(&config.policy, out))),
            false => None,
        };
        let values = readable(&config, against.no_values);
        let desk = Desk::new(job, &self.root, config.policy, against.dialect, common, values);
        answer_all(input, &name, desk, self.threads(), out)
    }
}

fn answer_all<J: Job>(
    input: Box<dyn Read + Send>,
    name: &str,
    desk: Desk<J>,
    threads: usize,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let desk = Arc::new(desk);
    let (work, waiting) = sync_channel(threads);
    let (done, results) = channel();
    let (ticket, tickets) = sync_channel(threads * 4);
    for _ in 0..threads * 4 {
        // The channel has room for all of them, and its other end is right here.
        ticket.send(()).ok();
    }
    let waiting = Arc::new(Mutex::new(waiting));
    for _ in 0..threads {
        let (desk, waiting, done) = (Arc::clone(&desk), Arc::clone(&waiting), done.clone());
        start(move || answer_chunks(&desk, &waiting, &done))?;
    }
    // The reader is not waited for: when nobody takes the answers any more, it may still hang on a pipe that is open
    // but silent.
    start(move || read_chunks(BufReader::with_capacity(256 << 10, input), &tickets, &work, &done))?;
    write_in_order(&results, &ticket, name, J::OUTCOMES, out)
}

fn start(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    match thread::Builder::new().stack_size(STACK).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("no thread can be started: {error}")).hint("use fewer with --jobs")),
    }
}

struct Chunk {
    number: usize,
    first_line: usize,
    lines: Vec<Line>,
}

type Outcome = Result<(usize, Answers), io::Error>;

fn read_chunks(
    mut input: BufReader<Box<dyn Read + Send>>,
    tickets: &Receiver<()>,
    work: &SyncSender<Chunk>,
    done: &Sender<Outcome>,
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

/// As many lines as are there, up to a chunk. It does not wait for a second line when one is there: whoever writes
/// may want an answer first.
fn read_chunk(input: &mut BufReader<Box<dyn Read + Send>>) -> io::Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    while let Some(line) = read_line(input, LONGEST_LINE)? {
        bytes += match &line {
            Line::Text(text) => text.len(),
            Line::TooLong => 0,
        };
        lines.push(line);
        if lines.len() >= CHUNK_LINES || bytes >= CHUNK_BYTES || !input.buffer().contains(&b'\n') {
            break;
        }
    }
    Ok(lines)
}

fn read_line(input: &mut impl BufRead, longest: usize) -> io::Result<Option<Line>> {
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
        too_long |= text.len() + piece.len() > longest;
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
    Ok(started.then_some(if too_long { Line::TooLong } else { Line::Text(text) }))
}

fn answer_chunks<J: Job>(desk: &Desk<J>, waiting: &Mutex<Receiver<Chunk>>, done: &Sender<Outcome>) {
    let mut tools = desk.tools();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(chunk) = next else { return };
        let mut answers = Answers::default();
        for (i, line) in chunk.lines.iter().enumerate() {
            desk.answer(line, chunk.first_line + i, &mut tools, &mut answers);
        }
        if done.send(Ok((chunk.number, answers))).is_err() {
            return;
        }
    }
}

fn write_in_order(
    results: &Receiver<Outcome>,
    ticket: &SyncSender<()>,
    name: &str,
    outcomes: &[&'static str],
    out: &mut Out,
) -> Result<Exit, Failure> {
    let mut early: BTreeMap<usize, Answers> = BTreeMap::new();
    let mut next = 0;
    let mut total = Answers::default();
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
                broken = Some(input::unreadable(name, &error));
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
            // The reader is gone once the input is at its end; then nobody needs the ticket.
            ticket.try_send(()).ok();
        }
        if out.closed() {
            break;
        }
    }
    out.flush()?;
    if let Some(failure) = broken {
        return Err(failure);
    }
    if !out.closed() {
        let count = |outcome: &&str| total.outcomes.get(outcome).copied().unwrap_or_default();
        let mut counts: Vec<String> = outcomes.iter().map(|outcome| format!("{} {outcome}", count(outcome))).collect();
        if total.failed > 0 {
            counts.push(format!("{} could not be looked at", total.failed));
        }
        out.note(&counts.join(", "));
    }
    Ok(if total.failed > 0 { Exit::Failed } else { Exit::Done })
}
