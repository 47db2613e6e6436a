//! When a running query must end: the clock, the user, or nobody waiting for it any more.

use std::time::{Duration, Instant};

use crate::{Cancel, Error};

#[derive(Clone)]
pub(super) struct Stop {
    time: Duration,
    /// None if the limit is too far off for the clock to express.
    deadline: Option<Instant>,
    cancel: Cancel,
    abandoned: Cancel,
}

/// Ends the query when the future that waits for it is dropped; a thread cannot be dropped.
pub(super) struct StopOnDrop(pub(super) Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abandoned.cancel();
    }
}

impl Stop {
    /// The clock starts now.
    pub(super) fn new(time: Duration, cancel: Cancel) -> Self {
        Self { time, deadline: Instant::now().checked_add(time), cancel, abandoned: Cancel::new() }
    }

    /// For tidying up, which nobody waits for and which must not take long.
    pub(super) fn brief() -> Self {
        Self::new(Duration::from_secs(5), Cancel::new())
    }

    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// How much time is left, at most so much.
    pub(super) fn left(&self, most: Duration) -> Duration {
        self.deadline.map_or(most, |deadline| deadline.saturating_duration_since(Instant::now()).min(most))
    }

    /// Why the query must end, if it must.
    pub(super) fn reason(&self) -> Option<Error> {
        if self.cancel.is_cancelled() || self.abandoned.is_cancelled() {
            Some(Error::Cancelled)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Error::TimedOut { after: self.time })
        } else {
            None
        }
    }
}
