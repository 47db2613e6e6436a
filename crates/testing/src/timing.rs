//! Test timeouts, scaled by the speed of the machine: a timeout detects a hang, never a slow
//! machine.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, thread};

/// Time that [`calibration_work`] takes in a debug build on an idle machine with two cores.
const REFERENCE_TIME: Duration = Duration::from_millis(40);
/// Maximum slowdown; with a larger one a hang would outlast the timeout of its job in `./test`.
const MAX_SLOWDOWN: f64 = 20.0;
/// Longest time that an operation takes on the reference machine, however many tests run
/// concurrently.
const HANG_TIMEOUT: Duration = Duration::from_secs(120);

/// Scales a timeout by [`slowdown`].
#[must_use]
pub fn scaled(timeout: Duration) -> Duration {
    timeout.mul_f64(slowdown())
}

/// Returns the time that a test waits for something that must happen before it reports a hang.
///
/// This is not a performance requirement: use it wherever the only alternative to success is that
/// nothing happens.
#[must_use]
pub fn hang_timeout() -> Duration {
    scaled(HANG_TIMEOUT)
}

/// Returns the slowdown of this machine relative to the reference, at least 1.
///
/// `./test` measures it before it starts anything and exports `QUERYMEND_TEST_SLOWDOWN`; each
/// process measures again, since the load may have changed, and uses the larger value.
#[must_use]
pub fn slowdown() -> f64 {
    static SLOWDOWN: OnceLock<f64> = OnceLock::new();
    *SLOWDOWN.get_or_init(|| {
        let exported = env::var("QUERYMEND_TEST_SLOWDOWN").ok().and_then(|value| value.parse().ok()).unwrap_or(1.0);
        calibrate().max(exported).clamp(1.0, MAX_SLOWDOWN)
    })
}

/// Waits until a condition holds, and panics with `what` after [`hang_timeout`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < hang_timeout(), "timed out after {:?} waiting until {what}", begun.elapsed());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Measures the slowdown: the time of the same work on two threads relative to the reference. The
/// median of three, so that one pause does not count as load.
fn calibrate() -> f64 {
    let mut measured = [(); 3].map(|()| {
        let begun = Instant::now();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(calibration_work);
            }
        });
        begun.elapsed()
    });
    measured.sort();
    measured[1].as_secs_f64() / REFERENCE_TIME.as_secs_f64()
}

fn calibration_work() {
    let mut state = 1_u64;
    for _ in 0..2_000_000_u32 {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_never_shrink() {
        assert!((1.0..=MAX_SLOWDOWN).contains(&slowdown()));
        assert!(scaled(Duration::from_secs(3)) >= Duration::from_secs(3) && hang_timeout() >= HANG_TIMEOUT);
    }

    #[test]
    fn wait_ends_once_the_condition_holds() {
        let mut asked = 0;
        wait_until("it was asked three times", || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
    }
}
