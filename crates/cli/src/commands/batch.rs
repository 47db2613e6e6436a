//! `check --batch`: a query on every line in, a verdict on every line out, in the same order.
//!
//! One thread reads, several review, this one writes. Only so many chunks are under way at a time, so a long input
//! takes no more memory than a short one. A line that cannot be looked at gets an answer that says why, and the others
//! go on.

mod desk;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use querymend_sql::Policy;

use self::desk::{Answers, Desk, LONGEST_LINE, Line};
use crate::against::Against;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::out::Out;

/// Lines that one thread takes at a time, unless they are long.
const CHUNK_LINES: usize = 64;
const CHUNK_BYTES: usize = 1 << 20;
/// The stack of the threads that review: as large as that of the main thread.
const STACK: usize = 8 << 20;

/// Answers every line of a file, or of stdin (`-`).
pub fn run(
    file: &Path,
    root: &Path,
    jobs: Option<usize>,
    against: &Against,
    policy: Policy,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let name = file.display().to_string();
    let input: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(file).map_err(|error| input::unreadable(&name, &error))?)
    };
    if !root.is_dir() {
        return Err(Failure::new(format!("--root `{}` is no folder", root.display()))
            .hint("name the folder that the `db` paths of the lines start from"));
    }
    let common = if against.nothing() { None } else { Some(Arc::new(against.load(out)?)) };
    let desk = Arc::new(Desk::new(root, policy, against.dialect, common));
    let jobs = jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);

    let (work, waiting) = sync_channel(jobs);
    let (done, results) = channel();
    let (ticket, tickets) = sync_channel(jobs * 4);
    for _ in 0..jobs * 4 {
        // The channel has room for all of them, and its other end is right here.
        ticket.send(()).ok();
    }
    let waiting = Arc::new(Mutex::new(waiting));
    for _ in 0..jobs {
        let (desk, waiting, done) = (Arc::clone(&desk), Arc::clone(&waiting), done.clone());
        start(move || review_chunks(&desk, &waiting, &done))?;
    }
    // The reader is not waited for: when nobody takes the answers any more, it may still hang on a pipe that is open
    // but silent.
    start(move || read_chunks(BufReader::with_capacity(256 << 10, input), &tickets, &work, &done))?;
    write_in_order(&results, &ticket, &name, out)
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

fn review_chunks(desk: &Desk, waiting: &Mutex<Receiver<Chunk>>, done: &Sender<Outcome>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(chunk) = next else { return };
        let mut answers = Answers::default();
        for (i, line) in chunk.lines.iter().enumerate() {
            desk.answer(line, chunk.first_line + i, &mut answers);
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
            total.approved += answers.approved;
            total.refused += answers.refused;
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
        let Answers { approved, refused, failed, .. } = total;
        let unseen = if failed > 0 { format!(", {failed} could not be looked at") } else { String::new() };
        out.note(&format!("{approved} approved, {refused} refused{unseen}"));
    }
    Ok(if total.failed > 0 { Exit::Failed } else { Exit::Done })
}
