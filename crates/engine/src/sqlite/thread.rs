//! Work that blocks, kept off the threads on which others wait.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::stop::{Stop, StopOnDrop};
use crate::{Answer, Cancel, Error, Limits};

/// Does the work on a thread that may block, or here and now where no runtime is there to lend one. The work is told when it
/// must end, which is also when nobody waits for it any more; should it stumble, that is an error and no panic.
pub(super) fn blocking<'a, T: Send + 'static>(
    limits: &Limits,
    cancel: &Cancel,
    work: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> Answer<'a, T> {
    let stop = Stop::new(limits.time, cancel.clone());
    Box::pin(async move {
        let guard = StopOnDrop(stop.clone());
        let work = move || match catch_unwind(AssertUnwindSafe(|| work(&stop))) {
            // SQLite only knows that it was interrupted; the clock and the flags know why.
            Ok(Err(Error::Cancelled)) => Err(stop.reason().unwrap_or(Error::Cancelled)),
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Internal("the SQLite engine stumbled over this query".into())),
        };
        let outcome = match tokio::runtime::Handle::try_current() {
            // The runtime may be shutting down: then the work was never begun.
            Ok(runtime) => runtime.spawn_blocking(work).await.unwrap_or(Err(Error::Cancelled)),
            Err(_) => work(),
        };
        drop(guard);
        outcome
    })
}
