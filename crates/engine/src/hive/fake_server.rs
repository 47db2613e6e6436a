//! Scripted server for tests: handshakes, frames, rejections and malicious responses.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use querymend_sql::Cell;
use querymend_testing::hang_timeout;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
};

use super::thrift_value::{ReadBudget, ThriftValue};
use super::*;

/// Returns the response to a call, by its name and arguments; `None` closes the connection.
type ThriftResponder = fn(&str, &ThriftValue) -> Option<ThriftValue>;

/// Behavior of the server.
#[derive(Clone, Copy)]
struct FakeServer {
    /// Accepted password; `None` for a server without a SASL handshake.
    password: Option<&'static str>,
    respond: ThriftResponder,
}

/// Starts a server on a free port; returns the port and the number of connections so far.
fn start_server(server: FakeServer) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let guests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&guests);
    thread::spawn(move || {
        for guest in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || drop(serve(guest, server)));
        }
    });
    (port, guests)
}

fn serve(mut guest: TcpStream, server: FakeServer) -> thrift::Result<()> {
    guest.set_read_timeout(Some(hang_timeout()))?;
    if let Some(password) = server.password {
        let mut read_frame = || -> io::Result<(u8, Vec<u8>)> {
            let mut head = [0; 5];
            guest.read_exact(&mut head)?;
            let mut words = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize];
            guest.read_exact(&mut words)?;
            Ok((head[0], words))
        };
        assert_eq!(read_frame()?, (1, b"PLAIN".to_vec()));
        let right = read_frame()?.1 == format!("\0me\0{password}").into_bytes();
        let words: &[u8] = if right { b"" } else { b"Error validating the login" };
        guest.write_all(&[if right { 5 } else { 3 }])?;
        guest.write_all(&(words.len() as u32).to_be_bytes())?;
        guest.write_all(words)?;
        if !right {
            return Ok(());
        }
    }
    let framed = server.password.is_some();
    loop {
        if framed {
            guest.read_exact(&mut [0; 4])?;
        }
        let mut from = TBinaryInputProtocol::new(&mut guest, true);
        let head = from.read_message_begin()?;
        let request = ThriftValue::read(&mut from, &mut ReadBudget(1 << 20))?.take_field(1).unwrap();
        let Some(answer) = (server.respond)(&head.name, &request) else { return Ok(()) };
        let mut message = Vec::new();
        let mut to = TBinaryOutputProtocol::new(&mut message, true);
        to.write_message_begin(&TMessageIdentifier::new(head.name, TMessageType::Reply, head.sequence_number))?;
        ThriftValue::Struct(vec![(0, answer)]).write(&mut to)?;
        if framed {
            // A server may split a message into several frames.
            let (one, two) = message.split_at(3);
            for part in [one, two] {
                guest.write_all(&(part.len() as u32).to_be_bytes())?;
                guest.write_all(part)?;
            }
        } else {
            guest.write_all(&message)?;
        }
    }
}

fn success(mut fields: Vec<(i16, ThriftValue)>) -> Option<ThriftValue> {
    fields.insert(0, (1, ThriftValue::Struct(vec![(1, ThriftValue::Int(0))])));
    Some(ThriftValue::Struct(fields))
}

fn failure(message: &str) -> Option<ThriftValue> {
    Some(ThriftValue::Struct(vec![(
        1,
        ThriftValue::Struct(vec![(1, ThriftValue::Int(3)), (5, ThriftValue::from_text(message))]),
    )]))
}

/// Responds like a Spark server that returns a single row in every batch.
fn spark_with_one_row(name: &str, _: &ThriftValue) -> Option<ThriftValue> {
    let handle = || ThriftValue::Struct(vec![(1, ThriftValue::Bytes(vec![7; 16]))]);
    let column = |values: ThriftValue| {
        ThriftValue::Struct(vec![(5, ThriftValue::Struct(vec![(1, values), (2, ThriftValue::Bytes(vec![0]))]))])
    };
    match name {
        "OpenSession" => success(vec![(2, ThriftValue::Int(7)), (3, handle())]),
        "GetInfo" => success(vec![(2, ThriftValue::Struct(vec![(1, ThriftValue::from_text("Spark SQL"))]))]),
        "ExecuteStatement" => success(vec![(2, handle())]),
        "GetOperationStatus" => success(vec![(2, ThriftValue::Int(2))]),
        "GetResultSetMetadata" => {
            let described = ThriftValue::Struct(vec![(1, ThriftValue::from_text("x"))]);
            success(vec![(2, ThriftValue::Struct(vec![(1, ThriftValue::List(vec![described]))]))])
        }
        // Endless rows, one at a time.
        "FetchResults" => success(vec![(
            3,
            ThriftValue::Struct(vec![(
                3,
                ThriftValue::List(vec![column(ThriftValue::List(vec![ThriftValue::Long(42)]))]),
            )]),
        )]),
        _ => success(vec![]),
    }
}

fn engine(port: u16, more: &str) -> HiveEngine {
    HiveEngine::open_with(&format!("spark://me:hunter2@127.0.0.1:{port}/shop{more}"), &|_| None).unwrap()
}

/// Returns limits that are sufficient on any machine.
fn limits() -> Limits {
    Limits { time: hang_timeout(), ..Limits::default() }
}

/// Runs work that must terminate.
fn run_within_hang_timeout<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    outcome.recv_timeout(hang_timeout()).unwrap()
}

fn run_query(engine: &HiveEngine, limits: &Limits) -> Result<Rows, Error> {
    let stop = Deadline::new(limits.time, CancelFlag::new());
    engine.pool.with_session(&stop, |session, stop| {
        read_only::execute(session, "SELECT 1", limits, stop).map(|gathered| gathered.collector.into_rows())
    })
}

#[test]
fn connects_with_password_or_without_sasl() {
    let limits = Limits { rows: 3, ..limits() };
    for (password, more) in [(Some("hunter2"), ""), (None, "?auth=nosasl")] {
        let (port, guests) = start_server(FakeServer { password, respond: spark_with_one_row });
        let engine = engine(port, more);
        for _ in 0..3 {
            let rows = run_query(&engine, &limits).unwrap();
            assert_eq!((rows.rows, rows.truncated), (vec![vec![Cell::Integer(42)]; 3], true));
        }
        assert_eq!(guests.load(Ordering::SeqCst), 1, "one session is kept");
    }
}

#[tokio::test]
async fn reports_a_wrong_password_without_repeating_it() {
    let (port, _) = start_server(FakeServer { password: Some("another"), respond: spark_with_one_row });
    let error = engine(port, "").test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
    let text = format!("{error} {:?} {error:?}", error.hint());
    assert!(text.contains("password") && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn reports_disconnects_and_unknown_databases() {
    let (port, _) = start_server(FakeServer { password: None, respond: |_, _| None });
    let error = engine(port, "?auth=nosasl").test_connection().await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("auth=plain")), "{error:?}");

    let missing: ThriftResponder = |name, request| match request.field(2).and_then(ThriftValue::as_string) {
        Some(sql) if name == "ExecuteStatement" && sql.starts_with("USE ") => failure("no such database"),
        _ => spark_with_one_row(name, request),
    };
    let (port, _) = start_server(FakeServer { password: Some("hunter2"), respond: missing });
    let error = engine(port, "").test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
    assert!(error.to_string().contains("no such database"), "{error}");
}

#[test]
fn replaces_a_session_that_the_server_lost() {
    static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);
    let forgetful: ThriftResponder = |name, request| match request.field(2).and_then(ThriftValue::as_string) {
        Some(sql) if name == "ExecuteStatement" && sql.starts_with("SELECT") => {
            if FORGOTTEN.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                failure("Invalid SessionHandle: SessionHandle [0]")
            } else {
                spark_with_one_row(name, request)
            }
        }
        _ => spark_with_one_row(name, request),
    };
    let (port, guests) = start_server(FakeServer { password: Some("hunter2"), respond: forgetful });
    let engine = engine(port, "");
    for _ in 0..4 {
        run_query(&engine, &Limits { rows: 1, ..limits() }).unwrap();
    }
    assert_eq!(guests.load(Ordering::SeqCst), 4);
}

#[test]
fn malformed_or_missing_responses_fail_in_time() {
    let time = Duration::from_millis(400);
    let brief = move |engine: HiveEngine| {
        run_within_hang_timeout(move || run_query(&engine, &Limits { rows: 1, time, ..Limits::default() }))
    };
    // A query that never ends, on a server that refuses to cancel it.
    let endless: ThriftResponder = |name, request| match (name, request.field(2).and_then(ThriftValue::as_string)) {
        ("ExecuteStatement", Some(sql)) if sql.starts_with("SELECT") => {
            success(vec![(2, ThriftValue::Struct(vec![(1, ThriftValue::Bytes(vec![9; 16]))]))])
        }
        ("GetOperationStatus", _)
            if request.field(1).and_then(|op| op.field(1)) == Some(&ThriftValue::Bytes(vec![9; 16])) =>
        {
            success(vec![(2, ThriftValue::Int(1))])
        }
        ("CancelOperation", _) => failure("no"),
        _ => spark_with_one_row(name, request),
    };
    let (port, _) = start_server(FakeServer { password: Some("hunter2"), respond: endless });
    assert_eq!(brief(engine(port, "")), Err(Error::TimedOut { after: time }));

    // A server that does not respond at all.
    let mute: ThriftResponder = |name, request| {
        if request.field(2).and_then(ThriftValue::as_string).is_some_and(|sql| sql.starts_with("SELECT")) {
            loop {
                thread::park();
            }
        }
        spark_with_one_row(name, request)
    };
    let (port, _) = start_server(FakeServer { password: None, respond: mute });
    assert_eq!(brief(engine(port, "?auth=nosasl")), Err(Error::TimedOut { after: time }));

    // Responses with missing fields.
    let limits = Limits { rows: 1, ..limits() };
    let empty: ThriftResponder =
        |name, request| if name == "FetchResults" { success(vec![]) } else { spark_with_one_row(name, request) };
    let (port, _) = start_server(FakeServer { password: None, respond: empty });
    let error = run_query(&engine(port, "?auth=nosasl"), &limits).unwrap_err();
    assert!(error.to_string().contains("invalid response"), "{error}");
    let (port, _) = start_server(FakeServer { password: None, respond: |_, _| success(vec![]) });
    assert!(run_query(&engine(port, "?auth=nosasl"), &limits).is_err());
}

#[test]
fn reports_servers_of_another_protocol() {
    let limits = Limits { time: Duration::from_secs(2), ..Limits::default() };
    for words in [
        &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..],
        b"\x05\x00\x00\x00\x00\xff\xff\xff\xff",
        b"\x05\xff\xff\xff\xff",
        b"\x05\x00\x00\x00\x00\x00\x00\x00\x08\x80\x01\x00\x02\x7f\xff\xff\xff",
        b"",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut guest in listener.incoming().flatten() {
                drop(guest.write_all(words));
                // Reads the request first: closing a socket with unread data would discard the
                // response.
                drop(guest.read(&mut [0; 4096]));
            }
        });
        for more in ["", "?auth=nosasl", "?tls=true"] {
            let outcome = run_query(&engine(port, more), &limits);
            let fits = matches!(outcome, Err(Error::Unavailable { .. } | Error::TimedOut { .. }));
            assert!(fits, "{words:?} {more}: {outcome:?}");
        }
    }
}
