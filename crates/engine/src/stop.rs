//! When running work must end: the clock, the user, or nobody waiting for it any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Cancel, Error};

/// How whoever does the work is told that it must end, where looking at [`Stop::reason`] now and then is too slow.
type Call = Box<dyn Fn() + Send>;

#[derive(Clone)]
pub(crate) struct Stop {
    time: Duration,
    /// None if the limit is too far off for the clock to express.
    deadline: Option<Instant>,
    cancel: Cancel,
    abandoned: Cancel,
    call: Arc<Mutex<Option<Call>>>,
    /// None if steps are not limited.
    steps: Option<Steps>,
}

/// Counts the steps of a query against a limit. Clones share one count.
#[derive(Clone)]
pub(crate) struct Steps {
    limit: u64,
    taken: Arc<AtomicU64>,
}

impl Steps {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, taken: Arc::default() }
    }

    /// Counts from 0 again: what a new connection does before the query, a pooled one has done already.
    pub(crate) fn restart(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }
}

/// Ends the work when the future that waits for it is dropped; a thread cannot be dropped.
pub(crate) struct StopOnDrop(pub(crate) Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abandoned.cancel();
        self.0.call();
    }
}

impl Stop {
    /// The clock starts now.
    pub(crate) fn new(time: Duration, cancel: Cancel) -> Self {
        let deadline = Instant::now().checked_add(time);
        Self { time, deadline, cancel, abandoned: Cancel::new(), call: Arc::default(), steps: None }
    }

    /// For tidying up, which nobody waits for and which must not take long.
    pub(crate) fn brief() -> Self {
        Self::new(Duration::from_secs(5), Cancel::new())
    }

    /// With a limit on steps.
    pub(crate) fn with_steps(mut self, steps: Option<Steps>) -> Self {
        self.steps = steps;
        self
    }

    /// Counts steps that were taken.
    pub(crate) fn count(&self, steps: u64) {
        if let Some(counted) = &self.steps {
            counted.taken.fetch_add(steps, Ordering::Relaxed);
        }
    }

    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// How much time is left, at most so much.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        self.deadline.map_or(most, |deadline| deadline.saturating_duration_since(Instant::now()).min(most))
    }

    /// Why the work must end, if it must.
    pub(crate) fn reason(&self) -> Option<Error> {
        if self.cancel.is_cancelled() || self.abandoned.is_cancelled() {
            Some(Error::Cancelled)
        } else if let Some(steps) =
            self.steps.as_ref().filter(|steps| steps.taken.load(Ordering::Relaxed) > steps.limit)
        {
            Some(Error::StepLimit { steps: steps.limit })
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Error::TimedOut { after: self.time })
        } else {
            None
        }
    }

    /// From now on, this is called too when the work must end.
    pub(crate) fn answer_with(&self, call: impl Fn() + Send + 'static) {
        *self.calls() = Some(Box::new(call));
    }

    /// Nobody is called any more.
    pub(crate) fn answer_no_more(&self) {
        *self.calls() = None;
    }

    /// Tells whoever does the work.
    pub(crate) fn call(&self) {
        if let Some(call) = &*self.calls() {
            call();
        }
    }

    // Whoever panicked while holding it has set it, or has not.
    fn calls(&self) -> MutexGuard<'_, Option<Call>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
