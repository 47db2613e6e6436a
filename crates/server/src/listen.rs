//! Accepting and serving connections, with limits and graceful shutdown.

mod connection;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use querymend::config::ServerLimits;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

use self::connection::{ConnectionActivity, StallTrackedBody};

/// Maximum number of concurrent connections. Further ones wait until a connection closes.
const MAX_CONNECTIONS: u32 = 4_096;
/// Timeout for reading request headers (protects against slowloris attacks).
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of request headers, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Signal for graceful shutdown.
#[derive(Clone)]
pub struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Shutdown {
    /// Stops accepting requests. Requests in flight may complete.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn stopped(&self) {
        self.0.subscribe().wait_for(|stop| *stop).await.ok();
    }
}

/// Waits for enough bytes to tell HTTP/1 from the HTTP/2 preface.
///
/// Returns `false` if the client disconnects before.
async fn wait_for_preface(stream: &TcpStream) -> bool {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut seen = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut seen).await {
            Ok(0) | Err(_) => return false,
            Ok(count) if count == PREFACE.len() || !PREFACE.starts_with(&seen[..count]) => return true,
            // Peeked bytes stay in the buffer, so another peek would return immediately.
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Limits on connections.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Maximum number of connections from one address.
    pub per_address: usize,
    /// Time after which a connection without requests is closed.
    pub idle_timeout: Duration,
    /// Time after which a connection is closed if its client does not read the response.
    pub stall_timeout: Duration,
}

impl From<&ServerLimits> for ConnectionLimits {
    fn from(limits: &ServerLimits) -> Self {
        Self { per_address: limits.connections_per_address, idle_timeout: limits.idle, stall_timeout: limits.stalled }
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self::from(&ServerLimits::default())
    }
}

impl ConnectionLimits {
    /// Returns the interval at which connections are checked.
    fn poll_interval(&self) -> Duration {
        (self.idle_timeout.min(self.stall_timeout) / 4).clamp(Duration::from_millis(20), Duration::from_secs(5))
    }
}

/// Number of connections per network address.
#[derive(Clone, Default)]
struct PerIpLimiter(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Counted connection, released on drop.
struct IpGuard(PerIpLimiter, IpAddr);

impl PerIpLimiter {
    /// Counts a connection; `None` if the limit is reached.
    fn acquire(&self, address: IpAddr, max: usize) -> Option<IpGuard> {
        let address = network_prefix(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(IpGuard(self.clone(), address))
    }
}

impl Drop for IpGuard {
    fn drop(&mut self) {
        let mut counts = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = counts.entry(self.1) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Returns the /64 prefix of an IPv6 address, because a client usually controls the whole network.
fn network_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Serves connections like [`serve_with_limits`], with default limits.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: &Shutdown,
    grace_period: Duration,
) -> io::Result<bool> {
    serve_with_limits(listener, router, shutdown, grace_period, &ConnectionLimits::default()).await
}

/// Serves connections until shutdown, then waits up to `grace_period` for requests in flight.
///
/// Returns whether all of them completed in time.
pub async fn serve_with_limits(
    listener: TcpListener,
    router: Router,
    shutdown: &Shutdown,
    grace_period: Duration,
    limits: &ConnectionLimits,
) -> io::Result<bool> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_BYTES as u32)
        .max_concurrent_streams(256)
        .keep_alive_interval(Duration::from_secs(30));
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    let ip_limiter = PerIpLimiter::default();
    loop {
        let permit = tokio::select! {
            () = shutdown.stopped() => break,
            permit = Arc::clone(&permits).acquire_owned() => permit.map_err(io::Error::other)?,
        };
        let (stream, address) = tokio::select! {
            () = shutdown.stopped() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Most likely too many open files, which resolves when a connection closes.
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let Some(ip_guard) = ip_limiter.acquire(address.ip(), limits.per_address) else {
            tracing::debug!(%address, "connection rejected: too many from this address");
            continue;
        };
        stream.set_nodelay(true).ok();
        let (builder, router, shutdown, limits) = (builder.clone(), router.clone(), shutdown.clone(), limits.clone());
        tokio::spawn(async move {
            serve_connection(stream, &builder, router, &shutdown, &limits).await;
            drop((permit, ip_guard));
        });
    }
    drop(listener);
    // Every closed connection returns its permit.
    Ok(tokio::time::timeout(grace_period, permits.acquire_many(MAX_CONNECTIONS)).await.is_ok())
}

/// Serves the requests of one connection until it closes or is closed by a limit.
async fn serve_connection(
    stream: TcpStream,
    builder: &Builder<TokioExecutor>,
    router: Router,
    shutdown: &Shutdown,
    limits: &ConnectionLimits,
) {
    // No other timeout applies until the HTTP version is known.
    let preface = tokio::select! {
        preface = tokio::time::timeout(HEADER_TIMEOUT, wait_for_preface(&stream)) => preface,
        () = shutdown.stopped() => return,
    };
    if !matches!(preface, Ok(true)) {
        return;
    }
    let activity = ConnectionActivity::new();
    let request_activity = Arc::clone(&activity);
    let service = service_fn(move |request: Request<Incoming>| {
        let (in_flight, router) = (request_activity.begin_request(), router.clone());
        async move {
            let response = router.oneshot(request.map(Body::new)).await?;
            Ok::<_, Infallible>(response.map(|body| StallTrackedBody::new(body, in_flight)))
        }
    });
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let (mut is_closing, mut poll) = (false, tokio::time::interval(limits.poll_interval()));
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                // Client errors: it disconnected, or sent something other than HTTP.
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection closed with an error");
                }
                return;
            }
            () = shutdown.stopped(), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = poll.tick() => {
                let idle = activity.idle_time().unwrap_or_default();
                if activity.is_stalled(limits.stall_timeout) {
                    tracing::debug!("connection closed: the client does not read");
                    return;
                }
                if idle >= limits.idle_timeout.saturating_add(limits.stall_timeout) {
                    tracing::debug!("connection closed: it stayed idle after its shutdown");
                    return;
                }
                if idle >= limits.idle_timeout && !is_closing {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_connections_per_address() {
        let addresses = PerIpLimiter::default();
        let take = |text: &str| text.parse().ok().and_then(|address| addresses.acquire(address, 2));
        let held = (take("10.0.0.1"), take("::ffff:10.0.0.1"));
        assert!(held.0.is_some() && held.1.is_some() && take("10.0.0.1").is_none() && take("10.0.0.2").is_some());
        drop(held);
        assert!(addresses.0.lock().is_ok_and(|counts| counts.is_empty()), "who has none is forgotten");
        let held = (take("2001:db8::1"), take("2001:db8::2"));
        assert!(held.1.is_some() && take("2001:db8:0:0:ffff::").is_none() && take("2001:db8:0:1::").is_some());
    }
}
