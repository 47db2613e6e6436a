//! Threads that wait for each other would wait for ever: a test of them fails instead, and says so.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// So many threads are at it at once.
pub const THREADS: usize = 64;

/// Nothing that is tried here takes a tenth of this, unless the disk is very slow.
const PATIENCE: Duration = Duration::from_secs(600);

/// Does the work on a thread of its own, and fails where it does not come to an end.
pub fn watched<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    let worker = thread::spawn(move || {
        let out = work();
        done.send(()).ok();
        out
    });
    if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        panic!("{what}: not done after {} s: its threads wait for each other", PATIENCE.as_secs());
    }
    worker.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Does the same in all threads, which begin together, and gives back what came of it in each.
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
