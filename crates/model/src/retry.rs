//! When to try again, and how long to wait before.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;

/// How often and after what pause a request is tried again. Only errors that may pass by themselves are, and only while
/// no text has been handed on.
#[derive(Clone)]
pub struct Retry {
    /// The most tries, the first included.
    pub tries: u32,
    /// The longest first pause; each further one may be twice as long.
    pub base: Duration,
    /// The longest pause of our own choosing.
    pub cap: Duration,
    /// The longest pause that a server may ask for. If it asks for more, the error goes to the caller at once.
    pub longest_asked: Duration,
    /// Time and chance.
    pub clock: Arc<dyn Clock>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            tries: 4,
            base: Duration::from_millis(300),
            cap: Duration::from_secs(8),
            longest_asked: Duration::from_secs(30),
            clock: Arc::new(System),
        }
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("tries", &self.tries)
            .field("base", &self.base)
            .field("cap", &self.cap)
            .field("longest_asked", &self.longest_asked)
            .finish_non_exhaustive()
    }
}

impl Retry {
    /// How long to wait after this many failed tries; `None` is to give up. `left` is the time that is left for it all.
    ///
    /// The pause is anything between nothing and a bound that doubles, so that many who failed together do not come back
    /// together. What a server asks for is kept, with a little chance on top for the same reason.
    pub(crate) fn pause(&self, failed: u32, error: &Error, left: Duration) -> Option<Duration> {
        if failed >= self.tries || !error.is_transient() {
            return None;
        }
        let chance = self.clock.chance().clamp(0.0, 1.0);
        let pause = match error.retry_after() {
            Some(asked) if asked > self.longest_asked => return None,
            Some(asked) => asked + self.base.mul_f64(chance),
            None => {
                let doublings = failed.saturating_sub(1).min(16);
                self.base.saturating_mul(1 << doublings).min(self.cap).mul_f64(chance)
            }
        };
        (pause < left).then_some(pause)
    }
}

/// Time and chance, so that tests need neither.
pub trait Clock: Send + Sync {
    /// Waits.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Anything from 0 up to 1.
    fn chance(&self) -> f64;
}

/// The machine's own.
struct System;

impl Clock for System {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(time))
    }

    fn chance(&self) -> f64 {
        // The standard library seeds its hashers by chance, which is chance enough to spread requests over time.
        let bits = RandomState::new().build_hasher().finish();
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always(f64);

    impl Clock for Always {
        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::ready(()))
        }

        fn chance(&self) -> f64 {
            self.0
        }
    }

    fn busy(retry_after: Option<u64>) -> Error {
        let retry_after = retry_after.map(Duration::from_secs);
        Error::RateLimited { model: "m".into(), message: String::new(), retry_after }
    }

    #[test]
    fn pauses_double_up_to_a_cap_and_stop_after_four_tries() {
        let retry = |chance| Retry { clock: Arc::new(Always(chance)), ..Retry::default() };
        let left = Duration::from_secs(60);
        let pauses = |chance: f64| (1..=4).map(|n| retry(chance).pause(n, &busy(None), left)).collect::<Vec<_>>();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(pauses(1.0), [ms(300), ms(600), ms(1200), None]);
        assert_eq!(pauses(0.5), [ms(150), ms(300), ms(600), None]);
        assert_eq!(pauses(0.0), [ms(0), ms(0), ms(0), None]);
        let stubborn = Retry { tries: 100, ..retry(1.0) };
        assert_eq!(stubborn.pause(60, &busy(None), left), Some(stubborn.cap));
    }

    #[test]
    fn what_a_server_asks_for_is_kept_within_reason() {
        let retry = Retry { clock: Arc::new(Always(0.5)), ..Retry::default() };
        let minute = Duration::from_secs(60);
        assert_eq!(retry.pause(1, &busy(Some(7)), minute), Some(Duration::from_millis(7_150)));
        assert_eq!(retry.pause(1, &busy(Some(31)), minute), None, "longer than is reasonable");
        assert_eq!(retry.pause(1, &busy(Some(7)), Duration::from_secs(5)), None, "longer than is left");
        let lasting = Error::Auth { model: "m".into(), message: String::new(), hint: String::new() };
        assert_eq!(retry.pause(1, &lasting, minute), None);
    }

    #[test]
    fn chance_is_spread() {
        let chances: Vec<f64> = (0..1000).map(|_| System.chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        let mean = chances.iter().sum::<f64>() / 1000.0;
        assert!((0.4..0.6).contains(&mean), "{mean}");
    }
}
