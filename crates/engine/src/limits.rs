//! How far a query may go, and the means to stop it earlier.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a query may cost. More rows or bytes cut the answer short; more time ends the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most rows that are given back.
    pub rows: usize,
    /// The most memory that the rows given back may take, in bytes.
    pub bytes: usize,
    /// The longest that a query may run.
    pub time: Duration,
    /// The most memory that the database may use on the way, in bytes. SQLite keeps one account for the whole program: the
    /// least that any query was allowed holds for all that follow, also for those that are allowed more.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 64 << 20, time: Duration::from_secs(30), memory: 512 << 20 }
    }
}

impl Limits {
    /// For a query that only looks whether something is there, to settle a tie or a doubt: it must be answered soon, or the
    /// tie stays one.
    pub fn lookup(rows: usize) -> Self {
        Self { rows, time: Duration::from_millis(500), memory: usize::MAX, ..Self::default() }
    }
}

/// A way to stop a query from elsewhere: clones share one flag, and what is cancelled stays cancelled.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// One that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops every query that holds a clone of this one.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
