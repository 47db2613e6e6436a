//! The audit log of a real server that is killed again and again.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use querymend_testing::{hang_timeout, is_full_suite, wait_until};
use serde_json::{Value, json};

use crate::TestDir;
use crate::server::ScriptedModelServer;

/// Clients at the same time.
const CLIENTS: usize = 4;

/// Starts a server and gives back where it listens.
pub fn start_server(place: &TestDir, model: &str) -> (Child, String) {
    let arguments = ["serve", "--db", "shop.db", "--bind", "127.0.0.1:0", "--audit", "audit.jsonl", "--model", model];
    let mut child = place.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    let address = wait_for_address(&mut child);
    (child, address)
}

/// Where a server listens that was just started.
pub fn wait_for_address(child: &mut Child) -> String {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let address = loop {
        let mut line = String::new();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "the server did not start");
        if let Some((_, rest)) = line.split_once("listening at http://") {
            break rest.split_whitespace().next().unwrap().to_owned();
        }
    };
    // Somebody has to read what it says, or it waits.
    std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
    address
}

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum HttpOutcome {
    /// A status and a body, as long as it was said to be.
    Complete(u16, String),
    /// The beginning of an answer.
    Truncated(String),
    /// Nobody took it.
    NotAccepted,
}

/// Sends a request on a connection of its own.
pub fn post(address: &str, path: &str, id: &str, body: &Value) -> HttpOutcome {
    send(address, &format!("POST {path}"), &format!("x-request-id: {id}"), &body.to_string())
}

/// The same with any method and header.
pub fn send(address: &str, what: &str, header: &str, body: &str) -> HttpOutcome {
    let Ok(mut stream) = TcpStream::connect(address) else { return HttpOutcome::NotAccepted };
    stream.set_read_timeout(Some(hang_timeout())).unwrap();
    let head = format!(
        "{what} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut answer = Vec::new();
    // Who is refused may be told so before the request was read; then only the answer counts.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    if text.is_empty() {
        return HttpOutcome::NotAccepted;
    }
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return HttpOutcome::Truncated(text) };
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    match status {
        Some(status) if length == Some(body.len()) => HttpOutcome::Complete(status, body.to_owned()),
        _ => HttpOutcome::Truncated(text),
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "how much was tried is part of the result")]
fn server_kills_lose_no_audit_line() {
    let set = std::env::var("QUERYMEND_KILLS").ok().and_then(|count| count.parse().ok());
    let rounds: usize = set.unwrap_or(if is_full_suite() { 20 } else { 5 });
    let place = TestDir::with_demo();
    place.disable_model_discovery("");
    // Without limits on how often one asks, and without what a question leaves behind elsewhere.
    place.write_file(
        "querymend.yaml",
        "providers: providers.toml\nmodels: models.toml\nserver: {limits: {requests_per_minute: 0}}\ntrace: {max_traces: 0}\nmemory: {enabled: false}\n",
    );
    let model = ScriptedModelServer::with_replies(&["SELECT id FROM products WHERE category = 'Electronics'"]);
    let acknowledged: Arc<Mutex<Vec<(String, &str)>>> = Arc::default();
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let mut torn = 0;
    for round in 0..rounds {
        if round % 3 == 2 {
            // As a machine leaves it that stops in the middle of a write.
            let mut file = std::fs::OpenOptions::new().append(true).open(place.path("audit.jsonl")).unwrap();
            file.write_all(b"{\"at_ms\":1,\"request_id\":\"to").unwrap();
            torn += 1;
        }
        let (mut child, address) = start_server(&place, &model.model);
        let answered = Arc::new(AtomicUsize::new(0));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (address, acknowledged) = (address.clone(), Arc::clone(&acknowledged));
                let answered = Arc::clone(&answered);
                std::thread::spawn(move || {
                    for number in 0.. {
                        let id = format!("r{round}-{client}-{number}");
                        let (path, body) = match number % 2 {
                            0 => ("/v1/run", json!({"sql": format!("SELECT {number} AS n FROM products LIMIT 1")})),
                            _ => ("/v1/ask", json!({"question": "Which electronics are there?"})),
                        };
                        if !matches!(post(&address, path, &id, &body), HttpOutcome::Complete(200, _)) {
                            return;
                        }
                        acknowledged.lock().unwrap().push((id, path));
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Not before something was answered: a round in which nothing happens shows nothing.
        wait_until("something is answered", || answered.load(Ordering::Relaxed) > 0);
        std::thread::sleep(Duration::from_micros(random % 200_000));
        child.kill().unwrap();
        child.wait().unwrap();
        clients.into_iter().for_each(|client| client.join().unwrap());
    }
    let text = std::fs::read_to_string(place.path("audit.jsonl")).unwrap();
    let (mut lines, mut broken): (HashMap<String, Vec<Value>>, usize) = (HashMap::new(), 0);
    let whole = text.split_inclusive('\n').collect::<Vec<_>>();
    for (place, line) in whole.iter().enumerate() {
        match serde_json::from_str::<Value>(line.trim_end()) {
            Ok(value) => lines.entry(value["request_id"].as_str().unwrap().to_owned()).or_default().push(value),
            // Killing may cut the last line of a round; what it cuts was not acknowledged.
            Err(error) => {
                assert!(error.is_eof() || place + 1 == whole.len(), "{error}: {line}");
                broken += 1;
            }
        }
    }
    assert!((torn..=torn + rounds).contains(&broken), "{broken} lines are broken, and {torn} were broken here");
    let acknowledged = acknowledged.lock().unwrap();
    assert!(acknowledged.len() >= rounds, "{}", acknowledged.len());
    for (id, path) in acknowledged.iter() {
        let actions: Vec<&str> =
            lines.get(id).into_iter().flatten().map(|line| line["action"].as_str().unwrap()).collect();
        match *path {
            "/v1/run" => assert_eq!(actions, ["run"], "{id}"),
            _ => assert!(actions.contains(&"query") && actions.last() == Some(&"ask"), "{id}: {actions:?}"),
        }
    }
    eprintln!("{rounds} kills, {} requests acknowledged, {} lines, {broken} cut", acknowledged.len(), whole.len());
}
