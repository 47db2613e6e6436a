//! What clients may hold: connections of one address, connections on which nothing is asked, answers that nobody reads.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Body as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use querymend::config::ServerLimits;
use querymend_model::{Model, ScriptedModel};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::house::{House, open};
use super::trouble::Slow;
use crate::timing::{self, advance, until, within};

async fn bounded(change: impl FnOnce(&mut ServerLimits)) -> House {
    bounded_with(Arc::new(ScriptedModel::new(["SELECT 1"])), change).await
}

async fn bounded_with(model: Arc<dyn Model>, change: impl FnOnce(&mut ServerLimits)) -> House {
    let mut config = timing::config();
    change(&mut config.server.limits);
    open(model, config).await
}

/// Whether a connection is served.
async fn is_served(house: &House) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.ok()?;
    assert_eq!(&head, b"HTTP/1.1 200");
    Some(stream)
}

/// Sends a request on a connection, and does not wait for the answer.
async fn post(stream: &mut TcpStream, path: &str, body: &str) {
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
}

#[tokio::test]
async fn limits_connections_per_address() {
    // On each a question runs that never ends: one that is idle would be closed after some time.
    let house = bounded_with(Slow::new(), |limits| limits.connections_per_address = 2).await;
    let question = json!({"question": "How many products?"}).to_string();
    let mut first = TcpStream::connect(house.address).await.unwrap();
    let mut second = TcpStream::connect(house.address).await.unwrap();
    post(&mut first, "/v1/ask", &question).await;
    post(&mut second, "/v1/ask", &question).await;
    until("both are served", || house.service.running_requests() == 2).await;
    assert!(within("turning away", is_served(&house)).await.is_none());
    drop(first);
    within("a place", async {
        while is_served(&house).await.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Some megabytes of rows: more than all buffers between a server and a client hold.
fn long_answer() -> String {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) SELECT i, printf('%.3000c', 'x') FROM n";
    json!({"sql": sql}).to_string()
}

/// Waits until a query has run, and then until nothing counts as running: the place of whoever does not read is free again.
async fn let_go(house: &House) {
    until("the query has run", || house.audited().iter().any(|line| line["action"] == "run")).await;
    until("it is let go", || house.service.running_requests() == 0).await;
}

#[tokio::test]
async fn closes_a_stalled_http1_response() {
    let house = bounded(|limits| limits.stalled = Duration::from_millis(300)).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(house.address).await.unwrap();
    post(&mut deaf, "/v1/run", &long_answer()).await;
    let_go(&house).await;
    // The end of the answer was never sent.
    let mut read = Vec::new();
    within("reading the rest", deaf.read_to_end(&mut read)).await.ok();
    assert!(read.len() < 20_000_000, "{}", read.len());
}

#[tokio::test]
async fn closes_a_stalled_http2_response() {
    let house = bounded(|limits| limits.stalled = Duration::from_millis(300)).await;
    let answered = async {
        loop {
            let stream = TokioIo::new(TcpStream::connect(house.address).await.unwrap());
            let (mut send, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            let connection = tokio::spawn(connection);
            let request = hyper::Request::post(house.url("/v1/run")).header("content-type", "application/json");
            let request = request.body(Body::from(long_answer())).unwrap();
            // A machine that stops for long enough has it let go before the head is read.
            if let Ok(response) = send.send_request(request).await {
                return (send, connection, response);
            }
        }
    };
    let (_send, connection, response) = within("the head", answered).await;
    assert_eq!(response.status().as_u16(), 200);
    // The connection is read all the time, and only the answer is not.
    let_go(&house).await;
    within("the end", connection).await.unwrap().ok();
    drop(response);
}

#[tokio::test]
async fn completes_a_slowly_read_response() {
    const STALLED: Duration = Duration::from_secs(60 * 60);
    let house = bounded(|limits| limits.stalled = STALLED).await;
    let stream = TokioIo::new(TcpStream::connect(house.address).await.unwrap());
    // The server can send little that was not read.
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(65_535_u32).initial_connection_window_size(65_535_u32);
    let (mut send, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::post(house.url("/v1/run")).header("content-type", "application/json");
    let body = json!({"sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i, printf('%.500c', 'x') FROM n"});
    let request = request.body(Body::from(body.to_string())).unwrap();
    let mut answer = within("the head", send.send_request(request)).await.unwrap().into_body();
    let (mut length, mut pauses) = (0, 0);
    loop {
        let next = std::future::poll_fn(|context| std::pin::Pin::new(&mut answer).poll_frame(context));
        let Some(frame) = within("the next piece", next).await else { break };
        length += frame.unwrap().into_data().map_or(0, |data: Bytes| data.len());
        if length / 200_000 > pauses {
            pauses = length / 200_000;
            // Each time not as long as nothing may be read, but all of them together longer.
            advance(STALLED * 2 / 3).await;
        }
    }
    assert!(length > 1_000_000 && pauses > 3, "{length} {pauses}");
}

/// A connection over HTTP/2 on which a request was served; none if it was ended before.
async fn is_served_http2(house: &House) -> Option<(http2::SendRequest<Body>, JoinHandle<hyper::Result<()>>)> {
    let stream = TokioIo::new(TcpStream::connect(house.address).await.unwrap());
    let (mut send, connection) = http2::handshake(TokioExecutor::new(), stream).await.ok()?;
    let connection = tokio::spawn(connection);
    let request = hyper::Request::get(house.url("/healthz")).body(Body::empty()).unwrap();
    assert_eq!(send.send_request(request).await.ok()?.status().as_u16(), 200);
    Some((send, connection))
}

#[tokio::test]
async fn closes_idle_connections() {
    let house = bounded(|limits| limits.idle = Duration::from_millis(300)).await;
    // A machine that stops for so long has the connection ended before anything is asked.
    let served = async {
        loop {
            if let Some(served) = is_served_http2(&house).await {
                return served;
            }
        }
    };
    let (_send, connection) = within("HTTP/2", served).await;
    within("the end of HTTP/2", connection).await.unwrap().unwrap();
    let served = async {
        loop {
            if let Some(stream) = is_served(&house).await {
                return stream;
            }
        }
    };
    let mut stream = within("HTTP/1", served).await;
    within("the end of HTTP/1", stream.read_to_end(&mut Vec::new())).await.unwrap();
}
