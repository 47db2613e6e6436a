//! One file of examples, used by sixty-four threads at once, in one process and in four.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use querymend_memory::{
    Error, Example, ExampleFilter, ExampleQuery, ExampleStore, ExampleUpdate, FileStore, VerificationStatus,
};
use querymend_model::StaticEmbedder;
use querymend_testing::watchdog::{THREADS, run_concurrently, run_watched};
use querymend_testing::{hang_timeout, is_full_suite};
use tokio::runtime::Runtime;

/// Examples of each thread alone, and examples that all threads add.
const OWN: usize = 6;
const COMMON: usize = 8;
/// So many times each thread uses the common ones.
const ROUNDS: usize = 3;
const PROCESSES: usize = 4;
/// Time that a store waits for the lock on its file before it refuses: `PATIENCE` in `src/file/form.rs`.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
const FILE: &str = "QUERYMEND_RACE_FILE";
const PROCESS: &str = "QUERYMEND_RACE_PROCESS";

/// Repeats a call that the store gave up only after its whole lock timeout, as it may on a slow machine. An earlier refusal is an
/// error.
async fn retry_lock_timeout<T, F>(mut call: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let begun = Instant::now();
    loop {
        let tried = Instant::now();
        let outcome = call().await;
        let is_slow = outcome.as_ref().is_err_and(Error::is_transient) && tried.elapsed() >= LOCK_TIMEOUT;
        if !is_slow || begun.elapsed() >= hang_timeout() {
            return outcome;
        }
    }
}

async fn open(path: &Path) -> FileStore {
    retry_lock_timeout(|| FileStore::open(path, Arc::new(StaticEmbedder::builtin().unwrap()))).await.unwrap()
}

fn example(question: &str) -> Example {
    Example::new(question, "SELECT 1", "shop", "sqlite")
}

fn own(thread: usize, at: usize) -> Example {
    example(&format!("How many parcels went to t{thread}x{at}z?"))
}

fn common() -> Vec<Example> {
    (0..COMMON).map(|at| example(&format!("How many letters came from c{at}y?"))).collect()
}

async fn nearest(store: &FileStore, question: &str) -> Option<Example> {
    let sought = ExampleQuery {
        question,
        database: "shop",
        dialect: None,
        only_database: false,
        only_verified: false,
        limit: 3,
    };
    store.search(&sought).await.unwrap().into_iter().next().map(|found| found.example)
}

/// What one thread does: adds, finds, verifies and forgets its own, and adds and counts what is everybody's. Gives back how many
/// examples were new.
async fn work(store: &FileStore, thread: usize) -> usize {
    let mut new = 0;
    let mut common = common();
    // Each has another order.
    common.rotate_left(thread % COMMON);
    for round in 0..ROUNDS {
        new += retry_lock_timeout(|| store.add(&common)).await.unwrap();
        let used: Vec<(&str, ExampleUpdate)> =
            common.iter().map(|one| (one.id.as_str(), ExampleUpdate { uses: 1, ..ExampleUpdate::default() })).collect();
        assert_eq!(retry_lock_timeout(|| store.update(&used)).await.unwrap(), COMMON);
        for at in (0..OWN).skip(round).step_by(ROUNDS) {
            let one = own(thread, at);
            let id = one.id.as_str();
            new += retry_lock_timeout(|| store.add(std::slice::from_ref(&one))).await.unwrap();
            // What is acknowledged is found, whatever others do.
            assert_eq!(nearest(store, &one.question).await.unwrap().id, id);
            let verified = [(
                id,
                ExampleUpdate { standing: Some(VerificationStatus::Verified), helped: 1, ..ExampleUpdate::default() },
            )];
            assert_eq!(retry_lock_timeout(|| store.update(&verified)).await.unwrap(), 1);
            if at % 2 == 1 {
                let removed = [id];
                assert_eq!(retry_lock_timeout(|| store.remove(&removed)).await.unwrap(), 1);
                assert_ne!(nearest(store, &one.question).await.unwrap().id, one.id, "it was forgotten");
            }
        }
    }
    new
}

/// Looks the file over after all have ended, as it is now and as it is when it is opened again.
async fn look_over(store: &FileStore, path: &Path, new: usize) {
    let left: Vec<Example> =
        (0..THREADS).flat_map(|thread| (0..OWN).step_by(2).map(move |at| own(thread, at))).collect();
    assert_eq!(new, COMMON + THREADS * OWN, "each is new once");
    let again = open(path).await;
    for store in [store, &again] {
        assert_eq!(store.count(&ExampleFilter::default()).await.unwrap(), COMMON + left.len());
        let kept = store.list(&ExampleFilter::default(), 0, usize::MAX).await.unwrap();
        let kept: BTreeMap<&str, &Example> = kept.iter().map(|one| (one.id.as_str(), one)).collect();
        assert_eq!(kept.len(), COMMON + left.len());
        for one in &common() {
            assert_eq!(kept[one.id.as_str()].uses as usize, THREADS * ROUNDS, "no count is lost");
        }
        for one in &left {
            let kept = kept[one.id.as_str()];
            assert_eq!((kept.standing, kept.helped, &kept.question), (VerificationStatus::Verified, 1, &one.question));
            assert_eq!(nearest(store, &one.question).await.unwrap().id, one.id);
        }
        assert_eq!(store.size().examples, COMMON + left.len(), "what is searched is what is kept");
    }
}

/// Writes of all threads together.
fn writes() -> usize {
    THREADS * (2 * ROUNDS + 2 * OWN + OWN / 2)
}

#[test]
fn threads_of_one_process_lose_no_writes() {
    run_watched("a file of examples", || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("examples.db");
        let runtime = Runtime::new().unwrap();
        let store = runtime.block_on(open(&path));
        let new = run_concurrently(|thread| runtime.block_on(work(&store, thread))).into_iter().sum();
        runtime.block_on(look_over(&store, &path, new));
        println!("{THREADS} threads, {} writes, {new} new, none lost", writes());
    });
}

/// One of the processes. It does nothing where it is run as a test.
#[test]
fn one_process_of_several() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let process: usize = std::env::var(PROCESS).unwrap().parse().unwrap();
    run_watched("one process of several", move || {
        let runtime = Runtime::new().unwrap();
        let store = runtime.block_on(open(path.as_ref()));
        let each = THREADS / PROCESSES;
        let new: usize = thread::scope(|scope| {
            let (runtime, store) = (&runtime, &store);
            let begin = |thread| scope.spawn(move || runtime.block_on(work(store, process * each + thread)));
            let threads: Vec<_> = (0..each).map(begin).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        println!("\nnew {new}");
    });
}

#[test]
fn threads_of_four_processes_lose_no_writes() {
    run_watched("a file of several processes", || {
        let folder = tempfile::tempdir().unwrap();
        // None of them finds the file made.
        let path = folder.path().join("examples.db");
        let begin = |process: usize| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "race::one_process_of_several", "--nocapture"])
                .env(FILE, &path)
                .env(PROCESS, process.to_string())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        };
        let processes: Vec<_> = (0..PROCESSES).map(begin).collect();
        let mut new = 0;
        for process in processes {
            let out = process.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&out.stdout);
            assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
            new += said.lines().find_map(|line| line.strip_prefix("new ")).unwrap().parse::<usize>().unwrap();
        }
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async { look_over(&open(&path).await, &path, new).await });
        println!("{PROCESSES} processes with {} threads each, {} writes, {new} new", THREADS / PROCESSES, writes());
    });
}

#[test]
fn creates_a_new_file_concurrently() {
    let files = if is_full_suite() { 20 } else { 5 };
    run_watched("a new file", move || {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::new().unwrap();
        for file in 0..files {
            let path = folder.path().join(format!("{file}.db"));
            let opened = run_concurrently(|thread| {
                runtime.block_on(async {
                    let embedder = || Arc::new(StaticEmbedder::builtin().unwrap());
                    let store = retry_lock_timeout(|| FileStore::open(&path, embedder())).await?;
                    let one = [own(thread, 0)];
                    retry_lock_timeout(|| store.add(&one)).await
                })
            });
            let refused: Vec<_> = opened.iter().filter_map(|one| one.as_ref().err()).collect();
            assert!(refused.is_empty(), "{} of {THREADS}: {refused:?}", refused.len());
            assert_eq!(
                runtime.block_on(async { open(&path).await.count(&ExampleFilter::default()).await.unwrap() }),
                THREADS
            );
        }
        println!("{files} files, each begun by {THREADS} threads at once");
    });
}
