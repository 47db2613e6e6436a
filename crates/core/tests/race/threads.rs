//! Breakers in sixty-four real threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use querymend::resilience::{Breaker, BreakerSettings, BreakerState, Breakers, ManualClock};
use querymend_testing::watchdog::{THREADS, run_concurrently, run_watched};

/// A breaker with a clock that stands still and a list of its changes.
struct Bench {
    clock: Arc<ManualClock>,
    changes: Arc<Mutex<Vec<(BreakerState, BreakerState)>>>,
    breaker: Breaker,
}

impl Bench {
    fn new(settings: BreakerSettings) -> Self {
        let clock = Arc::new(ManualClock::new());
        let changes = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&changes);
        let breaker = Breaker::new("shop", settings).with_clock(clock.clone()).on_change(Arc::new(move |change| {
            // Gives other threads the chance to come first, which they must not.
            thread::yield_now();
            list.lock().unwrap().push((change.from, change.to));
        }));
        Self { clock, changes, breaker }
    }
}

#[test]
fn counts_add_up_and_transitions_are_in_order() {
    run_watched("breakers", || {
        let (timeout, max_timeout) = (Duration::from_millis(5), Duration::from_millis(20));
        let bench = Bench::new(BreakerSettings { timeout, max_timeout, ..BreakerSettings::default() });
        let [successes, failures, rejected] = [(); 3].map(|()| AtomicU64::new(0));
        run_concurrently(|thread| {
            // A cheap chance of its own for each thread, the same in each run.
            let mut chance = thread as u32 + 1;
            for _ in 0..5_000 {
                chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                match (bench.breaker.admit(), chance >> 30) {
                    (Err(open), _) => {
                        rejected.fetch_add(1, Ordering::Relaxed);
                        assert!(open.retry_after <= Duration::from_secs(1));
                        bench.clock.advance(Duration::from_millis(1));
                    }
                    (Ok(permit), 0) => {
                        permit.success();
                        successes.fetch_add(1, Ordering::Relaxed);
                    }
                    (Ok(permit), 1) => drop(permit),
                    (Ok(permit), _) => {
                        permit.failure();
                        failures.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        let stats = bench.breaker.stats();
        assert_eq!(
            [stats.successes, stats.failures, stats.rejected],
            [successes, failures, rejected].map(AtomicU64::into_inner)
        );
        let changes = bench.changes.lock().unwrap();
        assert_eq!(changes.iter().filter(|(_, to)| *to == BreakerState::Open).count() as u64, stats.opens);
        assert!(stats.opens > 10, "{stats:?}");
        assert_eq!(changes[0].0, BreakerState::Closed);
        assert!(changes.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(changes.last().unwrap().1, stats.state);
    });
}

#[test]
fn admits_at_most_one_probe_at_a_time() {
    run_watched("breakers", || {
        // So many successes are never reached, so it stays half open.
        let settings = BreakerSettings { success_threshold: u32::MAX, ..BreakerSettings::default() };
        let bench = Bench::new(settings);
        for _ in 0..5 {
            bench.breaker.admit().unwrap().failure();
        }
        bench.clock.advance(settings.timeout);
        let [inside, most, probes] = [(); 3].map(|()| AtomicU32::new(0));
        run_concurrently(|thread| {
            for n in 0..2_000 {
                let Ok(permit) = bench.breaker.admit() else { continue };
                probes.fetch_add(1, Ordering::SeqCst);
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                if (thread + n) % 2 == 0 { permit.success() } else { drop(permit) }
            }
        });
        assert_eq!(most.into_inner(), 1);
        let stats = bench.breaker.stats();
        assert_eq!(stats.state, BreakerState::HalfOpen);
        assert_eq!(stats.rejected + u64::from(probes.into_inner()), 2_000 * THREADS as u64);
        assert_eq!(bench.breaker.retry_after(), None, "every place was given back");
    });
}

#[test]
fn concurrent_failures_open_the_breaker_once() {
    run_watched("breakers", || {
        let bench = Bench::new(BreakerSettings::default());
        let refused = AtomicU32::new(0);
        run_concurrently(|_| match bench.breaker.admit() {
            Ok(permit) => permit.failure(),
            Err(_) => drop(refused.fetch_add(1, Ordering::SeqCst)),
        });
        let stats = bench.breaker.stats();
        assert_eq!((stats.state, stats.opens), (BreakerState::Open, 1));
        assert_eq!(stats.failures + u64::from(refused.into_inner()), THREADS as u64);
        assert_eq!(*bench.changes.lock().unwrap(), [(BreakerState::Closed, BreakerState::Open)]);
    });
}

#[test]
fn concurrent_callers_share_one_breaker_per_tool() {
    run_watched("breakers", || {
        let breakers = Breakers::default();
        run_concurrently(|_| {
            for n in 0..200 {
                breakers.get_or_create(&format!("tool {}", n % 20)).admit().unwrap().success();
            }
        });
        let stats = breakers.stats();
        assert_eq!(stats.len(), 20);
        assert!(stats.iter().all(|stats| stats.successes == 10 * THREADS as u64), "{stats:?}");
    });
}
