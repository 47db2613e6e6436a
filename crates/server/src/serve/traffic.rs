//! What goes on on one connection: how many requests there are, since when there is none, and who does not read what was sent.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

/// Bytes that are handed over at a time. What is handed over whole cannot be taken back from a client that reads nothing.
const PIECE: usize = 64 << 10;

/// What goes on on one connection.
pub struct Traffic {
    began: Instant,
    requests: Mutex<Requests>,
}

struct Requests {
    /// Those that run, each with when it last handed something over, in milliseconds since the beginning: zero while it is we who
    /// are waited for.
    running: HashMap<u64, Arc<AtomicU64>>,
    next: u64,
    /// When the last one ended.
    quiet: Instant,
}

impl Traffic {
    /// Nothing was asked yet.
    pub fn new() -> Arc<Self> {
        let began = Instant::now();
        let requests = Requests { running: HashMap::new(), next: 0, quiet: began };
        Arc::new(Self { began, requests: Mutex::new(requests) })
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request came.
    pub fn enter(self: &Arc<Self>) -> Passing {
        let handed = Arc::new(AtomicU64::new(0));
        let mut requests = self.requests();
        let number = requests.next;
        requests.next += 1;
        requests.running.insert(number, Arc::clone(&handed));
        drop(requests);
        Passing { traffic: Arc::clone(self), number, handed }
    }

    /// For how long nothing was asked; nothing while a request runs.
    pub fn idle(&self) -> Option<Duration> {
        let requests = self.requests();
        requests.running.is_empty().then(|| requests.quiet.elapsed())
    }

    /// Whether some answer has waited for so long to be read.
    pub fn is_stalled(&self, most: Duration) -> bool {
        let now = self.now();
        let waits = |handed: &Arc<AtomicU64>| match handed.load(Ordering::Relaxed) {
            0 => false,
            at => now.saturating_sub(at) as u128 >= most.as_millis(),
        };
        self.requests().running.values().any(waits)
    }

    fn now(&self) -> u64 {
        (self.began.elapsed().as_millis() as u64).max(1)
    }
}

/// A request that runs, until all of its answer is handed over or given up.
pub struct Passing {
    traffic: Arc<Traffic>,
    number: u64,
    handed: Arc<AtomicU64>,
}

impl Drop for Passing {
    fn drop(&mut self) {
        let mut requests = self.traffic.requests();
        requests.running.remove(&self.number);
        requests.quiet = Instant::now();
    }
}

/// An answer that is handed over in pieces. The next one is asked for when there is room, so that it is seen who does not read.
pub struct Paced {
    body: Body,
    rest: Bytes,
    passing: Passing,
}

impl Paced {
    /// The answer to a request.
    pub fn new(body: Body, passing: Passing) -> Self {
        Self { body, rest: Bytes::new(), passing }
    }

    fn hand_over(&mut self, mut data: Bytes) -> Frame<Bytes> {
        self.rest = if data.len() > PIECE { data.split_off(PIECE) } else { Bytes::new() };
        self.passing.handed.store(self.passing.traffic.now(), Ordering::Relaxed);
        Frame::data(data)
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.passing.handed.store(0, Ordering::Relaxed);
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(self.hand_over(rest))));
        }
        Pin::new(&mut self.body).poll_frame(context).map(|frame| {
            frame.map(|frame| {
                frame.map(|frame| frame.into_data().map_or_else(|other| other, |data| self.hand_over(data)))
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn answers_come_whole_and_in_pieces() {
        let traffic = Traffic::new();
        let sent: Vec<u8> = (0..3 * PIECE + 7).map(|n| n as u8).collect();
        let mut paced = Paced::new(Body::from(sent.clone()), traffic.enter());
        assert_eq!(paced.size_hint().exact(), Some(sent.len() as u64));
        assert_eq!(traffic.idle(), None);
        let first = std::future::poll_fn(|context| Pin::new(&mut paced).poll_frame(context)).await;
        let first = first.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
        assert_eq!((first.len(), paced.size_hint().exact()), (PIECE, Some((sent.len() - PIECE) as u64)));
        // Now it is the client that is waited for.
        assert!(traffic.is_stalled(Duration::ZERO) && !traffic.is_stalled(Duration::from_secs(3600)));
        let rest = to_bytes(Body::new(paced), usize::MAX).await.unwrap_or_default();
        assert_eq!([first, rest].concat(), sent);
        assert!(traffic.idle().is_some() && !traffic.is_stalled(Duration::ZERO));
    }
}
