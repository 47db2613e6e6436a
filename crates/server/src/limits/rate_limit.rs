//! Rate limits per user: a token bucket for requests per minute, and a concurrency limit.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use querymend::config::ServerLimits;
use querymend::{Problem, ProblemCode};

use crate::sync::{AtomicUsize, Mutex};

/// Number of users above which idle buckets are evicted.
const MAX_BUCKETS: usize = 10_000;

/// Token buckets of all users.
#[derive(Default)]
pub struct RateLimiter {
    buckets: Mutex<HashMap<String, TokenBucket>>,
    in_flight: Arc<AtomicUsize>,
}

struct TokenBucket {
    /// Available tokens, one per request, refilled over time.
    tokens: f64,
    refilled_at: Instant,
    in_flight: Arc<AtomicUsize>,
}

/// Admitted request, which counts as in flight until this is dropped.
#[derive(Debug)]
pub struct InFlightGuard {
    of_user: Arc<AtomicUsize>,
    in_flight: Arc<AtomicUsize>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.of_user.fetch_sub(1, Ordering::AcqRel);
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl RateLimiter {
    /// Admits a request, or returns the time to wait before a retry.
    ///
    /// A token is taken before the concurrency limits are checked, so a request that exceeds those
    /// counts towards the requests per minute.
    pub fn acquire(&self, user: &str, limits: &ServerLimits) -> Result<InFlightGuard, Problem> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(user) {
            buckets.retain(|_, bucket| {
                bucket.in_flight.load(Ordering::Acquire) > 0 || bucket.refilled_at.elapsed().as_secs() < 60
            });
        }
        let capacity = f64::from(limits.requests_per_minute);
        let bucket = buckets.entry(user.to_owned()).or_insert_with(|| TokenBucket {
            tokens: capacity,
            refilled_at: now,
            in_flight: Arc::new(AtomicUsize::new(0)),
        });
        if limits.requests_per_minute > 0 {
            let since = now.duration_since(bucket.refilled_at).as_secs_f64();
            bucket.tokens = (bucket.tokens + since * capacity / 60.0).min(capacity);
            bucket.refilled_at = now;
            if bucket.tokens < 1.0 {
                let wait = ((1.0 - bucket.tokens) * 60.0 / capacity).ceil() as u64;
                let message = format!("rate limit exceeded: {} requests per minute", limits.requests_per_minute);
                return Err(too_many_requests(message, wait.max(1)));
            }
            bucket.tokens -= 1.0;
        }
        if self.in_flight.load(Ordering::Acquire) >= limits.max_concurrent {
            return Err(too_many_requests("the server is busy".to_owned(), 1));
        }
        if bucket.in_flight.load(Ordering::Acquire) >= limits.max_concurrent_per_user {
            return Err(too_many_requests(
                format!("too many concurrent requests: the limit is {}", limits.max_concurrent_per_user),
                1,
            ));
        }
        bucket.in_flight.fetch_add(1, Ordering::AcqRel);
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        Ok(InFlightGuard { of_user: Arc::clone(&bucket.in_flight), in_flight: Arc::clone(&self.in_flight) })
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }
}

fn too_many_requests(message: String, wait: u64) -> Problem {
    Problem { retry_after_s: Some(wait), ..Problem::new(ProblemCode::TooManyRequests, message) }
}
