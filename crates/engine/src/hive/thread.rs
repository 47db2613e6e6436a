//! Work that blocks, kept off the threads on which others wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::stop::{Stop, StopOnDrop};
use crate::{Answer, Cancel, Error};

/// How often the side that waits looks at the clock and the flag.
const LOOK: Duration = Duration::from_millis(10);
/// How long work that was told to end is waited for. One that ends by itself leaves its session for the next.
const GRACE: Duration = Duration::from_millis(250);

/// Does the work on a thread of its own, or here and now where no runtime is there to wait on. So many at once as there are
/// permits; a thread that is left behind keeps its permit until it has told the server to stop.
pub(super) fn blocking<'a, T: Send + 'static>(
    time: Duration,
    cancel: &Cancel,
    permits: &Arc<Semaphore>,
    work: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> Answer<'a, T> {
    let cancel = cancel.clone();
    let permits = Arc::clone(permits);
    Box::pin(async move {
        let waits = tokio::runtime::Handle::try_current().is_ok();
        // Waiting for others is not running: the clock of the query starts when its turn comes.
        let permit = if waits { Some(turn(&Stop::new(time, cancel.clone()), permits).await?) } else { None };
        let stop = Stop::new(time, cancel);
        let guard = StopOnDrop(stop.clone());
        let waiting = stop.clone();
        let work = move || {
            let outcome = match catch_unwind(AssertUnwindSafe(|| work(&stop))) {
                Ok(outcome) => outcome,
                Err(_) => Err(Error::Internal("the engine for Spark and Hive stumbled over this query".into())),
            };
            drop(permit);
            outcome
        };
        let outcome = if waits {
            let (done, outcome) = oneshot::channel();
            // Nobody may be there any more to take the outcome.
            let begun = thread::Builder::new().name("hive".into()).spawn(move || drop(done.send(work())));
            match begun {
                Ok(_) => wait(&waiting, outcome).await,
                Err(error) => Err(Error::Internal(format!("no thread can be started: {error}"))),
            }
        } else {
            work()
        };
        drop(guard);
        outcome
    })
}

/// Waits for a permit.
async fn turn(stop: &Stop, permits: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    let mut permit = std::pin::pin!(permits.acquire_owned());
    loop {
        if let Some(reason) = stop.reason() {
            return Err(reason);
        }
        tokio::select! {
            biased;
            permit = &mut permit => {
                return permit.map_err(|_| Error::Internal("the engine for Spark and Hive is closed".into()));
            }
            () = tokio::time::sleep(LOOK) => {}
        }
    }
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
    }
}
