//! Resource limits and cancellation of queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Resource limits of a query. Excess rows or bytes truncate the result; excess time ends the
/// query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of rows returned.
    pub rows: usize,
    /// Maximum memory of the returned rows, in bytes.
    pub bytes: usize,
    /// Maximum run time.
    pub time: Duration,
    /// Maximum memory that the database may use while it runs the query, in bytes. SQLite has one
    /// limit per process: the lowest limit of any query applies to all later ones, including those
    /// with a higher limit.
    pub memory: usize,
    /// Maximum number of steps, or `None` for no limit. A step is an instruction of SQLite's
    /// virtual machine: the same query on the same file takes the same number of steps regardless
    /// of load. Other databases ignore it.
    pub steps: Option<u64>,
}

/// Maximum number of steps of a lookup: enough to scan about two million rows of a table.
const MAX_LOOKUP_STEPS: u64 = 10_000_000;
/// Timeout of a lookup on a server that hangs. A lookup on SQLite reaches its step limit long
/// before.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 10_000, bytes: 64 << 20, time: Duration::from_secs(30), memory: 512 << 20, steps: None }
    }
}

impl Limits {
    /// Returns the limits of a lookup, a query that checks whether a value exists.
    ///
    /// Lookups resolve ambiguities. They are limited by steps, so that the outcome depends on the
    /// database and never on the load of the machine.
    pub fn lookup(rows: usize) -> Self {
        let steps = Some(MAX_LOOKUP_STEPS);
        Self { rows, time: LOOKUP_TIMEOUT, memory: usize::MAX, steps, ..Self::default() }
    }
}

/// Flag that cancels queries from elsewhere. Clones share one flag, and cancellation is permanent.
/// Synchronous: engines poll it, also on blocking threads.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every query that holds a clone of this flag.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`CancelFlag::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
