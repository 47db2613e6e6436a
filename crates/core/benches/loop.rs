//! What the loop itself costs for each question: the model answers at once, the database is a small SQLite file. The first draft
//! names a column of a table that nothing ties to the query, so no rule can mend it, and the model is asked a second time.
//!
//! `cargo bench -p querymend --bench loop`; beside LangGraph: `python3 crates/core/benches/langgraph_loop.py`.

// A measurement talks to whoever started it, and stops where it cannot go on.
#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used)]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;
use querymend::{AnswerStatus, Config, Querymend};
use querymend_engine::{CancelFlag, Engine, EngineFuture, Limits};
use querymend_model::{BoxFuture, CancelSignal, Completion, CompletionRequest, Model};
use querymend_sql::{Approved, Dialect, Rows, Schema};

/// As the program has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const QUESTIONS: usize = 2_000;
const ASKED: &str = "How much did each customer order in all?";
const FIRST: &str =
    "SELECT c.name, sum(o.total), rain FROM customers c JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.name";
const SECOND: &str =
    "SELECT c.name, sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.name";

/// A model that has both drafts ready.
struct Instantly;

impl Model for Instantly {
    fn name(&self) -> &str {
        "instantly"
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        _: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let text = if request.messages.len() == 2 { FIRST } else { SECOND };
            watch(text);
            Ok(Completion::text(text))
        })
    }
}

/// A database that notes how long its calls take, in nanoseconds.
struct Timed {
    inner: Box<dyn Engine>,
    spent: AtomicU64,
    calls: AtomicU64,
}

impl Timed {
    fn timed<'a, T: Send + 'a>(&'a self, call: EngineFuture<'a, T>) -> EngineFuture<'a, T> {
        Box::pin(async move {
            let began = Instant::now();
            let outcome = call.await;
            self.spent.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            self.calls.fetch_add(1, Ordering::Relaxed);
            outcome
        })
    }
}

impl Engine for Timed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dialect(&self) -> &'static Dialect {
        self.inner.dialect()
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        self.inner.schema()
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        self.timed(self.inner.probe(query))
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        self.timed(self.inner.execute(query, limits, cancel))
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.inner.test_connection()
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.db");
    let writer = rusqlite::Connection::open(&file).expect("a file");
    writer.execute_batch(include_str!("shop.sql")).expect("the shop");
    drop(writer);

    let (whole, engine, calls) = measure(&file, |querymend| at_once(querymend.ask(ASKED)).unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (in_runtime, engine_in_runtime, _) = measure(&file, |querymend| runtime.block_on(querymend.ask(ASKED)));
    let sqlite = sqlite_alone(&file);

    println!("{QUESTIONS} questions, two attempts each, {calls} database calls each; medians");
    println!();
    println!("| what | µs per question |");
    println!("|---|---:|");
    println!("| Querymend, on the calling thread | {whole:.1} |");
    println!("| of it: database calls | {engine:.1} |");
    println!("| of it: everything else | {:.1} |", whole - engine);
    println!("| the same query by SQLite alone, connection open | {sqlite:.1} |");
    println!("| Querymend, in a tokio runtime (database calls on another thread) | {in_runtime:.1} |");
    println!("| of it: database calls, with the way to that thread and back | {engine_in_runtime:.1} |");
}

/// Median microseconds of a question, of the database calls in it, and how many those are.
fn measure(file: &std::path::Path, ask: impl Fn(&Querymend) -> querymend::Answer) -> (f64, f64, u64) {
    let inner = querymend_engine::open(&file.to_string_lossy()).expect("the shop");
    let timed = Arc::new(Timed { inner, spent: AtomicU64::new(0), calls: AtomicU64::new(0) });
    let querymend = Querymend::new(timed.clone(), Arc::new(Instantly), Config::default());
    for _ in 0..QUESTIONS / 10 {
        let answer = ask(&querymend);
        assert_eq!((answer.status, answer.attempts.len()), (AnswerStatus::Answered, 2), "{answer:?}");
    }
    let (mut questions, mut database) = (Vec::new(), Vec::new());
    timed.calls.store(0, Ordering::Relaxed);
    for _ in 0..QUESTIONS {
        timed.spent.store(0, Ordering::Relaxed);
        let began = Instant::now();
        ask(&querymend);
        questions.push(began.elapsed());
        database.push(Duration::from_nanos(timed.spent.load(Ordering::Relaxed)));
    }
    (median(questions), median(database), timed.calls.load(Ordering::Relaxed) / QUESTIONS as u64)
}

/// Prepares, runs and reads the query that answers, as plainly as can be.
fn sqlite_alone(file: &std::path::Path) -> f64 {
    let shop = rusqlite::Connection::open(file).expect("the shop");
    let once = || {
        let began = Instant::now();
        let mut statement = shop.prepare(SECOND).expect("it is SQL");
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, f64>(1)?));
        let rows: Vec<(String, f64)> = statement.query_map([], read).expect("it runs").map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        began.elapsed()
    };
    median((0..QUESTIONS).map(|_| once()).collect())
}

/// Without a runtime nothing ever waits: the engine works here and now. `None` if something waited after all.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
