//! A breaker under many orders of its threads.
//!
//! That these tests see what they are for was tried by hand: with the line in `Breaker::with` that stores `glance` moved below
//! `drop(inner)`, a thread that was slow writes down that all is well after another has opened the breaker, and
//! `counts_every_failure` and `stats_agree_with_admission` fail. With `inner.probing = …` left out of
//! `Breaker::admit`, `half_open_admits_one_probe_at_a_time` and `failed_probe_reopens_the_breaker_and_rejects_others` fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shuttle::thread;

use crate::breaker::{Breaker, BreakerState};
use crate::clock::ManualClock;
use crate::explore::{all_orders, many_orders};
use crate::settings::BreakerSettings;

fn settings(failures: u32, successes: u32) -> BreakerSettings {
    BreakerSettings { failure_threshold: failures, success_threshold: successes, ..BreakerSettings::default() }
}

fn breaker(settings: BreakerSettings) -> (Arc<Breaker>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Arc::new(Breaker::new("shop", settings).with_clock(clock.clone())), clock)
}

/// One that failed, and may be tried again.
fn half_open(settings: BreakerSettings) -> Arc<Breaker> {
    let (breaker, clock) = breaker(settings);
    for _ in 0..settings.failure_threshold {
        breaker.admit().unwrap().failure();
    }
    clock.advance(settings.timeout);
    breaker
}

/// The same in so many threads; all of them have ended after it.
fn threads(count: usize, work: impl Fn(usize) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let begin = |at| {
        let work = Arc::clone(&work);
        thread::spawn(move || work(at))
    };
    let threads: Vec<_> = (0..count).map(begin).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// So many threads fail once, and it opens at so many failures.
fn fail_in(count: usize, threshold: u32) {
    let (breaker, _) = breaker(settings(threshold, 1));
    let (all, refused) = (Arc::clone(&breaker), Arc::new(AtomicU32::new(0)));
    let turned = Arc::clone(&refused);
    threads(count, move |_| match all.admit() {
        Ok(permit) => permit.failure(),
        Err(_) => drop(turned.fetch_add(1, Ordering::SeqCst)),
    });
    // First of all, because every look at it but this one puts right what is seen at a glance.
    let let_through = breaker.admit().is_ok();
    let (stats, refused) = (breaker.stats(), u64::from(refused.load(Ordering::SeqCst)));
    let counted = (stats.failures + refused, stats.rejected);
    assert_eq!(counted, (count as u64, refused + u64::from(!let_through)), "every call is counted once");
    if (count as u32) < threshold {
        assert_eq!((stats.state, stats.consecutive_failures, stats.opens), (BreakerState::Closed, count as u32, 0));
        assert!(let_through);
    } else {
        assert_eq!((stats.state, stats.opens), (BreakerState::Open, 1), "it opens, and once");
        assert!(stats.failures >= u64::from(threshold));
        assert!(!let_through, "it is open, and lets a call through");
    }
}

#[test]
fn counts_every_failure() {
    all_orders("breaker: 2 threads fail, opens at 2", || fail_in(2, 2));
    all_orders("breaker: 2 threads fail, opens at 3", || fail_in(2, 3));
    for (count, threshold) in [(4, 4), (4, 5), (4, 2)] {
        many_orders("breaker: 4 threads fail", move || fail_in(count, threshold));
    }
}

#[test]
fn failed_probe_reopens_the_breaker_and_rejects_others() {
    let test = |count: usize| {
        let breaker = half_open(settings(1, 2));
        let (all, trials) = (Arc::clone(&breaker), Arc::new(AtomicU32::new(0)));
        let let_in = Arc::clone(&trials);
        threads(count, move |_| {
            if let Ok(permit) = all.admit() {
                let_in.fetch_add(1, Ordering::SeqCst);
                permit.failure();
            }
        });
        assert_eq!(trials.load(Ordering::SeqCst), 1);
        let stats = breaker.stats();
        assert_eq!((stats.state, stats.opens, stats.rejected), (BreakerState::Open, 2, count as u64 - 1));
    };
    all_orders("breaker: 2 threads at one trial", move || test(2));
    many_orders("breaker: 4 threads at one trial", move || test(4));
}

/// Threads try until they are let through so many times each. Every other trial says nothing; those that do, succeed.
fn try_in(count: usize, times: usize, enough: u32) {
    let breaker = half_open(settings(1, enough));
    let [inside, trials, good, refused] = [(); 4].map(|()| Arc::new(AtomicU32::new(0)));
    let all = Arc::clone(&breaker);
    let (in_it, tried, well, turned) = (inside, Arc::clone(&trials), Arc::clone(&good), Arc::clone(&refused));
    threads(count, move |thread| {
        for n in 0..times {
            let Ok(permit) = all.admit() else {
                turned.fetch_add(1, Ordering::SeqCst);
                continue;
            };
            tried.fetch_add(1, Ordering::SeqCst);
            assert_eq!(in_it.fetch_add(1, Ordering::SeqCst), 0, "two trials at once");
            shuttle::thread::yield_now();
            in_it.fetch_sub(1, Ordering::SeqCst);
            if (thread + n).is_multiple_of(2) {
                well.fetch_add(1, Ordering::SeqCst);
                permit.success();
            }
        }
    });
    let [trials, good, refused] = [trials, good, refused].map(|count| count.load(Ordering::SeqCst));
    let stats = breaker.stats();
    assert_eq!((stats.state, stats.probe_successes, stats.successes), (BreakerState::HalfOpen, good, u64::from(good)));
    assert_eq!((u64::from(refused), trials + refused), (stats.rejected, (count * times) as u32));
    assert_eq!(breaker.retry_after(), None, "every place was given back");
}

#[test]
fn half_open_admits_one_probe_at_a_time() {
    // So many successes are never reached, so it stays half open.
    all_orders("breaker: 2 threads, a trial each", || try_in(2, 1, u32::MAX));
    many_orders("breaker: 3 threads, 3 trials each", || try_in(3, 3, u32::MAX));
}

#[test]
fn closes_after_the_required_probe_successes() {
    many_orders("breaker: 4 threads, 2 trials close it", || {
        let breaker = half_open(settings(1, 2));
        let (all, good) = (Arc::clone(&breaker), Arc::new(AtomicU32::new(0)));
        let well = Arc::clone(&good);
        threads(4, move |_| {
            if let Ok(permit) = all.admit() {
                permit.success();
                well.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (stats, good) = (breaker.stats(), good.load(Ordering::SeqCst));
        assert_eq!((stats.successes, stats.rejected), (u64::from(good), u64::from(4 - good)));
        let wanted = if good < 2 { (BreakerState::HalfOpen, good) } else { (BreakerState::Closed, 0) };
        assert_eq!((stats.state, stats.probe_successes), wanted);
        assert!(breaker.admit().is_ok());
    });
}

#[test]
fn stats_agree_with_admission() {
    many_orders("breaker: successes, failures, resets and time at once", || {
        let (breaker, clock) = breaker(settings(2, 1));
        let all = Arc::clone(&breaker);
        let [good, bad] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        let (well, ill) = (Arc::clone(&good), Arc::clone(&bad));
        threads(4, move |thread| match thread {
            0 => all.reset(),
            1 => clock.advance(Duration::from_secs(60)),
            _ => {
                for n in 0..3 {
                    match all.admit() {
                        Ok(permit) if (thread + n).is_multiple_of(3) => {
                            permit.success();
                            well.fetch_add(1, Ordering::SeqCst);
                        }
                        Ok(permit) => {
                            permit.failure();
                            ill.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(_) => {}
                    }
                }
            }
        });
        let let_through = breaker.admit().is_ok();
        let stats = breaker.stats();
        let [good, bad] = [good, bad].map(|count| u64::from(count.load(Ordering::SeqCst)));
        assert_eq!((stats.successes, stats.failures), (good, bad));
        assert_eq!(let_through, stats.state != BreakerState::Open, "{stats:?}");
    });
}

#[test]
fn notifies_reentrant_observers_in_order() {
    many_orders("breaker: changes told while others change it", || {
        let clock = Arc::new(ManualClock::new());
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let list = Arc::clone(&told);
        let breaker = Arc::new_cyclic(|own: &std::sync::Weak<Breaker>| {
            let own = own.clone();
            Breaker::new("shop", settings(1, 1)).with_clock(clock.clone()).on_change(Arc::new(move |change| {
                own.upgrade().unwrap().stats();
                list.lock().unwrap().push((change.from, change.to));
            }))
        });
        let all = Arc::clone(&breaker);
        threads(3, move |thread| {
            if let Ok(permit) = all.admit() {
                permit.failure();
            }
            clock.advance(Duration::from_secs(60));
            match all.admit() {
                Ok(permit) if thread == 0 => permit.success(),
                Ok(permit) => permit.failure(),
                Err(_) => all.reset(),
            }
        });
        let (state, told) = (breaker.state(), told.lock().unwrap());
        assert_eq!(told.first().unwrap().0, BreakerState::Closed);
        assert!(told.windows(2).all(|pair| pair[0].1 == pair[1].0), "{told:?}");
        assert_eq!(told.last().unwrap().1, state);
        assert_eq!(told.iter().filter(|(_, to)| *to == BreakerState::Open).count() as u64, breaker.stats().opens);
    });
}
