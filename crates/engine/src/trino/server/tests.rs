//! Servers that are busy, confused or hostile, played by a few lines.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::*;
use crate::Cancel;
use crate::trino::refusal::Sent;
use crate::trino::session::Session;
use crate::trino::settings::TRINO;

/// Answers one request after another, each on a connection of its own, and gives back what was asked.
fn play(answers: Vec<String>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let played = thread::spawn(move || {
        let answer = |answer: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = request(&mut stream);
            // As long as a port is, so that the length that was said stays right.
            stream.write_all(answer.replace("PORT_", &format!("{port:05}")).as_bytes()).ok();
            asked
        };
        answers.into_iter().map(answer).collect()
    });
    (port, played)
}

fn request(stream: &mut TcpStream) -> String {
    let mut asked = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        asked.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&asked).into_owned();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
        if read == 0 || text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= length) {
            return text;
        }
    }
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn server(port: u16, token: bool) -> Server {
    let variables = move |name: &str| (token && name == "QUERYMEND_DB_TOKEN").then(|| "hunter2".to_string());
    let settings = Settings::read(&format!("trino://me@127.0.0.1:{port}/c/s"), &TRINO, &variables).unwrap();
    Server::new(settings).unwrap()
}

async fn begin(port: u16) -> Result<Reply, Error> {
    server(port, true).begin("SELECT 1", &With::default()).await
}

#[tokio::test]
async fn f06_another_address_is_not_followed() {
    for next in [
        "http://evil.example/v1/statement/x",
        "http://127.0.0.1:1/x",
        "https://127.0.0.1:PORT_/x",
        "http://me@127.0.0.1:PORT_/x",
        "http://127.0.0.1:PORT_@evil.example/x",
        "file:///etc/passwd",
    ] {
        let (port, played) = play(vec![answer("200 OK", &format!(r#"{{"id": "1", "nextUri": "{next}"}}"#))]);
        let Err(error) = begin(port).await else { panic!("{next} was taken") };
        assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(played.join().unwrap()[0].contains("authorization: Bearer hunter2"));
    }
    let (port, played) =
        play(vec!["HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".into()]);
    assert!(begin(port).await.is_err_and(|error| error.to_string().contains("elsewhere")));
    played.join().unwrap();
}

#[tokio::test]
async fn f03_a_busy_server_is_asked_again() {
    let (port, played) = play(vec![
        answer("503 Service Unavailable", ""),
        answer("429 Too Many Requests", ""),
        answer("200 OK", r#"{"id": "1", "nextUri": "http://127.0.0.1:PORT_/v1/next"}"#),
    ]);
    assert!(begin(port).await.is_ok_and(|reply| reply.next.is_some_and(|next| next.path() == "/v1/next")));
    let asked = played.join().unwrap();
    assert!(asked.iter().all(|asked| asked.ends_with("SELECT 1")), "{asked:?}");
    for header in [
        "x-trino-user: me",
        "x-trino-catalog: c",
        "x-trino-schema: s",
        "x-trino-source: querymend",
        "x-trino-time-zone: UTC",
        "x-trino-transaction-id: NONE",
        "x-trino-session: query_max_run_time=",
    ] {
        assert!(asked[2].contains(header), "{header}: {}", asked[2]);
    }
}

#[tokio::test]
async fn f03_what_is_not_the_protocol_is_said_to_be() {
    for (sent, said, transient) in [
        (answer("200 OK", "<html>hello</html>"), "does not answer as Trino does", false),
        (answer("401 Unauthorized", "Invalid credentials"), "Invalid credentials", false),
        (answer("403 Forbidden", ""), "does not let this user in", false),
        (answer("404 Not Found", "<html>"), "there is no Trino", false),
        (answer("500 Internal Server Error", ""), "did not take the request", true),
    ] {
        let (port, played) = play(vec![sent]);
        let Err(error) = begin(port).await else { panic!("{said}") };
        assert!(error.to_string().contains(said) && error.is_transient() == transient, "{error:?}");
        played.join().unwrap();
    }
}

#[tokio::test]
async fn f03_a_connection_that_turns_out_dead_is_replaced_once() {
    let (port, played) = play(vec![String::new(), answer("200 OK", r#"{"id": "1"}"#)]);
    assert!(begin(port).await.is_ok());
    played.join().unwrap();
    let (port, played) = play(vec![String::new(), String::new()]);
    assert!(begin(port).await.is_err_and(|error| error.is_transient()));
    played.join().unwrap();
}

// The connection is closed on another thread than the one that waits for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f03_an_answer_without_end_is_not_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let played = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\"").unwrap();
        let padding = vec![b'x'; 1 << 20];
        (0..1 << 10).take_while(|_| stream.write_all(&padding).is_ok()).count()
    });
    assert!(begin(port).await.is_err_and(|error| error.to_string().contains("more than 64 MB")));
    assert!(played.join().unwrap() < 1 << 10, "all of it was read");
}

#[tokio::test]
async fn f03_a_server_that_lets_nobody_set_its_clock_is_asked_without() {
    let refusal = r#"{"id": "1", "error": {"errorName": "PERMISSION_DENIED", "errorType": "USER_ERROR",
        "message": "Access Denied: Cannot set system session property query_max_run_time"}}"#;
    let (port, played) = play(vec![answer("200 OK", refusal), answer("200 OK", r#"{"id": "2"}"#)]);
    let (server, cancel) = (Arc::new(server(port, false)), Cancel::new());
    let sent = Sent { sql: "SELECT 1", lines_before: 0 };
    let mut session = Session::new(&server, Duration::MAX, &cancel);
    session.run(sent, "SELECT 1", &mut |_| ControlFlow::Continue(())).await.unwrap();
    let asked = played.join().unwrap();
    assert!(
        asked[0].contains("x-trino-session: query_max_run_time=8640000000ms") && !asked[1].contains("x-trino-session")
    );
}
