//! Circuit breaker: stops calling a tool that keeps failing, and probes its recovery.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::breaker_open::BreakerOpen;
use super::clock::{Clock, SystemClock, millis};
use super::settings::BreakerSettings;
use super::sync::{AtomicU64, Mutex, MutexGuard};

/// State of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls are admitted.
    Closed,
    /// Calls are rejected.
    Open,
    /// One call at a time is admitted to probe for recovery.
    HalfOpen,
}

/// State transition of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BreakerStateChange {
    /// Name of the tool.
    pub tool: String,
    /// State before the transition.
    pub from: BreakerState,
    /// State after the transition.
    pub to: BreakerState,
    /// Time of the transition, in milliseconds since the Unix epoch.
    pub at_unix_ms: u64,
}

/// Observer of state transitions.
///
/// Called in order, one transition at a time, without holding a lock, so it may call the breaker
/// itself. A transition may be reported with a short delay, and by another thread than the one that
/// made it.
pub type OnChange = Arc<dyn Fn(&BreakerStateChange) + Send + Sync>;

/// Statistics of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Breaker")]
pub struct BreakerStats {
    /// Name of the tool.
    pub tool: String,
    /// Current state.
    pub state: BreakerState,
    /// Number of failures since the last success.
    pub consecutive_failures: u32,
    /// Number of successes in the half-open state.
    pub probe_successes: u32,
    /// Number of times it opened since it was last closed; the back-off grows with it.
    pub consecutive_opens: u32,
    /// Total number of times it opened.
    pub opens: u64,
    /// Total number of successful calls.
    pub successes: u64,
    /// Total number of failed calls.
    pub failures: u64,
    /// Total number of rejected calls.
    pub rejected: u64,
    /// Time to wait before a retry, in milliseconds; 0 if a call would be admitted.
    pub retry_after_ms: u64,
    /// Time of the last failure, in milliseconds since the Unix epoch. Absent if there was none.
    pub last_failure_unix_ms: Option<u64>,
    /// Time of the last state transition, in milliseconds since the Unix epoch. Absent if there was
    /// none.
    pub last_change_unix_ms: Option<u64>,
}

/// Circuit breaker. Thread-safe.
///
/// Closed, it admits every call; 5 consecutive failures open it. Open, it rejects calls immediately
/// and returns the time to retry. After 30 s it is half-open and admits one call at a time: 2
/// successes close it, and a failure opens it again for twice as long, but at most 60 s
/// (exponential back-off). All figures are set by [`BreakerSettings`]. Time is only checked on use,
/// so an idle breaker costs nothing.
///
/// The result of a call only counts if the state has not changed since the call was admitted: stale
/// results neither close nor open a breaker.
pub struct Breaker {
    tool: String,
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    on_change: Option<OnChange>,
    /// Copy of [`BreakerInner::fast_path_state`]. While the tool is healthy, admitting a call takes
    /// one relaxed load and no lock.
    fast_path_state: AtomicU64,
    successes: AtomicU64,
    inner: Mutex<BreakerInner>,
}

const HEALTHY: u64 = 0;
const DEGRADED: u64 = 1;
const NOT_CLOSED: u64 = 2;

struct BreakerInner {
    state: BreakerState,
    /// Number of state transitions, to detect stale results.
    generation: u64,
    consecutive_failures: u32,
    probe_successes: u32,
    is_probing: bool,
    consecutive_opens: u32,
    opened_at_ms: u64,
    opens: u64,
    failures: u64,
    rejected: u64,
    last_failure_unix_ms: Option<u64>,
    last_change_unix_ms: Option<u64>,
    pending_events: VecDeque<BreakerStateChange>,
    is_dispatching: bool,
}

impl BreakerInner {
    /// Returns the generation and the health, packed into one word.
    fn fast_path_state(&self) -> u64 {
        let health = match self.state {
            BreakerState::Closed if self.consecutive_failures == 0 => HEALTHY,
            BreakerState::Closed => DEGRADED,
            BreakerState::Open | BreakerState::HalfOpen => NOT_CLOSED,
        };
        self.generation << 2 | health
    }
}

impl Breaker {
    /// Creates a closed breaker for a tool.
    pub fn new(tool: impl Into<String>, settings: BreakerSettings) -> Self {
        Self {
            tool: tool.into(),
            settings,
            clock: Arc::new(SystemClock),
            on_change: None,
            fast_path_state: AtomicU64::new(HEALTHY),
            successes: AtomicU64::new(0),
            inner: Mutex::new(BreakerInner {
                state: BreakerState::Closed,
                generation: 0,
                consecutive_failures: 0,
                probe_successes: 0,
                is_probing: false,
                consecutive_opens: 0,
                opened_at_ms: 0,
                opens: 0,
                failures: 0,
                rejected: 0,
                last_failure_unix_ms: None,
                last_change_unix_ms: None,
                pending_events: VecDeque::new(),
                is_dispatching: false,
            }),
        }
    }

    /// Replaces the clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the observer of state transitions.
    pub fn on_change(mut self, tell: OnChange) -> Self {
        self.on_change = Some(tell);
        self
    }

    /// Returns the name of the tool.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Requests admission of a call. Report the result on the [`Permit`]; a permit dropped without
    /// a report does not count.
    pub fn admit(&self) -> Result<Permit<'_>, BreakerOpen> {
        let fast_path_state = self.fast_path_state.load(Ordering::Relaxed);
        if fast_path_state & 3 != NOT_CLOSED {
            return Ok(Permit { breaker: self, generation: fast_path_state >> 2 });
        }
        self.with_state(|inner| match self.retry_wait(inner) {
            None => {
                inner.is_probing = inner.state == BreakerState::HalfOpen;
                Ok(Permit { breaker: self, generation: inner.generation })
            }
            Some(retry_after) => {
                inner.rejected += 1;
                Err(BreakerOpen { tool: self.tool.clone(), retry_after })
            }
        })
    }

    /// Returns the current state.
    pub fn state(&self) -> BreakerState {
        self.with_state(|inner| inner.state)
    }

    /// Returns the time to wait before a retry; `None` if a call would be admitted.
    pub fn retry_after(&self) -> Option<Duration> {
        self.with_state(|inner| self.retry_wait(inner))
    }

    /// Returns the statistics.
    pub fn stats(&self) -> BreakerStats {
        self.with_state(|inner| BreakerStats {
            tool: self.tool.clone(),
            state: inner.state,
            consecutive_failures: inner.consecutive_failures,
            probe_successes: inner.probe_successes,
            consecutive_opens: inner.consecutive_opens,
            opens: inner.opens,
            successes: self.successes.load(Ordering::Relaxed),
            failures: inner.failures,
            rejected: inner.rejected,
            retry_after_ms: self.retry_wait(inner).map_or(0, millis),
            last_failure_unix_ms: inner.last_failure_unix_ms,
            last_change_unix_ms: inner.last_change_unix_ms,
        })
    }

    /// Closes the breaker after the tool was fixed manually. Totals are kept, and calls in flight
    /// do not count.
    pub fn reset(&self) {
        self.with_state(|inner| {
            inner.generation += 1;
            self.close(inner);
        });
    }

    fn record_success(&self, generation: u64) {
        self.successes.fetch_add(1, Ordering::Relaxed);
        if self.fast_path_state.load(Ordering::Relaxed) == generation << 2 | HEALTHY {
            return;
        }
        self.with_state(|inner| match inner.state {
            _ if inner.generation != generation => {}
            BreakerState::Closed => inner.consecutive_failures = 0,
            BreakerState::Open => {}
            BreakerState::HalfOpen => {
                inner.is_probing = false;
                inner.probe_successes += 1;
                if inner.probe_successes >= self.settings.success_threshold {
                    self.close(inner);
                }
            }
        });
    }

    fn record_failure(&self, generation: u64) {
        self.with_state(|inner| {
            inner.failures += 1;
            inner.last_failure_unix_ms = Some(self.clock.unix_ms());
            if inner.generation != generation {
                return;
            }
            inner.consecutive_failures = inner.consecutive_failures.saturating_add(1);
            let opens = match inner.state {
                BreakerState::Closed => inner.consecutive_failures >= self.settings.failure_threshold,
                BreakerState::HalfOpen => true,
                BreakerState::Open => false,
            };
            if opens {
                inner.consecutive_opens = inner.consecutive_opens.saturating_add(1);
                inner.opens += 1;
                inner.opened_at_ms = self.clock.now_ms();
                self.transition(inner, BreakerState::Open);
            }
        });
    }

    /// Releases the probe slot of a call that ended without a result.
    fn release_probe(&self, generation: u64) {
        if self.fast_path_state.load(Ordering::Relaxed) & 3 == NOT_CLOSED {
            self.with_state(|inner| {
                if inner.generation == generation {
                    inner.is_probing = false;
                }
            });
        }
    }

    fn close(&self, inner: &mut BreakerInner) {
        inner.consecutive_failures = 0;
        inner.consecutive_opens = 0;
        if inner.state != BreakerState::Closed {
            self.transition(inner, BreakerState::Closed);
        }
    }

    fn transition(&self, inner: &mut BreakerInner, to: BreakerState) {
        let at_unix_ms = self.clock.unix_ms();
        if self.on_change.is_some() {
            inner.pending_events.push_back(BreakerStateChange {
                tool: self.tool.clone(),
                from: inner.state,
                to,
                at_unix_ms,
            });
        }
        inner.state = to;
        inner.generation += 1;
        inner.is_probing = false;
        inner.probe_successes = 0;
        inner.last_change_unix_ms = Some(at_unix_ms);
    }

    /// Returns the time that a call has to wait.
    fn retry_wait(&self, inner: &BreakerInner) -> Option<Duration> {
        match inner.state {
            BreakerState::Open => {
                Some(Duration::from_millis(self.half_open_at_ms(inner).saturating_sub(self.clock.now_ms())))
            }
            // The duration of the probe in flight is unknown.
            BreakerState::HalfOpen if inner.is_probing => Some(Duration::from_secs(1)),
            BreakerState::Closed | BreakerState::HalfOpen => None,
        }
    }

    fn half_open_at_ms(&self, inner: &BreakerInner) -> u64 {
        let doublings = inner.consecutive_opens.saturating_sub(1).min(31);
        let time = self.settings.timeout.saturating_mul(1 << doublings).min(self.settings.max_timeout);
        inner.opened_at_ms.saturating_add(millis(time))
    }

    /// Runs `work` under the lock, after a due timeout transition and before event dispatch.
    fn with_state<T>(&self, work: impl FnOnce(&mut BreakerInner) -> T) -> T {
        let mut inner = self.lock();
        if inner.state == BreakerState::Open && self.clock.now_ms() >= self.half_open_at_ms(&inner) {
            self.transition(&mut inner, BreakerState::HalfOpen);
        }
        let out = work(&mut inner);
        self.fast_path_state.store(inner.fast_path_state(), Ordering::Relaxed);
        let dispatch = !inner.is_dispatching && !inner.pending_events.is_empty();
        inner.is_dispatching |= dispatch;
        drop(inner);
        if dispatch {
            self.dispatch_events();
        }
        out
    }

    /// Dispatches all pending events. Only one thread at a time does so, which preserves the order.
    fn dispatch_events(&self) {
        let reset_on_panic = DispatchGuard(self);
        loop {
            let mut inner = self.lock();
            let Some(change) = inner.pending_events.pop_front() else {
                inner.is_dispatching = false;
                break;
            };
            drop(inner);
            if let Some(tell) = &self.on_change {
                tell(&change);
            }
        }
        std::mem::forget(reset_on_panic);
    }

    /// Locks the state. Every update completes before anything that could panic, so the state of a
    /// poisoned lock is consistent.
    fn lock(&self) -> MutexGuard<'_, BreakerInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker").field("tool", &self.tool).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Allows other threads to dispatch if the observer panics.
struct DispatchGuard<'a>(&'a Breaker);

impl Drop for DispatchGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().is_dispatching = false;
    }
}

/// Admission of one call. Dropping it reports nothing about the tool, and admits the next probe.
#[must_use = "report success or failure"]
#[derive(Debug)]
pub struct Permit<'a> {
    breaker: &'a Breaker,
    generation: u64,
}

impl Permit<'_> {
    /// Reports that the tool responded.
    pub fn success(self) {
        self.breaker.record_success(self.generation);
        std::mem::forget(self);
    }

    /// Reports that the tool failed.
    pub fn failure(self) {
        self.breaker.record_failure(self.generation);
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.breaker.release_probe(self.generation);
    }
}
