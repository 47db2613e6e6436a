//! What clients may hold: connections of one address, connections on which nothing is asked, answers that nobody reads.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use querymend::Config;
use querymend_model::Script;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::house::{House, open};

async fn bounded(change: impl FnOnce(&mut querymend::config::ServerLimits)) -> House {
    let mut config = Config::default();
    change(&mut config.server.limits);
    open(Arc::new(Script::new(["SELECT 1"])), config).await
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(30), work).await;
    assert!(done.is_ok(), "{what} took too long");
    done.unwrap()
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

#[tokio::test]
async fn one_address_has_only_so_many_connections() {
    let house = bounded(|limits| limits.connections_per_address = 2).await;
    let (first, second) = (is_served(&house).await, is_served(&house).await);
    assert!(first.is_some() && second.is_some());
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
    within("the query", async {
        while !house.audited().iter().any(|line| line["action"] == "run") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    within("letting go", async {
        while house.service.running() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_let_go() {
    let house = bounded(|limits| limits.stalled = Duration::from_millis(300)).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(house.address).await.unwrap();
    let body = long_answer();
    let head = "POST /v1/run HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    deaf.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    let_go(&house).await;
    // The end of the answer was never sent.
    let mut read = Vec::new();
    within("reading the rest", deaf.read_to_end(&mut read)).await.ok();
    assert!(read.len() < 20_000_000, "{}", read.len());
}

#[tokio::test]
async fn an_answer_over_http2_that_nobody_makes_room_for_is_let_go() {
    let house = bounded(|limits| limits.stalled = Duration::from_millis(300)).await;
    let stream = TokioIo::new(TcpStream::connect(house.address).await.unwrap());
    let (mut send, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = hyper::Request::post(house.url("/v1/run")).header("content-type", "application/json");
    let request = request.body(axum::body::Body::from(long_answer())).unwrap();
    let response = within("the head", send.send_request(request)).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    // The connection is read all the time, and only the answer is not.
    let_go(&house).await;
    within("the end", connection).await.unwrap().ok();
    drop(response);
}

#[tokio::test]
async fn an_answer_that_is_read_slowly_is_sent_to_the_end() {
    let house = bounded(|limits| limits.stalled = Duration::from_millis(500)).await;
    let stream = TokioIo::new(TcpStream::connect(house.address).await.unwrap());
    let (mut send, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::post(house.url("/v1/run")).header("content-type", "application/json");
    let body = json!({"sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i, printf('%.500c', 'x') FROM n"});
    let request = request.body(axum::body::Body::from(body.to_string())).unwrap();
    let mut answer = send.send_request(request).await.unwrap().into_body();
    let (mut length, mut pauses) = (0, 0);
    loop {
        let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut answer).poll_frame(context)).await;
        let Some(frame) = frame else { break };
        length += frame.unwrap().into_data().map_or(0, |data: Bytes| data.len());
        if length / 200_000 > pauses {
            pauses = length / 200_000;
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    }
    assert!(length > 1_000_000 && pauses > 3, "{length} {pauses}");
}

#[tokio::test]
async fn a_connection_on_which_nothing_is_asked_is_ended() {
    let house = bounded(|limits| limits.idle = Duration::from_millis(300)).await;
    let stream = TokioIo::new(TcpStream::connect(house.address).await.unwrap());
    let (mut send, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = hyper::Request::get(house.url("/healthz")).body(axum::body::Body::empty()).unwrap();
    assert_eq!(send.send_request(request).await.unwrap().status().as_u16(), 200);
    within("the end of HTTP/2", connection).await.unwrap().unwrap();
    let mut stream = is_served(&house).await.unwrap();
    within("the end of HTTP/1", stream.read_to_end(&mut Vec::new())).await.unwrap();
}
