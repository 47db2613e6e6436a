//! `check --batch`: a query on every line in, a verdict on every line out, in the same order.
//!
//! One thread reads, several review, this one writes. Only so many chunks are under way at a time, so a long input
//! takes no more memory than a short one. A line that cannot be looked at gets an answer that says why, and the others
//! go on.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use querymend_sql::{Context, Dialect, Finding, Policy, Severity, Span, Verdict, review};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::against::{Against, Known, dialect};
use crate::failure::{Exit, Failure};
use crate::input;
use crate::out::Out;

/// A line that is longer gets an error for an answer and is passed over.
const LONGEST_LINE: usize = input::MOST_BYTES;
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
    let desk = Arc::new(Desk {
        root: root.to_path_buf(),
        policy,
        dialect: against.dialect,
        common,
        nothing: Arc::new(Known { schema: None, dialect: against.dialect.unwrap_or(&querymend_sql::dialect::SQLITE) }),
        known: Mutex::new(HashMap::new()),
    });
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
    // The reader is not waited for: it may hang on a pipe that nobody writes to after the last answer was refused.
    start(move || read_chunks(BufReader::with_capacity(256 << 10, input), &tickets, &work, &done))?;
    write_in_order(&results, &ticket, &name, out)
}

fn start(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    match thread::Builder::new().stack_size(STACK).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("no thread can be started: {error}")).hint("use fewer with --jobs")),
    }
}

enum Line {
    Text(Vec<u8>),
    TooLong,
}

struct Chunk {
    number: usize,
    first_line: usize,
    lines: Vec<Line>,
}

#[derive(Default)]
struct Answers {
    text: Vec<u8>,
    approved: usize,
    refused: usize,
    failed: usize,
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

fn write_in_order(results: &Receiver<Outcome>, ticket: &SyncSender<()>, name: &str, out: &mut Out) -> Result<Exit, Failure> {
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

/// What the reviewing threads share. Schemas are kept by the path they came from; each is read once.
struct Desk {
    root: PathBuf,
    policy: Policy,
    dialect: Option<&'static Dialect>,
    /// For lines that name neither database nor schema, where the command line names one.
    common: Option<Arc<Known>>,
    nothing: Arc<Known>,
    known: Mutex<HashMap<Source, Slot>>,
}

type Slot = Arc<OnceLock<Result<Arc<Known>, Failure>>>;

#[derive(Clone, PartialEq, Eq, Hash)]
enum Source {
    Database(String),
    File(PathBuf, &'static str),
}

#[derive(Deserialize)]
struct Request<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    sql: String,
    db: Option<String>,
    schema: Option<PathBuf>,
    dialect: Option<String>,
}

/// What is left of a request whose other fields are wrong.
#[derive(Deserialize)]
struct OnlyId<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
}

#[derive(Serialize)]
struct Reply<'r> {
    id: Option<&'r RawValue>,
    verdict: Verdict,
    findings: Vec<Found<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'r str>,
}

#[derive(Serialize)]
struct Found<'f> {
    code: &'static str,
    severity: Severity,
    message: &'f str,
    span: Span,
    suggestion: Option<&'f str>,
}

impl Desk {
    fn answer(&self, line: &Line, number: usize, answers: &mut Answers) {
        let bytes = match line {
            Line::Text(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => return,
            Line::Text(bytes) => bytes,
            Line::TooLong => {
                let failure = Failure::new(format!("line {number} is longer than {} MB", LONGEST_LINE >> 20));
                return refuse(None, &failure, answers);
            }
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let failure = Failure::new(format!("line {number} is not UTF-8 text at its byte {}", error.valid_up_to()));
                return refuse(None, &failure, answers);
            }
        };
        let request: Request<'_> = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                let id = serde_json::from_str::<OnlyId<'_>>(text).ok().and_then(|only| only.id);
                let failure = Failure::new(format!("line {number} cannot be read: {error}"))
                    .hint(r#"a line is {"id": …, "sql": "…", "db": "…", "dialect": "…", "schema": "…"}; only sql is needed"#);
                return refuse(id, &failure, answers);
            }
        };
        let known = match self.known(&request) {
            Ok(known) => known,
            Err(failure) => return refuse(request.id, &failure, answers),
        };
        let dialect = match request.dialect.as_deref().map(dialect).transpose() {
            Ok(named) => named.or(self.dialect).unwrap_or(known.dialect),
            Err(error) => return refuse(request.id, &Failure::new(error), answers),
        };
        let context = Context { schema: known.schema.as_ref(), dialect, policy: &self.policy };
        // A review never panics. If one does all the same, it must not take the other lines with it.
        let Ok(review) = catch_unwind(AssertUnwindSafe(|| review(&request.sql, &context))) else {
            let failure = Failure::new(format!("Querymend stumbled over line {number}"))
                .hint("this is a fault in Querymend: please report it with the line");
            return refuse(request.id, &failure, answers);
        };
        let verdict = review.verdict();
        match verdict {
            Verdict::Approved => answers.approved += 1,
            Verdict::Refused => answers.refused += 1,
        }
        let findings = review.findings.iter().map(found).collect();
        write(&Reply { id: request.id, verdict, findings, error: None, hint: None }, answers);
    }

    /// The schema that a line names, read at its first use.
    fn known(&self, request: &Request<'_>) -> Result<Arc<Known>, Failure> {
        let source = match (&request.db, &request.schema) {
            (Some(_), Some(_)) => {
                return Err(Failure::new("the line names both `db` and `schema`").hint("leave one of them out"));
            }
            (Some(db), None) => Source::Database(address(db, &self.root)),
            (None, Some(file)) => {
                let named = request.dialect.as_deref().and_then(Dialect::named).or(self.dialect);
                Source::File(self.root.join(file), named.map_or("sqlite", |d| d.name))
            }
            (None, None) => return Ok(Arc::clone(self.common.as_ref().unwrap_or(&self.nothing))),
        };
        let slot = Arc::clone(self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(source.clone()).or_default());
        // Others wait for the same schema here, and not for the map.
        slot.get_or_init(|| {
            let against = match source {
                Source::Database(address) => Against { db: Some(address), schema: None, dialect: None },
                Source::File(path, dialect) => Against { db: None, schema: Some(path), dialect: Dialect::named(dialect) },
            };
            against.read().map(Arc::new)
        })
        .clone()
    }
}

/// The address of a database whose path starts from the root folder.
fn address(db: &str, root: &Path) -> String {
    let path = db.strip_prefix("sqlite://").or_else(|| db.strip_prefix("sqlite:"));
    if path.is_none() && db.contains("://") {
        return db.to_string();
    }
    format!("sqlite:{}", root.join(path.unwrap_or(db)).display())
}

fn found(finding: &Finding) -> Found<'_> {
    Found {
        code: finding.code,
        severity: finding.severity,
        message: &finding.message,
        span: finding.span,
        suggestion: finding.suggestion.as_deref(),
    }
}

/// A line that could not be looked at is refused: what was not reviewed is not run.
fn refuse(id: Option<&RawValue>, failure: &Failure, answers: &mut Answers) {
    answers.failed += 1;
    let (error, hint) = (Some(failure.what.as_str()), failure.hint.as_deref());
    write(&Reply { id, verdict: Verdict::Refused, findings: Vec::new(), error, hint }, answers);
}

fn write(reply: &Reply<'_>, answers: &mut Answers) {
    let before = answers.text.len();
    if serde_json::to_writer(&mut answers.text, reply).is_err() {
        // Nothing in a reply can fail to be written as JSON; an answer that is cut short must not go out all the same.
        answers.text.truncate(before);
        answers.text.extend_from_slice(br#"{"id":null,"verdict":"refused","findings":[],"error":"the answer cannot be written"}"#);
    }
    answers.text.push(b'\n');
}
