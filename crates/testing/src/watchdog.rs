//! Runs work on many threads concurrently, and fails on a deadlock instead of waiting forever.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::timing::scaled;

/// Number of threads that [`run_concurrently`] starts.
pub const THREADS: usize = 64;

/// Ten times as long as any multi-threaded test takes on the reference machine, even with a slow
/// disk.
const DEADLOCK_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs `work` on its own thread, and panics if it does not finish in time.
pub fn run_watched<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    let worker = thread::spawn(move || {
        let out = work();
        done.send(()).ok();
        out
    });
    let timeout = scaled(DEADLOCK_TIMEOUT);
    if ended.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
        panic!("{what}: not done after {} s: its threads wait for each other", timeout.as_secs());
    }
    worker.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Runs `work` on all threads, which start together, and returns their results.
pub fn run_concurrently<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        let begin = |thread| {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(thread)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(begin).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
