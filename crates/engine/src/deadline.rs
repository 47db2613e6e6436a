//! Conditions that end running work: timeout, cancellation, step limit, or a dropped future.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{CancelFlag, Error};

/// Callback that interrupts work for which polling [`Deadline::stop_reason`] is too slow.
type CancelHook = Box<dyn Fn() + Send>;

#[derive(Clone)]
pub(crate) struct Deadline {
    time_limit: Duration,
    /// `None` if the limit is too far in the future for `Instant` to represent.
    expires_at: Option<Instant>,
    cancel: CancelFlag,
    abandoned: CancelFlag,
    cancel_hook: Arc<Mutex<Option<CancelHook>>>,
    /// `None` if steps are not limited.
    steps: Option<StepCounter>,
}

/// Counts the steps of a query against a limit. Clones share one count.
#[derive(Clone)]
pub(crate) struct StepCounter {
    limit: u64,
    taken: Arc<AtomicU64>,
}

impl StepCounter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, taken: Arc::default() }
    }

    /// Resets the count to 0, to exclude the setup of a new connection.
    ///
    /// A pooled connection does not repeat the setup, so counting it would make the limit depend on
    /// the pool.
    pub(crate) fn reset(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }
}

/// Cancels work when the future that waits for it is dropped, because a thread cannot be dropped.
pub(crate) struct CancelOnDrop(pub(crate) Deadline);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.abandoned.cancel();
        self.0.notify();
    }
}

impl Deadline {
    /// Creates a deadline that starts counting immediately.
    pub(crate) fn new(time: Duration, cancel: CancelFlag) -> Self {
        let deadline = Instant::now().checked_add(time);
        Self {
            time_limit: time,
            expires_at: deadline,
            cancel,
            abandoned: CancelFlag::new(),
            cancel_hook: Arc::default(),
            steps: None,
        }
    }

    /// Creates a short deadline for cleanup that runs in the background.
    pub(crate) fn short() -> Self {
        Self::new(Duration::from_secs(5), CancelFlag::new())
    }

    /// Adds a limit on steps.
    pub(crate) fn with_steps(mut self, steps: Option<StepCounter>) -> Self {
        self.steps = steps;
        self
    }

    /// Adds to the number of steps taken.
    pub(crate) fn add_steps(&self, steps: u64) {
        if let Some(counted) = &self.steps {
            counted.taken.fetch_add(steps, Ordering::Relaxed);
        }
    }

    pub(crate) fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Returns the remaining time, capped at `max`.
    pub(crate) fn remaining(&self, max: Duration) -> Duration {
        self.expires_at.map_or(max, |deadline| deadline.saturating_duration_since(Instant::now()).min(max))
    }

    /// Returns the reason for which the work must end, if there is one.
    pub(crate) fn stop_reason(&self) -> Option<Error> {
        if self.cancel.is_cancelled() || self.abandoned.is_cancelled() {
            Some(Error::Cancelled)
        } else if let Some(steps) =
            self.steps.as_ref().filter(|steps| steps.taken.load(Ordering::Relaxed) > steps.limit)
        {
            Some(Error::StepLimit { steps: steps.limit })
        } else if self.expires_at.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Error::TimedOut { after: self.time_limit })
        } else {
            None
        }
    }

    /// Sets the hook that is called when the work must end.
    pub(crate) fn on_cancel(&self, call: impl Fn() + Send + 'static) {
        *self.cancel_hook() = Some(Box::new(call));
    }

    pub(crate) fn clear_cancel_hook(&self) {
        *self.cancel_hook() = None;
    }

    /// Calls the cancel hook, if one is set.
    pub(crate) fn notify(&self) {
        if let Some(call) = &*self.cancel_hook() {
            call();
        }
    }

    // A panic cannot leave the hook half-written, so a poisoned lock is safe to use.
    fn cancel_hook(&self) -> MutexGuard<'_, Option<CancelHook>> {
        self.cancel_hook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
