//! Timeouts of tests, scaled by how slow the machine is: a test tells a hang from an answer, never a slow machine from a fast one.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, thread};

/// Time that [`work`] takes in a debug build on a quiet machine with two cores.
const REFERENCE: Duration = Duration::from_millis(40);
/// Maximum slowdown; with a larger one a hang would outlast the timeout of its job in `./test`.
const MAX_SLOWDOWN: f64 = 20.0;
/// Longest time that an operation takes on the reference machine, however many tests run beside it.
const HANG_TIMEOUT: Duration = Duration::from_secs(120);

/// Scales a timeout by [`slowdown`].
#[must_use]
pub fn scaled(timeout: Duration) -> Duration {
    timeout.mul_f64(slowdown())
}

/// Returns how long a test waits for something that must happen before it calls it a hang.
///
/// It is no requirement on speed: use it wherever the alternative to success is that nothing happens at all.
#[must_use]
pub fn hang_timeout() -> Duration {
    scaled(HANG_TIMEOUT)
}

/// Returns how many times slower this machine is than the reference, at least 1.
///
/// `./test` measures it before it starts anything and exports `QUERYMEND_TEST_SLOWDOWN`; each process measures it once more, since
/// load may have come since then, and the larger one counts.
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

/// Measures the slowdown: the same work on two threads against the reference, the median of three, so that one pause is no load.
fn calibrate() -> f64 {
    let mut measured = [(); 3].map(|()| {
        let begun = Instant::now();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(work);
            }
        });
        begun.elapsed()
    });
    measured.sort();
    measured[1].as_secs_f64() / REFERENCE.as_secs_f64()
}

fn work() {
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
    fn a_condition_that_holds_ends_the_wait() {
        let mut asked = 0;
        wait_until("it was asked three times", || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
    }
}
