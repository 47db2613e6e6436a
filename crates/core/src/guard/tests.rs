//! What a breaker does, step by step, against a small model of itself. From many threads: `tests/race`.

mod reference;
mod wrapped;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;

/// A breaker with a clock that stands still and a list of its changes.
struct Bench {
    clock: Arc<ManualClock>,
    changes: Arc<Mutex<Vec<(State, State)>>>,
    breaker: Breaker,
}

impl Bench {
    fn new(settings: BreakerSettings) -> Self {
        let clock = Arc::new(ManualClock::new());
        let changes = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&changes);
        let breaker = Breaker::new("shop", settings).with_clock(clock.clone()).on_change(Arc::new(move |change| {
            // Gives other threads the chance to come first, which they must not.
            std::thread::yield_now();
            list.lock().unwrap().push((change.from, change.to));
        }));
        Self { clock, changes, breaker }
    }

    fn fail(&self, times: u32) {
        for _ in 0..times {
            self.breaker.admit().unwrap().failure();
        }
    }

    fn succeed(&self, times: u32) {
        for _ in 0..times {
            self.breaker.admit().unwrap().success();
        }
    }

    fn seconds(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// When the breaker says to come back, in milliseconds.
    fn refused(&self) -> u64 {
        self.breaker.admit().unwrap_err().retry_after.as_millis() as u64
    }
}

use State::{Closed, HalfOpen, Open as Shut};

#[test]
fn l07_five_failures_in_a_row_open_it_and_a_success_starts_over() {
    let bench = Bench::new(BreakerSettings::default());
    bench.fail(4);
    bench.succeed(1);
    bench.fail(4);
    assert_eq!((bench.breaker.state(), bench.breaker.stats().consecutive_failures), (Closed, 4));
    bench.fail(1);
    assert_eq!(bench.breaker.state(), Shut);
    bench.seconds(5);
    assert_eq!(bench.breaker.admit().unwrap_err(), Open { tool: "shop".into(), retry_after: Duration::from_secs(25) });
    assert_eq!(*bench.changes.lock().unwrap(), [(Closed, Shut)]);
}

#[test]
fn l07_two_successes_close_it_and_waits_double_up_to_the_cap() {
    let bench = Bench::new(BreakerSettings::default());
    bench.fail(5);
    for wait in [30, 60, 60, 60] {
        assert_eq!(bench.refused(), wait * 1000);
        bench.clock.advance(Duration::from_millis(wait * 1000 - 1));
        assert_eq!(bench.refused(), 1);
        assert_eq!(bench.breaker.retry_after(), Some(Duration::from_millis(1)));
        bench.clock.advance(Duration::from_millis(1));
        assert_eq!((bench.breaker.state(), bench.breaker.retry_after()), (HalfOpen, None));
        bench.succeed(1);
        assert_eq!(bench.breaker.state(), HalfOpen);
        bench.fail(1);
        assert_eq!(bench.breaker.state(), Shut);
    }
    assert_eq!(bench.breaker.stats().consecutive_opens, 5);
    bench.seconds(60);
    bench.succeed(2);
    assert_eq!(bench.breaker.state(), Closed);
    let stats = bench.breaker.stats();
    assert_eq!((stats.consecutive_opens, stats.consecutive_failures, stats.opens), (0, 0, 5));
    assert_eq!((stats.successes, stats.failures, stats.rejected), (6, 9, 8));
    assert_eq!(stats.last_change_unix_ms, Some(270_000));
    bench.fail(5);
    assert_eq!(bench.refused(), 30_000, "having been closed, it is patient again");
    let mut wanted = vec![(Closed, Shut)];
    wanted.extend([(Shut, HalfOpen), (HalfOpen, Shut)].repeat(4));
    wanted.extend([(Shut, HalfOpen), (HalfOpen, Closed), (Closed, Shut)]);
    assert_eq!(*bench.changes.lock().unwrap(), wanted);
}

#[test]
fn l07_half_open_lets_one_through_at_a_time() {
    let bench = Bench::new(BreakerSettings::default());
    bench.fail(5);
    bench.seconds(30);
    let probe = bench.breaker.admit().unwrap();
    assert_eq!(bench.refused(), 1_000);
    probe.success();
    let probe = bench.breaker.admit().unwrap();
    assert_eq!(bench.refused(), 1_000);
    drop(probe);
    assert_eq!((bench.breaker.state(), bench.breaker.stats().probe_successes), (HalfOpen, 1));
    bench.succeed(1);
    assert_eq!(bench.breaker.state(), Closed);
}

#[test]
fn l07_old_news_neither_opens_nor_closes() {
    let bench = Bench::new(BreakerSettings::default());
    let old: Vec<Permit<'_>> = (0..8).map(|_| bench.breaker.admit().unwrap()).collect();
    bench.fail(5);
    let mut old = old.into_iter();
    let mut next = || old.next().unwrap();
    next().failure();
    next().success();
    assert_eq!((bench.breaker.state(), bench.breaker.stats().opens), (Shut, 1));
    bench.seconds(30);
    let probe = bench.breaker.admit().unwrap();
    next().success();
    next().failure();
    drop(next());
    assert_eq!((bench.refused(), bench.breaker.state()), (1_000, HalfOpen));
    bench.breaker.reset();
    probe.failure();
    next().failure();
    let stats = bench.breaker.stats();
    assert_eq!((stats.state, stats.consecutive_failures), (Closed, 0));
    assert_eq!((stats.successes, stats.failures, stats.rejected), (2, 9, 1));
}

#[test]
fn l07_a_reset_closes_at_once() {
    let bench = Bench::new(BreakerSettings::default());
    bench.fail(5);
    bench.breaker.reset();
    bench.breaker.reset();
    bench.succeed(1);
    assert_eq!(*bench.changes.lock().unwrap(), [(Closed, Shut), (Shut, Closed)]);
    bench.fail(4);
    bench.breaker.reset();
    bench.fail(4);
    assert_eq!(bench.breaker.state(), Closed);
}

#[test]
fn l07_whoever_is_told_may_ask_the_breaker_and_may_panic() {
    let breakers = Arc::new(Mutex::new(None::<Arc<Breaker>>));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (inside, list) = (Arc::clone(&breakers), Arc::clone(&told));
    let settings = BreakerSettings { failure_threshold: 1, ..BreakerSettings::default() };
    let breaker = Arc::new(Breaker::new("shop", settings).on_change(Arc::new(move |change| {
        list.lock().unwrap().push(change.to);
        let breaker = inside.lock().unwrap().clone();
        if change.to == Shut
            && let Some(breaker) = breaker
        {
            breaker.reset();
            assert!(list.lock().unwrap().len() < 4, "on purpose");
        }
    })));
    *breakers.lock().unwrap() = Some(Arc::clone(&breaker));
    let fail = || breaker.admit().unwrap().failure();
    fail();
    fail();
    assert_eq!(*told.lock().unwrap(), [Shut, Closed, Shut, Closed]);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(fail));
    assert!(panicked.is_err());
    assert_eq!(breaker.state(), Closed);
    assert_eq!(*told.lock().unwrap(), [Shut, Closed, Shut, Closed, Shut, Closed], "what was left is told by the next");
}

#[test]
fn l07_each_tool_has_its_own_breaker() {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&changes);
    let breakers = Breakers::default()
        .with_clock(Arc::new(ManualClock::new()))
        .on_change(move |change| list.lock().unwrap().push((change.tool.clone(), change.to)));
    for tool in ["b", "a"] {
        for _ in 0..5 {
            breakers.of(tool).admit().unwrap().failure();
        }
    }
    breakers.of("c").admit().unwrap().success();
    let states = || breakers.stats().into_iter().map(|stats| (stats.tool, stats.state)).collect::<Vec<_>>();
    let named = |list: &[(&str, State)]| list.iter().map(|(a, b)| ((*a).to_owned(), *b)).collect::<Vec<_>>();
    assert_eq!(states(), named(&[("a", Shut), ("b", Shut), ("c", Closed)]));
    assert!(breakers.reset("a") && !breakers.reset("d"));
    assert_eq!(states(), named(&[("a", Closed), ("b", Shut), ("c", Closed)]));
    breakers.reset_all();
    assert_eq!(states(), named(&[("a", Closed), ("b", Closed), ("c", Closed)]));
    assert_eq!(*changes.lock().unwrap(), named(&[("b", Shut), ("a", Shut), ("a", Closed), ("b", Closed)]));
    let json = serde_json::to_value(breakers.stats()).unwrap();
    assert_eq!((&json[0]["state"], &json[0]["opens"]), (&"closed".into(), &1.into()));
}

/// A clock whose hands on the wall are set to another time while it goes on as before.
struct Jumping {
    steady: ManualClock,
    wall: std::sync::atomic::AtomicU64,
}

impl Clock for Jumping {
    fn now_ms(&self) -> u64 {
        self.steady.now_ms()
    }

    fn unix_ms(&self) -> u64 {
        self.wall.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn l07_a_clock_that_is_set_to_another_time_neither_opens_a_breaker_nor_holds_it() {
    const HOURS: u64 = 5 * 3_600_000;
    for then in [0, 2 * HOURS] {
        let clock = Arc::new(Jumping { steady: ManualClock::new(), wall: HOURS.into() });
        let breaker = Breaker::new("shop", BreakerSettings::default()).with_clock(clock.clone());
        for _ in 0..5 {
            breaker.admit().unwrap().failure();
        }
        clock.wall.store(then, std::sync::atomic::Ordering::SeqCst);
        assert_eq!((breaker.state(), breaker.retry_after()), (Shut, Some(Duration::from_secs(30))));
        clock.steady.advance(Duration::from_secs(30));
        assert_eq!(breaker.state(), HalfOpen);
        breaker.admit().unwrap().success();
        breaker.admit().unwrap().success();
        assert_eq!(breaker.state(), Closed);
    }
}
