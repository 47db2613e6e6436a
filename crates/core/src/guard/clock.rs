//! Time, so that tests need not wait for it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// What time it is.
pub trait Clock: Send + Sync {
    /// Milliseconds since some moment. They never run backwards, so that waits can be measured by them.
    fn now_ms(&self) -> u64;

    /// Milliseconds since 1970, for people to read. They may jump.
    fn unix_ms(&self) -> u64;
}

/// The machine's own clock.
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

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// One that stands at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves it on.
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

/// A duration in whole milliseconds; longer than 500 million years is not told apart.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
