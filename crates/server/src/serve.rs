//! Listening: connections are taken, bounded, and let end when the server is to stop.

mod traffic;

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

use self::traffic::{Paced, Traffic};

/// Connections at the same time. More wait until one ends.
const CONNECTIONS: u32 = 4_096;
/// Who has not sent the head of a request by then does not mean to.
const HEAD: Duration = Duration::from_secs(10);
/// The longest head, in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// Tells a server to stop.
#[derive(Clone)]
pub struct Stopping(watch::Sender<bool>);

impl Default for Stopping {
    fn default() -> Self {
        Self(watch::channel(false).0)
    }
}

impl Stopping {
    /// From now on no request is taken; those that run may end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn stopped(&self) {
        self.0.subscribe().wait_for(|stop| *stop).await.ok();
    }
}

/// Waits until so much has come that one can tell which HTTP is spoken; `false` if the client hangs up before.
async fn begun(stream: &TcpStream) -> bool {
    const SECOND: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut seen = [0; SECOND.len()];
    loop {
        match stream.peek(&mut seen).await {
            Ok(0) | Err(_) => return false,
            Ok(count) if count == SECOND.len() || !SECOND.starts_with(&seen[..count]) => return true,
            // What was seen stays there, so that waiting for more would return at once.
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// How much clients may hold.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Connections from one address.
    pub per_address: usize,
    /// How long a connection stays open on which nothing is asked.
    pub idle: Duration,
    /// How long an answer waits for a client that does not read.
    pub stalled: Duration,
}

impl From<&ServerLimits> for Bounds {
    fn from(limits: &ServerLimits) -> Self {
        Self { per_address: limits.connections_per_address, idle: limits.idle, stalled: limits.stalled }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::from(&ServerLimits::default())
    }
}

impl Bounds {
    /// How often connections are looked at.
    fn look(&self) -> Duration {
        (self.idle.min(self.stalled) / 4).clamp(Duration::from_millis(20), Duration::from_secs(5))
    }
}

/// The connections of each address.
#[derive(Clone, Default)]
struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that is counted.
struct Counted(Addresses, IpAddr);

impl Addresses {
    /// Counts one more, if it is not one too many.
    fn take(&self, address: IpAddr, most: usize) -> Option<Counted> {
        let address = network(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Counted(self.clone(), address))
    }
}

impl Drop for Counted {
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

/// Whoever has one address of IPv6 has a network of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// The same as [`serve_within`] the bounds that hold where nothing else is said.
pub async fn serve(listener: TcpListener, router: Router, stopping: &Stopping, patience: Duration) -> io::Result<bool> {
    serve_within(listener, router, stopping, patience, &Bounds::default()).await
}

/// Serves until it is told to stop, and then as long as requests run, but no longer than `patience`. Gives back whether all of
/// them ended by themselves.
pub async fn serve_within(
    listener: TcpListener,
    router: Router,
    stopping: &Stopping,
    patience: Duration,
    bounds: &Bounds,
) -> io::Result<bool> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES as u32)
        .max_concurrent_streams(256)
        .keep_alive_interval(Duration::from_secs(30));
    let seats = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let addresses = Addresses::default();
    loop {
        let seat = tokio::select! {
            () = stopping.stopped() => break,
            seat = Arc::clone(&seats).acquire_owned() => seat.map_err(io::Error::other)?,
        };
        let (stream, address) = tokio::select! {
            () = stopping.stopped() => break,
            taken = listener.accept() => match taken {
                Ok(taken) => taken,
                Err(error) => {
                    // Too many open files, most likely: that passes when some connection ends.
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let Some(counted) = addresses.take(address.ip(), bounds.per_address) else {
            tracing::debug!(%address, "a connection was not taken: there are too many from this address");
            continue;
        };
        stream.set_nodelay(true).ok();
        let (builder, router, stopping, bounds) = (builder.clone(), router.clone(), stopping.clone(), bounds.clone());
        tokio::spawn(async move {
            attend(stream, &builder, router, &stopping, &bounds).await;
            drop((seat, counted));
        });
    }
    drop(listener);
    // Each connection gives its seat back when it has ended.
    Ok(tokio::time::timeout(patience, seats.acquire_many(CONNECTIONS)).await.is_ok())
}

/// Takes the requests of one connection until it ends, or is ended.
async fn attend(
    stream: TcpStream,
    builder: &Builder<TokioExecutor>,
    router: Router,
    stopping: &Stopping,
    bounds: &Bounds,
) {
    // Until it is known which HTTP is spoken, no other limit holds.
    let begun = tokio::select! {
        begun = tokio::time::timeout(HEAD, begun(&stream)) => begun,
        () = stopping.stopped() => return,
    };
    if !matches!(begun, Ok(true)) {
        return;
    }
    let traffic = Traffic::new();
    let entering = Arc::clone(&traffic);
    let service = service_fn(move |request: Request<Incoming>| {
        let (passing, router) = (entering.enter(), router.clone());
        async move {
            let response = router.oneshot(request.map(Body::new)).await?;
            Ok::<_, Infallible>(response.map(|body| Paced::new(body, passing)))
        }
    });
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let (mut is_leaving, mut look) = (false, tokio::time::interval(bounds.look()));
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                // What goes wrong here is the client's: it hung up, or does not speak HTTP.
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
                return;
            }
            () = stopping.stopped(), if !is_leaving => {
                is_leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = look.tick() => {
                let idle = traffic.idle().unwrap_or_default();
                if traffic.is_stalled(bounds.stalled) || idle >= bounds.idle.saturating_add(bounds.stalled) {
                    tracing::debug!("a connection was ended: its client does not read");
                    return;
                }
                if idle >= bounds.idle && !is_leaving {
                    is_leaving = true;
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
    fn connections_are_counted_by_address() {
        let addresses = Addresses::default();
        let take = |text: &str| text.parse().ok().and_then(|address| addresses.take(address, 2));
        let held = (take("10.0.0.1"), take("::ffff:10.0.0.1"));
        assert!(held.0.is_some() && held.1.is_some() && take("10.0.0.1").is_none() && take("10.0.0.2").is_some());
        drop(held);
        assert!(addresses.0.lock().is_ok_and(|counts| counts.is_empty()), "who has none is forgotten");
        let held = (take("2001:db8::1"), take("2001:db8::2"));
        assert!(held.1.is_some() && take("2001:db8:0:0:ffff::").is_none() && take("2001:db8:0:1::").is_some());
    }
}
