//! Listening: connections are taken, bounded, and let end when the server is to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

/// Connections at the same time. More wait until one ends.
const CONNECTIONS: usize = 4_096;
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

/// Serves until it is told to stop, and then as long as requests run, but no longer than `patience`. Gives back whether all of
/// them ended by themselves.
pub async fn serve(listener: TcpListener, router: Router, stopping: &Stopping, patience: Duration) -> io::Result<bool> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES as u32)
        .max_concurrent_streams(256)
        .keep_alive_interval(Duration::from_secs(30));
    let graceful = GracefulShutdown::new();
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let seat = tokio::select! {
            () = stopping.stopped() => break,
            seat = Arc::clone(&seats).acquire_owned() => seat.map_err(io::Error::other)?,
        };
        let (stream, _) = tokio::select! {
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
        stream.set_nodelay(true).ok();
        let service = router.clone().map_request(|request: Request<Incoming>| request.map(axum::body::Body::new));
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        tokio::spawn(async move {
            // Until it is known which HTTP is spoken, no other limit holds.
            if !matches!(tokio::time::timeout(HEAD, begun(&stream)).await, Ok(true)) {
                return;
            }
            let connection =
                builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
            let connection = watcher.watch(connection.into_owned());
            // What goes wrong here is the client's: it hung up, or does not speak HTTP.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(seat);
        });
    }
    drop(listener);
    Ok(tokio::time::timeout(patience, graceful.shutdown()).await.is_ok())
}
