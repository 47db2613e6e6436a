//! Runs blocking work outside the threads of the async runtime.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::deadline::{CancelOnDrop, Deadline};
use crate::{EngineFuture, Error};

/// Interval at which the waiting side checks the deadline and the cancel flag.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time that cancelled work gets to finish. If it finishes, its connection returns to the pool.
const GRACE_PERIOD: Duration = Duration::from_millis(200);

/// Maximum number of idle threads. Starting a thread takes longer than most queries.
const MAX_IDLE_THREADS: usize = 4;

type BlockingJob = Box<dyn FnOnce() + Send>;

/// Channels to the idle threads.
static IDLE_THREADS: Mutex<Vec<mpsc::Sender<BlockingJob>>> = Mutex::new(Vec::new());

fn idle_threads() -> MutexGuard<'static, Vec<mpsc::Sender<BlockingJob>>> {
    IDLE_THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a job on an idle thread, or on a new one.
pub(crate) fn spawn_blocking(mut job: BlockingJob) -> io::Result<()> {
    loop {
        let Some(waiting) = idle_threads().pop() else { break };
        match waiting.send(job) {
            Ok(()) => return Ok(()),
            Err(mpsc::SendError(unsent)) => job = unsent,
        }
    }
    let (way, jobs) = mpsc::channel::<BlockingJob>();
    let work = move || {
        let mut job = job;
        loop {
            job();
            {
                let mut idle = idle_threads();
                if idle.len() >= MAX_IDLE_THREADS {
                    return;
                }
                idle.push(way.clone());
            }
            match jobs.recv() {
                Ok(next) => job = next,
                Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("engine".into()).spawn(work).map(drop)
}

/// Runs work on a separate thread, or inline if there is no async runtime.
///
/// The work is cancelled at its deadline and when the returned future is dropped. A panic becomes
/// an error.
///
/// Work cannot always be cancelled at once: SQLite does not check for interruption within a single
/// instruction, which a query can make arbitrarily long. In that case the thread is abandoned
/// together with its connection, and the call fails with a timeout. The thread does not belong to
/// the runtime, which would otherwise wait for it on shutdown.
pub(crate) fn run_blocking<'a, T: Send + 'static>(
    deadline: Deadline,
    work: impl FnOnce(&Deadline) -> Result<T, Error> + Send + 'static,
) -> EngineFuture<'a, T> {
    Box::pin(async move {
        let guard = CancelOnDrop(deadline.clone());
        let waiting = deadline.clone();
        let work = move || match catch_unwind(AssertUnwindSafe(|| work(&deadline))) {
            // Some work only knows that it was interrupted; the deadline knows the reason.
            Ok(Err(Error::Cancelled)) => Err(deadline.stop_reason().unwrap_or(Error::Cancelled)),
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Internal("the engine failed internally on this query".into())),
        };
        let outcome = if has_runtime() {
            let (done, outcome) = oneshot::channel();
            // The receiver may already be dropped.
            let begun = spawn_blocking(Box::new(move || drop(done.send(work()))));
            match begun {
                Ok(()) => wait_for_outcome(&waiting, outcome).await,
                Err(error) => Err(Error::Internal(format!("cannot start a thread: {error}"))),
            }
        } else {
            work()
        };
        drop(guard);
        outcome
    })
}

/// Like [`run_blocking`], limited to the permits of a semaphore. An abandoned thread keeps its
/// permit until it finishes.
pub(crate) fn run_blocking_with_permit<'a, T: Send + 'static>(
    deadline: Deadline,
    permits: &Arc<Semaphore>,
    work: impl FnOnce(&Deadline) -> Result<T, Error> + Send + 'static,
) -> EngineFuture<'a, T> {
    let turns = Arc::clone(permits);
    Box::pin(async move {
        let turn = if has_runtime() { Some(acquire_permit(&deadline, turns).await?) } else { None };
        let work = move |stop: &Deadline| {
            let outcome = work(stop);
            drop(turn);
            outcome
        };
        run_blocking(deadline, work).await
    })
}

fn has_runtime() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

async fn acquire_permit(deadline: &Deadline, permits: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    let mut turn = std::pin::pin!(permits.acquire_owned());
    loop {
        if let Some(reason) = deadline.stop_reason() {
            return Err(reason);
        }
        tokio::select! {
            biased;
            turn = &mut turn => return turn.map_err(|_| Error::Internal("the engine is closed".into())),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Waits for the outcome until the deadline plus a grace period.
async fn wait_for_outcome<T>(
    deadline: &Deadline,
    mut outcome: oneshot::Receiver<Result<T, Error>>,
) -> Result<T, Error> {
    let mut stopped_at: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            outcome = &mut outcome => return outcome.unwrap_or(Err(Error::Cancelled)),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        let Some(reason) = deadline.stop_reason() else { continue };
        if stopped_at.get_or_insert_with(Instant::now).elapsed() >= GRACE_PERIOD {
            return Err(reason);
        }
        deadline.notify();
    }
}
