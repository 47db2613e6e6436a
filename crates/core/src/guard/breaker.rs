//! One circuit breaker: it leaves a tool alone that keeps failing, and finds out gently whether it is well again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::clock::{Clock, SystemClock, millis};
use super::open::Open;
use super::settings::BreakerSettings;
use super::sync::{AtomicU64, Mutex, MutexGuard};

/// Whether a tool may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It may.
    Closed,
    /// It is left alone.
    Open,
    /// It may be asked once at a time, to see whether it is well again.
    HalfOpen,
}

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Of which tool.
    pub tool: String,
    /// The state before.
    pub from: State,
    /// The state now.
    pub to: State,
    /// When, in milliseconds since 1970.
    pub at_unix_ms: u64,
}

/// Who is told of changes, in their order and one after the other, with no lock held: it may ask the breaker itself. A
/// change may be told by a thread other than the one that made it, a moment later.
pub type OnChange = Arc<dyn Fn(&Change) + Send + Sync>;

/// How a tool has been doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stats {
    /// Which tool.
    pub tool: String,
    /// Whether it may be asked.
    pub state: State,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// Successes since it is half open.
    pub probe_successes: u32,
    /// How often it opened since it was last closed: what the waiting time grows by.
    pub consecutive_opens: u32,
    /// How often it opened in all.
    pub opens: u64,
    /// Calls that went well, in all.
    pub successes: u64,
    /// Calls that failed, in all.
    pub failures: u64,
    /// Calls that were not let through, in all.
    pub rejected: u64,
    /// When to try again, in milliseconds; 0 where a call would be let through.
    pub retry_after_ms: u64,
    /// When a call last failed, in milliseconds since 1970.
    pub last_failure_unix_ms: Option<u64>,
    /// When the state last changed, in milliseconds since 1970.
    pub last_change_unix_ms: Option<u64>,
}

/// A circuit breaker. All of it may be used from many threads at once.
///
/// Closed, it lets every call through; 5 failures in a row open it. Open, it refuses at once and says when to come back.
/// After 30 s it is half open and lets one call through at a time: 2 successes close it, a failure opens it again, for
/// twice as long, but never for more than 60 s. (All figures are [`BreakerSettings`].) Time is looked at when someone
/// asks, so an idle breaker costs nothing.
///
/// What a call brings counts only if the state has not changed since the call was let through: old news neither closes a
/// breaker nor opens it.
pub struct Breaker {
    tool: String,
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    on_change: Option<OnChange>,
    /// [`Inner::glance`], for the calls that need to know no more: while all is well, letting one through takes one
    /// relaxed load and no lock.
    glance: AtomicU64,
    successes: AtomicU64,
    inner: Mutex<Inner>,
}

const CALM: u64 = 0;
const TROUBLED: u64 = 1;
const SHUT: u64 = 2;

struct Inner {
    state: State,
    /// Counts the changes of state, to tell old news.
    era: u64,
    consecutive_failures: u32,
    probe_successes: u32,
    probing: bool,
    consecutive_opens: u32,
    opened_at_ms: u64,
    opens: u64,
    failures: u64,
    rejected: u64,
    last_failure_unix_ms: Option<u64>,
    last_change_unix_ms: Option<u64>,
    untold: VecDeque<Change>,
    telling: bool,
}

impl Inner {
    /// The era and whether all is well, in one word.
    fn glance(&self) -> u64 {
        let mood = match self.state {
            State::Closed if self.consecutive_failures == 0 => CALM,
            State::Closed => TROUBLED,
            State::Open | State::HalfOpen => SHUT,
        };
        self.era << 2 | mood
    }
}

impl Breaker {
    /// A closed breaker before this tool.
    pub fn new(tool: impl Into<String>, settings: BreakerSettings) -> Self {
        Self {
            tool: tool.into(),
            settings,
            clock: Arc::new(SystemClock),
            on_change: None,
            glance: AtomicU64::new(CALM),
            successes: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                state: State::Closed,
                era: 0,
                consecutive_failures: 0,
                probe_successes: 0,
                probing: false,
                consecutive_opens: 0,
                opened_at_ms: 0,
                opens: 0,
                failures: 0,
                rejected: 0,
                last_failure_unix_ms: None,
                last_change_unix_ms: None,
                untold: VecDeque::new(),
                telling: false,
            }),
        }
    }

    /// With another clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// With someone who is told of changes.
    pub fn on_change(mut self, tell: OnChange) -> Self {
        self.on_change = Some(tell);
        self
    }

    /// The tool that it stands before.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Asks for leave to use the tool. Say how it went on the [`Permit`]; one that is dropped unsaid counts as nothing.
    pub fn admit(&self) -> Result<Permit<'_>, Open> {
        let glance = self.glance.load(Ordering::Relaxed);
        if glance & 3 != SHUT {
            return Ok(Permit { breaker: self, era: glance >> 2 });
        }
        self.with(|inner| match self.wait(inner) {
            None => {
                inner.probing = inner.state == State::HalfOpen;
                Ok(Permit { breaker: self, era: inner.era })
            }
            Some(retry_after) => {
                inner.rejected += 1;
                Err(Open { tool: self.tool.clone(), retry_after })
            }
        })
    }

    /// Whether the tool may be asked.
    pub fn state(&self) -> State {
        self.with(|inner| inner.state)
    }

    /// When to try again; `None` where a call would be let through.
    pub fn retry_after(&self) -> Option<Duration> {
        self.with(|inner| self.wait(inner))
    }

    /// How the tool has been doing.
    pub fn stats(&self) -> Stats {
        self.with(|inner| Stats {
            tool: self.tool.clone(),
            state: inner.state,
            consecutive_failures: inner.consecutive_failures,
            probe_successes: inner.probe_successes,
            consecutive_opens: inner.consecutive_opens,
            opens: inner.opens,
            successes: self.successes.load(Ordering::Relaxed),
            failures: inner.failures,
            rejected: inner.rejected,
            retry_after_ms: self.wait(inner).map_or(0, millis),
            last_failure_unix_ms: inner.last_failure_unix_ms,
            last_change_unix_ms: inner.last_change_unix_ms,
        })
    }

    /// Closes it, whatever was: someone has seen to the tool. The totals stay, and calls under way no longer count.
    pub fn reset(&self) {
        self.with(|inner| {
            inner.era += 1;
            self.close(inner);
        });
    }

    fn succeeded(&self, era: u64) {
        self.successes.fetch_add(1, Ordering::Relaxed);
        if self.glance.load(Ordering::Relaxed) == era << 2 | CALM {
            return;
        }
        self.with(|inner| match inner.state {
            _ if inner.era != era => {}
            State::Closed => inner.consecutive_failures = 0,
            State::Open => {}
            State::HalfOpen => {
                inner.probing = false;
                inner.probe_successes += 1;
                if inner.probe_successes >= self.settings.success_threshold {
                    self.close(inner);
                }
            }
        });
    }

    fn failed(&self, era: u64) {
        self.with(|inner| {
            inner.failures += 1;
            inner.last_failure_unix_ms = Some(self.clock.unix_ms());
            if inner.era != era {
                return;
            }
            inner.consecutive_failures = inner.consecutive_failures.saturating_add(1);
            let opens = match inner.state {
                State::Closed => inner.consecutive_failures >= self.settings.failure_threshold,
                State::HalfOpen => true,
                State::Open => false,
            };
            if opens {
                inner.consecutive_opens = inner.consecutive_opens.saturating_add(1);
                inner.opens += 1;
                inner.opened_at_ms = self.clock.now_ms();
                self.turn(inner, State::Open);
            }
        });
    }

    /// A call that ended without news gives its place back to the next.
    fn abandoned(&self, era: u64) {
        if self.glance.load(Ordering::Relaxed) & 3 == SHUT {
            self.with(|inner| {
                if inner.era == era {
                    inner.probing = false;
                }
            });
        }
    }

    fn close(&self, inner: &mut Inner) {
        inner.consecutive_failures = 0;
        inner.consecutive_opens = 0;
        if inner.state != State::Closed {
            self.turn(inner, State::Closed);
        }
    }

    fn turn(&self, inner: &mut Inner, to: State) {
        let at_unix_ms = self.clock.unix_ms();
        if self.on_change.is_some() {
            inner.untold.push_back(Change { tool: self.tool.clone(), from: inner.state, to, at_unix_ms });
        }
        inner.state = to;
        inner.era += 1;
        inner.probing = false;
        inner.probe_successes = 0;
        inner.last_change_unix_ms = Some(at_unix_ms);
    }

    /// How long a call would have to wait now.
    fn wait(&self, inner: &Inner) -> Option<Duration> {
        match inner.state {
            State::Open => Some(Duration::from_millis(self.opens_again_ms(inner).saturating_sub(self.clock.now_ms()))),
            // Nobody knows how long the call under way will take.
            State::HalfOpen if inner.probing => Some(Duration::from_secs(1)),
            State::Closed | State::HalfOpen => None,
        }
    }

    fn opens_again_ms(&self, inner: &Inner) -> u64 {
        let doublings = inner.consecutive_opens.saturating_sub(1).min(31);
        let time = self.settings.timeout.saturating_mul(1 << doublings).min(self.settings.max_timeout);
        inner.opened_at_ms.saturating_add(millis(time))
    }

    /// Does something under the lock, in the state that the time has brought about, and tells what has changed after.
    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        if inner.state == State::Open && self.clock.now_ms() >= self.opens_again_ms(&inner) {
            self.turn(&mut inner, State::HalfOpen);
        }
        let out = work(&mut inner);
        self.glance.store(inner.glance(), Ordering::Relaxed);
        let tell = !inner.telling && !inner.untold.is_empty();
        inner.telling |= tell;
        drop(inner);
        if tell {
            self.tell();
        }
        out
    }

    /// Tells all that is untold. Only one thread does so at a time, which keeps the order.
    fn tell(&self) {
        let if_it_panics = Telling(self);
        loop {
            let mut inner = self.lock();
            let Some(change) = inner.untold.pop_front() else {
                inner.telling = false;
                break;
            };
            drop(inner);
            if let Some(tell) = &self.on_change {
                tell(&change);
            }
        }
        std::mem::forget(if_it_panics);
    }

    /// Every change under the lock is whole before anything that could panic, so a poisoned lock holds good values.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker").field("tool", &self.tool).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Lets others tell if the one who is told panics.
struct Telling<'a>(&'a Breaker);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.lock().telling = false;
    }
}

/// Leave to use a tool once. Dropping it says nothing about the tool, and lets the next one try.
#[must_use = "say how the call went"]
#[derive(Debug)]
pub struct Permit<'a> {
    breaker: &'a Breaker,
    era: u64,
}

impl Permit<'_> {
    /// The tool answered.
    pub fn success(self) {
        self.breaker.succeeded(self.era);
        std::mem::forget(self);
    }

    /// The tool failed.
    pub fn failure(self) {
        self.breaker.failed(self.era);
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.breaker.abandoned(self.era);
    }
}
