//! Time in tests: limits that never expire, a clock that can be moved on, and waiting that does not depend on how fast a machine is.

use std::time::{Duration, Instant};

use querymend::Config;
use querymend_testing::hang_timeout;

/// Longer than any test runs: a limit that never expires.
pub const NEVER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Returns the default configuration with limits on time that no machine is slow enough to reach.
pub fn config() -> Config {
    let mut config = Config::default();
    (config.limits.time, config.budget.time, config.values.time) = (NEVER, NEVER, NEVER);
    (config.circuit_breaker.timeout, config.circuit_breaker.max_timeout) = (NEVER, NEVER);
    (config.server.limits.idle, config.server.limits.stalled) = (NEVER, NEVER);
    config
}

/// Waits for something that must happen, and panics with `what` where it does not.
pub async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let timeout = hang_timeout();
    tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| panic!("timed out after {timeout:?}: {what}"))
}

/// Waits until a condition holds, and panics with `what` where it never does.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let polling = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(what, polling).await;
}

/// Moves tokio's clock on, so that limits of the server expire at once. The runtime must be one of a single thread.
pub async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Lets a limit of the server expire that most likely began by now. One that had not begun expires in its own time.
pub async fn expire(limit: Duration) {
    tokio::time::sleep(Duration::from_millis(200)).await;
    advance(limit + Duration::from_secs(1)).await;
}

/// Returns how many requests a rate limit may have admitted since a moment before the first: those of a minute, and those that the
/// time since then has given back.
pub fn most_admitted(requests_per_minute: u32, since: Instant) -> usize {
    let refilled = since.elapsed().as_secs_f64() * f64::from(requests_per_minute) / 60.0;
    requests_per_minute as usize + refilled as usize
}
