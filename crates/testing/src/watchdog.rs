//! Runs work on many threads at once, and fails where they deadlock instead of waiting for ever.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::timing::scaled;

/// Number of threads that [`together`] starts.
pub const THREADS: usize = 64;

/// Ten times as long as any test of threads takes on the reference machine, even where the disk is slow.
const DEADLOCK_TIMEOUT: Duration = Duration::from_secs(600);

/// Does the work on a thread of its own, and panics where it does not come to an end.
pub fn watched<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
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

/// Does the same in all threads, which begin together, and returns what came of it in each.
pub fn together<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
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
