//! When a running query must end: the clock, the user, or nobody waiting for it any more.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, InterruptHandle};

use crate::{Cancel, Error};

#[derive(Clone)]
pub(super) struct Stop {
    time: Duration,
    /// None if the limit is too far off for the clock to express.
    deadline: Option<Instant>,
    cancel: Cancel,
    abandoned: Cancel,
    /// The connection that works on the query now, to be interrupted from the side that waits.
    working: Arc<Mutex<Option<InterruptHandle>>>,
}

/// Ends the query when the future that waits for it is dropped; a thread cannot be dropped.
pub(super) struct StopOnDrop(pub(super) Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abandoned.cancel();
        self.0.interrupt();
    }
}

impl Stop {
    /// The clock starts now.
    pub(super) fn new(time: Duration, cancel: Cancel) -> Self {
        Self {
            time,
            deadline: Instant::now().checked_add(time),
            cancel,
            abandoned: Cancel::new(),
            working: Arc::default(),
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.time
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

    /// Lets SQLite ask after every so many of its instructions, also while it prepares a statement.
    pub(super) fn watch(&self, connection: &mut Connection, instructions: i32) -> rusqlite::Result<()> {
        *self.working.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection.get_interrupt_handle());
        let stop = self.clone();
        connection.progress_handler(instructions, Some(move || stop.reason().is_some()))
    }

    /// Tells SQLite to end at its next jump, however few instructions it has done since it last asked.
    pub(super) fn interrupt(&self) {
        if let Some(working) = &*self.working.lock().unwrap_or_else(PoisonError::into_inner) {
            working.interrupt();
        }
    }

    /// Takes the watch off, so that a pooled connection does not keep the last query's deadline.
    pub(super) fn forget(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        *self.working.lock().unwrap_or_else(PoisonError::into_inner) = None;
        connection.progress_handler(0, None::<fn() -> bool>)
    }
}
