//! Work that blocks, kept off the threads on which others wait.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::stop::{Stop, StopOnDrop};
use crate::{Answer, Cancel, Error, Limits};

/// How often the side that waits looks at the clock and the flag.
const LOOK: Duration = Duration::from_millis(10);
/// How long a query that was told to end is waited for. One that ends by itself leaves its connection for the next.
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
fn hand_over(mut job: Job) -> io::Result<()> {
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
    thread::Builder::new().name("sqlite".into()).spawn(work).map(drop)
}

/// Does the work on a thread of its own, or here and now where no runtime is there to wait on. The work is told when it
/// must end, which is also when nobody waits for it any more; should it stumble, that is an error and no panic.
///
/// SQLite hears nothing while it is inside one instruction, which a query can make very long. Then the thread is left
/// behind with its connection, and the answer is that the time is over. It is no thread of the runtime, which would wait
/// for it at its end.
pub(super) fn blocking<'a, T: Send + 'static>(
    limits: &Limits,
    cancel: &Cancel,
    work: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> Answer<'a, T> {
    let stop = Stop::new(limits.time, cancel.clone());
    Box::pin(async move {
        let guard = StopOnDrop(stop.clone());
        let waiting = stop.clone();
        let work = move || match catch_unwind(AssertUnwindSafe(|| work(&stop))) {
            // SQLite only knows that it was interrupted; the clock and the flags know why.
            Ok(Err(Error::Cancelled)) => Err(stop.reason().unwrap_or(Error::Cancelled)),
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Internal("the SQLite engine stumbled over this query".into())),
        };
        let outcome = if tokio::runtime::Handle::try_current().is_ok() {
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

/// Waits for the outcome, but not much longer than the query may run.
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
        stop.interrupt();
    }
}
