//! Compares the breaker with a reference model that is simple enough to be correct by inspection.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Closed { failures: u32 },
    Open { until: u64 },
    HalfOpen { successes: u32, probe: Option<usize> },
}

/// Reference breaker with thresholds 3 and 2, and a back-off of 10 ms up to 35 ms. Calls in flight
/// are identified by number.
#[derive(Debug)]
struct ReferenceBreaker {
    mode: Mode,
    opens: u32,
    now: u64,
    /// Calls that were admitted in the current mode.
    current: Vec<usize>,
}

impl ReferenceBreaker {
    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.current.clear();
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        if matches!(self.mode, Mode::Open { until } if until <= self.now) {
            self.enter(Mode::HalfOpen { successes: 0, probe: None });
        }
    }

    fn open(&mut self) {
        self.opens += 1;
        self.enter(Mode::Open { until: self.now + 35.min(10 << (self.opens - 1)) });
    }

    fn close(&mut self) {
        self.opens = 0;
        self.enter(Mode::Closed { failures: 0 });
    }

    /// Returns the time that the call has to wait, or `None` if it is admitted.
    fn begin(&mut self, call: usize) -> Option<u64> {
        match &mut self.mode {
            Mode::Open { until } => return Some(*until - self.now),
            Mode::HalfOpen { probe: Some(_), .. } => return Some(1000),
            Mode::HalfOpen { probe, .. } => *probe = Some(call),
            Mode::Closed { .. } => {}
        }
        self.current.push(call);
        None
    }

    fn end(&mut self, call: usize, news: Option<bool>) {
        if !self.current.contains(&call) {
            return;
        }
        self.current.retain(|other| *other != call);
        self.mode = match (self.mode, news) {
            (Mode::Closed { failures: 2 } | Mode::HalfOpen { .. }, Some(false)) => return self.open(),
            (Mode::HalfOpen { successes: 1, .. }, Some(true)) => return self.close(),
            (Mode::Closed { failures }, Some(false)) => Mode::Closed { failures: failures + 1 },
            (Mode::Closed { .. }, Some(true)) => Mode::Closed { failures: 0 },
            (Mode::HalfOpen { .. }, Some(true)) => Mode::HalfOpen { successes: 1, probe: None },
            (Mode::HalfOpen { successes, .. }, None) => Mode::HalfOpen { successes, probe: None },
            (mode, _) => mode,
        };
    }
}

#[derive(Debug, Clone)]
enum BreakerOp {
    Begin,
    /// Ends a call in flight: with success, with failure, or without a result.
    End(prop::sample::Index, Option<bool>),
    Pass(u64),
    Reset,
}

fn breaker_op() -> impl Strategy<Value = BreakerOp> {
    prop_oneof![
        6 => Just(BreakerOp::Begin),
        8 => (any::<prop::sample::Index>(), prop_oneof![
            4 => Just(Some(false)),
            3 => Just(Some(true)),
            1 => Just(None),
        ]).prop_map(|(which, news)| BreakerOp::End(which, news)),
        3 => (0..40_u64).prop_map(BreakerOp::Pass),
        1 => Just(BreakerOp::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn matches_the_reference_breaker(steps in prop::collection::vec(breaker_op(), 1..120)) {
        let bench = BreakerHarness::new(BreakerSettings {
            failure_threshold: 3,
            success_threshold: 2,
            timeout: Duration::from_millis(10),
            max_timeout: Duration::from_millis(35),
        });
        let mut model = ReferenceBreaker { mode: Mode::Closed { failures: 0 }, opens: 0, now: 0, current: Vec::new() };
        let mut under_way = Vec::new();
        let mut totals = [0_u64; 3];
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                BreakerOp::Begin => match (bench.breaker.admit(), model.begin(number)) {
                    (Ok(permit), None) => under_way.push((number, permit)),
                    (Err(open), Some(ms)) => {
                        totals[2] += 1;
                        prop_assert_eq!(open.retry_after, Duration::from_millis(ms));
                    }
                    (breaker, model) => prop_assert!(false, "{:?} but {:?}", breaker, model),
                },
                BreakerOp::End(_, _) if under_way.is_empty() => {}
                BreakerOp::End(which, news) => {
                    let (number, permit) = under_way.swap_remove(which.index(under_way.len()));
                    match news {
                        Some(true) => permit.success(),
                        Some(false) => permit.failure(),
                        None => drop(permit),
                    }
                    model.end(number, news);
                    totals[0] += u64::from(news == Some(true));
                    totals[1] += u64::from(news == Some(false));
                }
                BreakerOp::Pass(ms) => {
                    bench.clock.advance(Duration::from_millis(ms));
                    model.pass(ms);
                }
                BreakerOp::Reset => {
                    bench.breaker.reset();
                    model.close();
                }
            }
            let stats = bench.breaker.stats();
            let (state, failures, successes) = match model.mode {
                Mode::Closed { failures } => (BreakerState::Closed, Some(failures), 0),
                Mode::Open { .. } => (BreakerState::Open, None, 0),
                Mode::HalfOpen { successes, .. } => (BreakerState::HalfOpen, None, successes),
            };
            prop_assert_eq!((stats.state, stats.probe_successes), (state, successes));
            prop_assert!(failures.is_none_or(|failures| failures == stats.consecutive_failures));
            prop_assert_eq!(stats.consecutive_opens, model.opens);
            prop_assert_eq!([stats.successes, stats.failures, stats.rejected], totals);
        }
        let changes = bench.changes.lock().unwrap();
        prop_assert!(changes.windows(2).all(|pair| pair[0].1 == pair[1].0), "{:?}", changes);
    }
}
