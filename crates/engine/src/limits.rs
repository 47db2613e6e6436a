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
    /// Maximum number of steps that the database may take, or none. A step is an instruction of SQLite's virtual machine: the
    /// same query on the same file takes the same number of them however busy the machine is. Other databases ignore it.
    pub steps: Option<u64>,
}

/// Maximum number of steps of a lookup: enough to scan about two million rows of a table.
const MAX_LOOKUP_STEPS: u64 = 10_000_000;
/// Safety limit for a lookup on a server that hangs. A lookup on SQLite ends by its steps long before.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 64 << 20, time: Duration::from_secs(30), memory: 512 << 20, steps: None }
    }
}

impl Limits {
    /// Returns the limits of a query that settles a tie or a doubt by looking whether something is there.
    ///
    /// It is bounded by steps, so that whether it is answered depends on the database and never on the load of the machine.
    pub fn lookup(rows: usize) -> Self {
        let steps = Some(MAX_LOOKUP_STEPS);
        Self { rows, time: LOOKUP_TIMEOUT, memory: usize::MAX, steps, ..Self::default() }
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
