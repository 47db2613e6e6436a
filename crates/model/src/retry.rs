//! Retry policy with exponential back-off and jitter.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;

/// Retry policy. Only transient errors are retried, and only before any text was streamed.
#[derive(Clone)]
pub struct Retry {
    /// Maximum number of attempts, including the first.
    pub max_attempts: u32,
    /// Upper bound of the first delay, which doubles with each attempt.
    pub base_delay: Duration,
    /// Maximum delay, unless the server requests one.
    pub max_delay: Duration,
    /// Maximum delay that a server may request. If it requests more, the error is returned
    /// immediately.
    pub max_retry_after: Duration,
    /// Source of time and randomness.
    pub clock: Arc<dyn RetryClock>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            base_delay: Duration::from_millis(300),
            max_delay: Duration::from_secs(8),
            max_retry_after: Duration::from_secs(30),
            clock: Arc::new(SystemRetryClock),
        }
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("tries", &self.max_attempts)
            .field("base", &self.base_delay)
            .field("cap", &self.max_delay)
            .field("longest_asked", &self.max_retry_after)
            .finish_non_exhaustive()
    }
}

impl Retry {
    /// Returns the delay after this many failed attempts, or `None` to give up; `left` is the time
    /// until the deadline.
    ///
    /// Full jitter: the delay is random between zero and a bound that doubles, so that clients that
    /// failed together do not retry together. A delay requested by the server is respected, with a
    /// little jitter added for the same reason.
    pub(crate) fn backoff(&self, failed: u32, error: &Error, left: Duration) -> Option<Duration> {
        if failed >= self.max_attempts || !error.is_transient() {
            return None;
        }
        let jitter = self.clock.random_fraction().clamp(0.0, 1.0);
        let pause = match error.retry_after() {
            Some(asked) if asked > self.max_retry_after => return None,
            Some(asked) => asked + self.base_delay.mul_f64(jitter),
            None => {
                let doublings = failed.saturating_sub(1).min(16);
                self.base_delay.saturating_mul(1 << doublings).min(self.max_delay).mul_f64(jitter)
            }
        };
        (pause < left).then_some(pause)
    }
}

/// Time and randomness, replaceable in tests.
pub trait RetryClock: Send + Sync {
    /// Waits for this time.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Returns a random number from 0 up to 1.
    fn random_fraction(&self) -> f64;
}

/// System clock and randomness.
struct SystemRetryClock;

impl RetryClock for SystemRetryClock {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(time))
    }

    fn random_fraction(&self) -> f64 {
        // The standard library seeds its hashers randomly, which is enough to spread requests over
        // time.
        let bits = RandomState::new().build_hasher().finish();
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always(f64);

    impl RetryClock for Always {
        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::ready(()))
        }

        fn random_fraction(&self) -> f64 {
            self.0
        }
    }

    fn busy(retry_after: Option<u64>) -> Error {
        let retry_after = retry_after.map(Duration::from_secs);
        Error::RateLimited { model: "m".into(), message: String::new(), retry_after }
    }

    #[test]
    fn backoff_doubles_up_to_a_cap_and_stops_after_four() {
        let retry = |chance| Retry { clock: Arc::new(Always(chance)), ..Retry::default() };
        let left = Duration::from_secs(60);
        let pauses = |chance: f64| (1..=4).map(|n| retry(chance).backoff(n, &busy(None), left)).collect::<Vec<_>>();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(pauses(1.0), [ms(300), ms(600), ms(1200), None]);
        assert_eq!(pauses(0.5), [ms(150), ms(300), ms(600), None]);
        assert_eq!(pauses(0.0), [ms(0), ms(0), ms(0), None]);
        let stubborn = Retry { max_attempts: 100, ..retry(1.0) };
        assert_eq!(stubborn.backoff(60, &busy(None), left), Some(stubborn.max_delay));
    }

    #[test]
    fn honors_retry_after_within_limits() {
        let retry = Retry { clock: Arc::new(Always(0.5)), ..Retry::default() };
        let minute = Duration::from_secs(60);
        assert_eq!(retry.backoff(1, &busy(Some(7)), minute), Some(Duration::from_millis(7_150)));
        assert_eq!(retry.backoff(1, &busy(Some(31)), minute), None, "longer than is reasonable");
        assert_eq!(retry.backoff(1, &busy(Some(7)), Duration::from_secs(5)), None, "longer than is left");
        let lasting = Error::Auth { model: "m".into(), message: String::new(), hint: String::new() };
        assert_eq!(retry.backoff(1, &lasting, minute), None);
    }

    #[test]
    fn jitter_is_evenly_distributed() {
        let chances: Vec<f64> = (0..1000).map(|_| SystemRetryClock.random_fraction()).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        let mean = chances.iter().sum::<f64>() / 1000.0;
        assert!((0.4..0.6).contains(&mean), "{mean}");
    }
}
