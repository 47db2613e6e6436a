//! Work that blocks, kept off the threads on which others wait.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::stop::{Stop, StopOnDrop};
use crate::{Answer, Error};

/// How often the side that waits looks at the clock and the flag.
const LOOK: Duration = Duration::from_millis(10);
/// How long work that was told to end is waited for. One that ends by itself leaves its connection for the next.
const GRACE: Duration = Duration::from_millis(200);

/// So many threads wait for more work. Starting one takes longer than most queries do.
const MOST_IDLE: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

/// The ways to the threads that wait.
static IDLE: Mutex<Vec<mpsc::Sender<Job>>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<mpsc::Sender<Job>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the work to a thread that waits, or to a new one.
pub(crate) fn hand_over(mut job: Job) -> io::Result<()> {
    loop {
        let Some(waiting) = idle().pop() else { break };
        match waiting.send(job) {
            Ok(()) => return Ok(()),
            Err(mpsc::SendError(unsent)) => job = unsent,
        }
    }
    let (way, jobs) = mpsc::channel::<Job>();
    let work = move || {
        let mut job = job;
        loop {
            job();
            {
                let mut idle = idle();
                if idle.len() >= MOST_IDLE {
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

/// Does the work on a thread of its own, or here and now where no runtime is there to wait on. The work is told when it
/// must end, which is also when nobody waits for it any more; should it stumble, that is an error and no panic.
///
/// Not all work hears that at once: SQLite hears nothing while it is inside one instruction, which a query can make very long.
/// Then the thread is left behind with its connection, and the answer is that the time is over. It is no thread of the runtime,
/// which would wait for it at its end.
pub(crate) fn blocking<'a, T: Send + 'static>(
    stop: Stop,
    work: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> Answer<'a, T> {
    Box::pin(async move {
        let guard = StopOnDrop(stop.clone());
        let waiting = stop.clone();
        let work = move || match catch_unwind(AssertUnwindSafe(|| work(&stop))) {
            // Some only know that they were interrupted; the clock and the flags know why.
            Ok(Err(Error::Cancelled)) => Err(stop.reason().unwrap_or(Error::Cancelled)),
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Internal("the engine stumbled over this query".into())),
        };
        let outcome = if has_runtime() {
            let (done, outcome) = oneshot::channel();
            // Nobody may be there any more to take the outcome.
            let begun = hand_over(Box::new(move || drop(done.send(work()))));
            match begun {
                Ok(()) => wait(&waiting, outcome).await,
                Err(error) => Err(Error::Internal(format!("no thread can be started: {error}"))),
            }
        } else {
            work()
        };
        drop(guard);
        outcome
    })
}

/// The same, for so many at once as there are turns; the others wait. A thread that is left behind keeps its turn until it is
/// done.
pub(crate) fn blocking_in_turn<'a, T: Send + 'static>(
    stop: Stop,
    turns: &Arc<Semaphore>,
    work: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> Answer<'a, T> {
    let turns = Arc::clone(turns);
    Box::pin(async move {
        let turn = if has_runtime() { Some(turn(&stop, turns).await?) } else { None };
        let work = move |stop: &Stop| {
            let outcome = work(stop);
            drop(turn);
            outcome
        };
        blocking(stop, work).await
    })
}

fn has_runtime() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

async fn turn(stop: &Stop, turns: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    let mut turn = std::pin::pin!(turns.acquire_owned());
    loop {
        if let Some(reason) = stop.reason() {
            return Err(reason);
        }
        tokio::select! {
            biased;
            turn = &mut turn => return turn.map_err(|_| Error::Internal("the engine is closed".into())),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Waits for the outcome, but not much longer than the work may take.
async fn wait<T>(stop: &Stop, mut outcome: oneshot::Receiver<Result<T, Error>>) -> Result<T, Error> {
    let mut told: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            outcome = &mut outcome => return outcome.unwrap_or(Err(Error::Cancelled)),
            () = tokio::time::sleep(LOOK) => {}
        }
        let Some(reason) = stop.reason() else { continue };
        if told.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            return Err(reason);
        }
        stop.call();
    }
}
