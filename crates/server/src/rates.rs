//! How much one user may ask: so many requests in a minute, so many at once.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use querymend::config::ServerLimits;
use querymend::{Problem, ProblemCode};

use crate::sync::{AtomicUsize, Mutex};

/// Users whose figures are kept; those who asked least lately are forgotten first.
const KNOWN: usize = 10_000;

/// The figures of all users.
#[derive(Default)]
pub struct Rates {
    users: Mutex<HashMap<String, Figures>>,
    all: Arc<AtomicUsize>,
}

struct Figures {
    /// Requests that may still be made. They come back as time goes by.
    left: f64,
    at: Instant,
    running: Arc<AtomicUsize>,
}

/// A request that is let in. As long as it is held, it counts as running.
#[derive(Debug)]
pub struct Ticket {
    running: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Rates {
    /// Lets a request in, or says when it may come again.
    pub fn admit(&self, user: &str, limits: &ServerLimits) -> Result<Ticket, Problem> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if users.len() >= KNOWN && !users.contains_key(user) {
            users.retain(|_, known| known.running.load(Ordering::Acquire) > 0 || known.at.elapsed().as_secs() < 60);
        }
        let most = f64::from(limits.per_minute);
        let figures = users.entry(user.to_owned()).or_insert_with(|| Figures {
            left: most,
            at: now,
            running: Arc::new(AtomicUsize::new(0)),
        });
        if limits.per_minute > 0 {
            let since = now.duration_since(figures.at).as_secs_f64();
            figures.left = (figures.left + since * most / 60.0).min(most);
            figures.at = now;
            if figures.left < 1.0 {
                let wait = ((1.0 - figures.left) * 60.0 / most).ceil() as u64;
                let message = format!("more than {} requests in a minute", limits.per_minute);
                return Err(refused(message, wait.max(1)));
            }
            figures.left -= 1.0;
        }
        if self.all.load(Ordering::Acquire) >= limits.concurrent_all {
            return Err(refused("the server is busy".to_owned(), 1));
        }
        if figures.running.load(Ordering::Acquire) >= limits.concurrent {
            return Err(refused(format!("more than {} requests at once", limits.concurrent), 1));
        }
        figures.running.fetch_add(1, Ordering::AcqRel);
        self.all.fetch_add(1, Ordering::AcqRel);
        Ok(Ticket { running: Arc::clone(&figures.running), all: Arc::clone(&self.all) })
    }

    /// Requests that are running.
    pub fn running(&self) -> usize {
        self.all.load(Ordering::Acquire)
    }
}

fn refused(message: String, wait: u64) -> Problem {
    Problem { retry_after_s: Some(wait), ..Problem::new(ProblemCode::TooManyRequests, message) }
}
