//! Scripted servers that are overloaded, broken or malicious.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::*;
use crate::CancelFlag;
use crate::trino::errors::SentQuery;
use crate::trino::session::TrinoSession;
use crate::trino::settings::TRINO;

/// Serves the given responses, each on its own connection. The thread returns the requests.
fn serve_responses(answers: Vec<String>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let played = thread::spawn(move || {
        let answer = |answer: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = read_request(&mut stream);
            // The placeholder is as long as a port number, so that the content length stays
            // correct.
            stream.write_all(answer.replace("PORT_", &format!("{port:05}")).as_bytes()).ok();
            asked
        };
        answers.into_iter().map(answer).collect()
    });
    (port, played)
}

fn read_request(stream: &mut TcpStream) -> String {
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

fn http_response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn test_client(port: u16, token: bool) -> TrinoClient {
    let variables = move |name: &str| (token && name == "QUERYMEND_DB_TOKEN").then(|| "hunter2".to_string());
    let settings = TrinoSettings::parse(&format!("trino://me@127.0.0.1:{port}/c/s"), &TRINO, &variables).unwrap();
    TrinoClient::new(settings).unwrap()
}

async fn submit_statement(port: u16) -> Result<TrinoResponse, Error> {
    test_client(port, true).submit("SELECT 1", &StatementOptions::default()).await
}

#[tokio::test]
async fn follows_no_link_to_another_host() {
    for next in [
        "http://evil.example/v1/statement/x",
        "http://127.0.0.1:1/x",
        "https://127.0.0.1:PORT_/x",
        "http://me@127.0.0.1:PORT_/x",
        "http://127.0.0.1:PORT_@evil.example/x",
        "file:///etc/passwd",
    ] {
        let (port, played) =
            serve_responses(vec![http_response("200 OK", &format!(r#"{{"id": "1", "nextUri": "{next}"}}"#))]);
        let Err(error) = submit_statement(port).await else { panic!("{next} was taken") };
        assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(played.join().unwrap()[0].contains("authorization: Bearer hunter2"));
    }
    let (port, played) =
        serve_responses(vec!["HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".into()]);
    assert!(submit_statement(port).await.is_err_and(|error| error.to_string().contains("redirect")));
    played.join().unwrap();
}

#[tokio::test]
async fn retries_a_busy_server() {
    let (port, played) = serve_responses(vec![
        http_response("503 Service Unavailable", ""),
        http_response("429 Too Many Requests", ""),
        http_response("200 OK", r#"{"id": "1", "nextUri": "http://127.0.0.1:PORT_/v1/next"}"#),
    ]);
    assert!(submit_statement(port).await.is_ok_and(|reply| reply.next.is_some_and(|next| next.path() == "/v1/next")));
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
async fn reports_responses_of_another_protocol() {
    for (sent, expected, transient) in [
        (http_response("200 OK", "<html>hello</html>"), "does not respond like Trino", false),
        (http_response("401 Unauthorized", "Invalid credentials"), "Invalid credentials", false),
        (http_response("403 Forbidden", ""), "denied access to this user", false),
        (http_response("404 Not Found", "<html>"), "there is no Trino", false),
        (http_response("500 Internal Server Error", ""), "rejected the request", true),
    ] {
        let (port, played) = serve_responses(vec![sent]);
        let Err(error) = submit_statement(port).await else { panic!("{expected}") };
        assert!(error.to_string().contains(expected) && error.is_transient() == transient, "{error:?}");
        played.join().unwrap();
    }
}

#[tokio::test]
async fn replaces_a_dead_connection_once() {
    let (port, played) = serve_responses(vec![String::new(), http_response("200 OK", r#"{"id": "1"}"#)]);
    assert!(submit_statement(port).await.is_ok());
    played.join().unwrap();
    let (port, played) = serve_responses(vec![String::new(), String::new()]);
    assert!(submit_statement(port).await.is_err_and(|error| error.is_transient()));
    played.join().unwrap();
}

// The connection is closed on another thread than the one that waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_reading_an_endless_response() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let played = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\"").unwrap();
        let padding = vec![b'x'; 1 << 20];
        (0..1 << 10).take_while(|_| stream.write_all(&padding).is_ok()).count()
    });
    assert!(submit_statement(port).await.is_err_and(|error| error.to_string().contains("more than 64 MB")));
    assert!(played.join().unwrap() < 1 << 10, "all of it was read");
}

#[tokio::test]
async fn omits_the_time_limit_where_the_server_denies_it() {
    let refusal = r#"{"id": "1", "error": {"errorName": "PERMISSION_DENIED", "errorType": "USER_ERROR",
        "message": "Access Denied: Cannot set system session property query_max_run_time"}}"#;
    let (port, played) =
        serve_responses(vec![http_response("200 OK", refusal), http_response("200 OK", r#"{"id": "2"}"#)]);
    let (server, cancel) = (Arc::new(test_client(port, false)), CancelFlag::new());
    let sent = SentQuery { sql: "SELECT 1", lines_before: 0 };
    let mut session = TrinoSession::new(&server, Duration::MAX, &cancel);
    session.run(sent, "SELECT 1", &mut |_| ControlFlow::Continue(())).await.unwrap();
    let asked = played.join().unwrap();
    assert!(
        asked[0].contains("x-trino-session: query_max_run_time=8640000000ms") && !asked[1].contains("x-trino-session")
    );
}
