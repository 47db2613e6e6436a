//! Tests of the circuit breaker, step by step and against a reference model. Multi-threaded tests
//! are in `tests/race`.

mod decorators;
mod reference;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;

/// Breaker with a manual clock and a log of its transitions.
struct BreakerHarness {
    clock: Arc<ManualClock>,
    changes: Arc<Mutex<Vec<(BreakerState, BreakerState)>>>,
    breaker: Breaker,
}

impl BreakerHarness {
    fn new(settings: BreakerSettings) -> Self {
        let clock = Arc::new(ManualClock::new());
        let changes = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&changes);
        let breaker = Breaker::new("shop", settings).with_clock(clock.clone()).on_change(Arc::new(move |change| {
            // Give other threads the chance to overtake, which must not happen.
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

    /// Returns the time to retry that the breaker reports, in milliseconds.
    fn refused(&self) -> u64 {
        self.breaker.admit().unwrap_err().retry_after.as_millis() as u64
    }
}

use BreakerState::{Closed, HalfOpen, Open};

#[test]
fn opens_after_five_consecutive_failures() {
    let bench = BreakerHarness::new(BreakerSettings::default());
    bench.fail(4);
    bench.succeed(1);
    bench.fail(4);
    assert_eq!((bench.breaker.state(), bench.breaker.stats().consecutive_failures), (Closed, 4));
    bench.fail(1);
    assert_eq!(bench.breaker.state(), Open);
    bench.seconds(5);
    assert_eq!(
        bench.breaker.admit().unwrap_err(),
        BreakerOpen { tool: "shop".into(), retry_after: Duration::from_secs(25) }
    );
    assert_eq!(*bench.changes.lock().unwrap(), [(Closed, Open)]);
}

#[test]
fn closes_after_two_successes_and_doubles_timeout_up_to_cap() {
    let bench = BreakerHarness::new(BreakerSettings::default());
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
        assert_eq!(bench.breaker.state(), Open);
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
    let mut wanted = vec![(Closed, Open)];
    wanted.extend([(Open, HalfOpen), (HalfOpen, Open)].repeat(4));
    wanted.extend([(Open, HalfOpen), (HalfOpen, Closed), (Closed, Open)]);
    assert_eq!(*bench.changes.lock().unwrap(), wanted);
}

#[test]
fn admits_one_probe_at_a_time_when_half_open() {
    let bench = BreakerHarness::new(BreakerSettings::default());
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
fn ignores_results_of_calls_from_an_earlier_state() {
    let bench = BreakerHarness::new(BreakerSettings::default());
    let old: Vec<Permit<'_>> = (0..8).map(|_| bench.breaker.admit().unwrap()).collect();
    bench.fail(5);
    let mut old = old.into_iter();
    let mut next = || old.next().unwrap();
    next().failure();
    next().success();
    assert_eq!((bench.breaker.state(), bench.breaker.stats().opens), (Open, 1));
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
fn reset_closes_the_breaker_immediately() {
    let bench = BreakerHarness::new(BreakerSettings::default());
    bench.fail(5);
    bench.breaker.reset();
    bench.breaker.reset();
    bench.succeed(1);
    assert_eq!(*bench.changes.lock().unwrap(), [(Closed, Open), (Open, Closed)]);
    bench.fail(4);
    bench.breaker.reset();
    bench.fail(4);
    assert_eq!(bench.breaker.state(), Closed);
}

#[test]
fn observers_may_call_the_breaker_and_panic() {
    let breakers = Arc::new(Mutex::new(None::<Arc<Breaker>>));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (inside, list) = (Arc::clone(&breakers), Arc::clone(&told));
    let settings = BreakerSettings { failure_threshold: 1, ..BreakerSettings::default() };
    let breaker = Arc::new(Breaker::new("shop", settings).on_change(Arc::new(move |change| {
        list.lock().unwrap().push(change.to);
        let breaker = inside.lock().unwrap().clone();
        if change.to == Open
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
    assert_eq!(*told.lock().unwrap(), [Open, Closed, Open, Closed]);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(fail));
    assert!(panicked.is_err());
    assert_eq!(breaker.state(), Closed);
    assert_eq!(*told.lock().unwrap(), [Open, Closed, Open, Closed, Open, Closed], "what was left is told by the next");
}

#[test]
fn keeps_one_breaker_per_tool() {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&changes);
    let breakers = Breakers::default()
        .with_clock(Arc::new(ManualClock::new()))
        .on_change(move |change| list.lock().unwrap().push((change.tool.clone(), change.to)));
    for tool in ["b", "a"] {
        for _ in 0..5 {
            breakers.get_or_create(tool).admit().unwrap().failure();
        }
    }
    breakers.get_or_create("c").admit().unwrap().success();
    let states = || breakers.stats().into_iter().map(|stats| (stats.tool, stats.state)).collect::<Vec<_>>();
    let named = |list: &[(&str, BreakerState)]| list.iter().map(|(a, b)| ((*a).to_owned(), *b)).collect::<Vec<_>>();
    assert_eq!(states(), named(&[("a", Open), ("b", Open), ("c", Closed)]));
    assert!(breakers.reset("a") && !breakers.reset("d"));
    assert_eq!(states(), named(&[("a", Closed), ("b", Open), ("c", Closed)]));
    breakers.reset_all();
    assert_eq!(states(), named(&[("a", Closed), ("b", Closed), ("c", Closed)]));
    assert_eq!(*changes.lock().unwrap(), named(&[("b", Open), ("a", Open), ("a", Closed), ("b", Closed)]));
    let json = serde_json::to_value(breakers.stats()).unwrap();
    assert_eq!((&json[0]["state"], &json[0]["opens"]), (&"closed".into(), &1.into()));
}

/// Clock whose wall time jumps while its monotonic time does not.
struct JumpingClock {
    steady: ManualClock,
    wall: std::sync::atomic::AtomicU64,
}

impl Clock for JumpingClock {
    fn now_ms(&self) -> u64 {
        self.steady.now_ms()
    }

    fn unix_ms(&self) -> u64 {
        self.wall.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn ignores_jumps_of_the_wall_clock() {
    const HOURS: u64 = 5 * 3_600_000;
    for then in [0, 2 * HOURS] {
        let clock = Arc::new(JumpingClock { steady: ManualClock::new(), wall: HOURS.into() });
        let breaker = Breaker::new("shop", BreakerSettings::default()).with_clock(clock.clone());
        for _ in 0..5 {
            breaker.admit().unwrap().failure();
        }
        clock.wall.store(then, std::sync::atomic::Ordering::SeqCst);
        assert_eq!((breaker.state(), breaker.retry_after()), (Open, Some(Duration::from_secs(30))));
        clock.steady.advance(Duration::from_secs(30));
        assert_eq!(breaker.state(), HalfOpen);
        breaker.admit().unwrap().success();
        breaker.admit().unwrap().success();
        assert_eq!(breaker.state(), Closed);
    }
}
