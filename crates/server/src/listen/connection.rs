//! Activity of a connection: requests in flight, idle time, and responses stalled by a slow client.

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

/// Maximum size of a chunk handed to the HTTP implementation. A whole body handed over at once
/// would hide that the client does not read.
const CHUNK_BYTES: usize = 64 << 10;

/// Activity of one connection.
pub struct ConnectionActivity {
    began: Instant,
    requests: Mutex<ActiveRequests>,
}

struct ActiveRequests {
    /// Requests in flight with the time of their last write.
    ///
    /// Times are in milliseconds since the connection was opened; zero while the server is
    /// producing the next chunk.
    running: HashMap<u64, Arc<AtomicU64>>,
    next_id: u64,
    /// Time at which the last request ended.
    idle_since: Instant,
}

impl ConnectionActivity {
    /// Creates the state of a new connection without requests.
    pub fn new() -> Arc<Self> {
        let began = Instant::now();
        let requests = ActiveRequests { running: HashMap::new(), next_id: 0, idle_since: began };
        Arc::new(Self { began, requests: Mutex::new(requests) })
    }

    fn requests(&self) -> MutexGuard<'_, ActiveRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request until the returned guard is dropped.
    pub fn begin_request(self: &Arc<Self>) -> InFlight {
        let last_write_ms = Arc::new(AtomicU64::new(0));
        let mut requests = self.requests();
        let id = requests.next_id;
        requests.next_id += 1;
        requests.running.insert(id, Arc::clone(&last_write_ms));
        drop(requests);
        InFlight { activity: Arc::clone(self), id, last_write_ms }
    }

    /// Returns the time since the last request; `None` while a request is in flight.
    pub fn idle_time(&self) -> Option<Duration> {
        let requests = self.requests();
        requests.running.is_empty().then(|| requests.idle_since.elapsed())
    }

    /// Returns whether a response has waited for the client for `timeout` or longer.
    pub fn is_stalled(&self, timeout: Duration) -> bool {
        let now = self.now();
        let is_waiting = |last_write_ms: &Arc<AtomicU64>| match last_write_ms.load(Ordering::Relaxed) {
            0 => false,
            at => now.saturating_sub(at) as u128 >= timeout.as_millis(),
        };
        self.requests().running.values().any(is_waiting)
    }

    fn now(&self) -> u64 {
        (self.began.elapsed().as_millis() as u64).max(1)
    }
}

/// Request in flight, until its response is sent or dropped.
pub struct InFlight {
    activity: Arc<ConnectionActivity>,
    id: u64,
    last_write_ms: Arc<AtomicU64>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut requests = self.activity.requests();
        requests.running.remove(&self.id);
        requests.idle_since = Instant::now();
    }
}

/// Response body that is sent in chunks.
///
/// The next chunk is polled when there is room in the send buffer, which reveals clients that do
/// not read.
pub struct StallTrackedBody {
    body: Body,
    rest: Bytes,
    in_flight: InFlight,
}

impl StallTrackedBody {
    /// Wraps the response body of a request.
    pub fn new(body: Body, in_flight: InFlight) -> Self {
        Self { body, rest: Bytes::new(), in_flight }
    }

    fn next_chunk(&mut self, mut data: Bytes) -> Frame<Bytes> {
        self.rest = if data.len() > CHUNK_BYTES { data.split_off(CHUNK_BYTES) } else { Bytes::new() };
        self.in_flight.last_write_ms.store(self.in_flight.activity.now(), Ordering::Relaxed);
        Frame::data(data)
    }
}

impl HttpBody for StallTrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.in_flight.last_write_ms.store(0, Ordering::Relaxed);
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(self.next_chunk(rest))));
        }
        Pin::new(&mut self.body).poll_frame(context).map(|frame| {
            frame.map(|frame| {
                frame.map(|frame| frame.into_data().map_or_else(|other| other, |data| self.next_chunk(data)))
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
    async fn tracks_activity_of_chunked_bodies() {
        let traffic = ConnectionActivity::new();
        let sent: Vec<u8> = (0..3 * CHUNK_BYTES + 7).map(|n| n as u8).collect();
        let mut paced = StallTrackedBody::new(Body::from(sent.clone()), traffic.begin_request());
        assert_eq!(paced.size_hint().exact(), Some(sent.len() as u64));
        assert_eq!(traffic.idle_time(), None);
        let first = std::future::poll_fn(|context| Pin::new(&mut paced).poll_frame(context)).await;
        let first = first.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
        assert_eq!((first.len(), paced.size_hint().exact()), (CHUNK_BYTES, Some((sent.len() - CHUNK_BYTES) as u64)));
        // From here on, the server waits for the client.
        assert!(traffic.is_stalled(Duration::ZERO) && !traffic.is_stalled(Duration::from_secs(3600)));
        let rest = to_bytes(Body::new(paced), usize::MAX).await.unwrap_or_default();
        assert_eq!([first, rest].concat(), sent);
        assert!(traffic.idle_time().is_some() && !traffic.is_stalled(Duration::ZERO));
    }
}
