//! Clock abstraction, so that tests need not wait.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Source of time.
pub trait Clock: Send + Sync {
    /// Returns monotonic milliseconds since an arbitrary start, for measuring intervals.
    fn now_ms(&self) -> u64;

    /// Returns milliseconds since the Unix epoch, for display. May jump.
    fn unix_ms(&self) -> u64;
}

/// Clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        millis(START.get_or_init(Instant::now).elapsed())
    }

    fn unix_ms(&self) -> u64 {
        millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    }
}

/// Clock that only advances manually.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Creates a clock at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Advances the clock.
    pub fn advance(&self, time: Duration) {
        self.0.fetch_add(millis(time), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn unix_ms(&self) -> u64 {
        self.now_ms()
    }
}

/// Converts a duration to whole milliseconds; saturates after 500 million years.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
