//! A server that says what a test wants it to say: greetings, frames, refusals, and things that no honest server says.

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

use super::value::{Allowance, Value};
use super::*;

/// How the server answers a call, by the name of the call and what is asked. None hangs up.
type Answers = fn(&str, &Value) -> Option<Value>;

/// What a server does with whoever comes.
#[derive(Clone, Copy)]
struct Manner {
    /// The password that is taken; none where nobody is greeted.
    password: Option<&'static str>,
    answers: Answers,
}

/// Starts one on a free port; gives the port and the number of those who came.
fn start(manner: Manner) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let guests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&guests);
    thread::spawn(move || {
        for guest in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || drop(serve(guest, manner)));
        }
    });
    (port, guests)
}

fn serve(mut guest: TcpStream, manner: Manner) -> thrift::Result<()> {
    guest.set_read_timeout(Some(hang_timeout()))?;
    if let Some(password) = manner.password {
        let mut said = || -> io::Result<(u8, Vec<u8>)> {
            let mut head = [0; 5];
            guest.read_exact(&mut head)?;
            let mut words = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize];
            guest.read_exact(&mut words)?;
            Ok((head[0], words))
        };
        assert_eq!(said()?, (1, b"PLAIN".to_vec()));
        let right = said()?.1 == format!("\0me\0{password}").into_bytes();
        let words: &[u8] = if right { b"" } else { b"Error validating the login" };
        guest.write_all(&[if right { 5 } else { 3 }])?;
        guest.write_all(&(words.len() as u32).to_be_bytes())?;
        guest.write_all(words)?;
        if !right {
            return Ok(());
        }
    }
    let framed = manner.password.is_some();
    loop {
        if framed {
            guest.read_exact(&mut [0; 4])?;
        }
        let mut from = TBinaryInputProtocol::new(&mut guest, true);
        let head = from.read_message_begin()?;
        let request = Value::read(&mut from, &mut Allowance(1 << 20))?.take(1).unwrap();
        let Some(answer) = (manner.answers)(&head.name, &request) else { return Ok(()) };
        let mut message = Vec::new();
        let mut to = TBinaryOutputProtocol::new(&mut message, true);
        to.write_message_begin(&TMessageIdentifier::new(head.name, TMessageType::Reply, head.sequence_number))?;
        Value::Struct(vec![(0, answer)]).write(&mut to)?;
        if framed {
            // In two frames, as a server may.
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

fn good(mut fields: Vec<(i16, Value)>) -> Option<Value> {
    fields.insert(0, (1, Value::Struct(vec![(1, Value::Int(0))])));
    Some(Value::Struct(fields))
}

fn bad(message: &str) -> Option<Value> {
    Some(Value::Struct(vec![(1, Value::Struct(vec![(1, Value::Int(3)), (5, Value::text(message))]))]))
}

/// A Spark that knows one answer.
fn one_answer(name: &str, _: &Value) -> Option<Value> {
    let handle = || Value::Struct(vec![(1, Value::Bytes(vec![7; 16]))]);
    let column = |values: Value| Value::Struct(vec![(5, Value::Struct(vec![(1, values), (2, Value::Bytes(vec![0]))]))]);
    match name {
        "OpenSession" => good(vec![(2, Value::Int(7)), (3, handle())]),
        "GetInfo" => good(vec![(2, Value::Struct(vec![(1, Value::text("Spark SQL"))]))]),
        "ExecuteStatement" => good(vec![(2, handle())]),
        "GetOperationStatus" => good(vec![(2, Value::Int(2))]),
        "GetResultSetMetadata" => {
            let described = Value::Struct(vec![(1, Value::text("x"))]);
            good(vec![(2, Value::Struct(vec![(1, Value::List(vec![described]))]))])
        }
        // Rows without end, one at a time.
        "FetchResults" => {
            good(vec![(3, Value::Struct(vec![(3, Value::List(vec![column(Value::List(vec![Value::Long(42)]))]))]))])
        }
        _ => good(vec![]),
    }
}

fn engine(port: u16, more: &str) -> Hive {
    Hive::open_with(&format!("spark://me:hunter2@127.0.0.1:{port}/shop{more}"), &|_| None).unwrap()
}

/// Time enough on any machine.
fn limits() -> Limits {
    Limits { time: hang_timeout(), ..Limits::default() }
}

/// Does something that must end.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    outcome.recv_timeout(hang_timeout()).unwrap()
}

fn ask(engine: &Hive, limits: &Limits) -> Result<Rows, Error> {
    let stop = Stop::new(limits.time, Cancel::new());
    engine.shared.with_session(&stop, |session, stop| {
        lock::execute(session, "SELECT 1", limits, stop).map(|gathered| gathered.taking.done())
    })
}

#[test]
fn f03_servers_are_greeted_with_a_password_or_not_at_all() {
    let limits = Limits { rows: 3, ..limits() };
    for (password, more) in [(Some("hunter2"), ""), (None, "?auth=nosasl")] {
        let (port, guests) = start(Manner { password, answers: one_answer });
        let engine = engine(port, more);
        for _ in 0..3 {
            let rows = ask(&engine, &limits).unwrap();
            assert_eq!((rows.rows, rows.truncated), (vec![vec![Cell::Integer(42)]; 3], true));
        }
        assert_eq!(guests.load(Ordering::SeqCst), 1, "one session is kept");
    }
}

#[tokio::test]
async fn f03_f06_a_wrong_password_is_said_to_be_and_not_repeated() {
    let (port, _) = start(Manner { password: Some("another"), answers: one_answer });
    let error = engine(port, "").test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
    let said = format!("{error} {:?} {error:?}", error.hint());
    assert!(said.contains("password") && !said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn f03_a_server_that_hangs_up_or_does_not_know_the_database_is_said_to() {
    let (port, _) = start(Manner { password: None, answers: |_, _| None });
    let error = engine(port, "?auth=nosasl").test_connection().await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("auth=plain")), "{error:?}");

    let missing: Answers = |name, request| match request.field(2).and_then(Value::string) {
        Some(sql) if name == "ExecuteStatement" && sql.starts_with("USE ") => bad("no such database"),
        _ => one_answer(name, request),
    };
    let (port, _) = start(Manner { password: Some("hunter2"), answers: missing });
    let error = engine(port, "").test_connection().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{error:?}");
    assert!(error.to_string().contains("no such database"), "{error}");
}

#[test]
fn f03_a_session_that_the_server_has_forgotten_is_replaced() {
    static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);
    let forgetful: Answers = |name, request| match request.field(2).and_then(Value::string) {
        Some(sql) if name == "ExecuteStatement" && sql.starts_with("SELECT") => {
            // Every second time.
            if FORGOTTEN.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                bad("Invalid SessionHandle: SessionHandle [0]")
            } else {
                one_answer(name, request)
            }
        }
        _ => one_answer(name, request),
    };
    let (port, guests) = start(Manner { password: Some("hunter2"), answers: forgetful });
    let engine = engine(port, "");
    for _ in 0..4 {
        ask(&engine, &Limits { rows: 1, ..limits() }).unwrap();
    }
    assert_eq!(guests.load(Ordering::SeqCst), 4);
}

#[test]
fn l12_answers_that_lie_or_never_come_are_errors_in_time() {
    let time = Duration::from_millis(400);
    let brief = move |engine: Hive| in_time(move || ask(&engine, &Limits { rows: 1, time, ..Limits::default() }));
    // A query that never ends; the server does not want to stop it either.
    let endless: Answers = |name, request| match (name, request.field(2).and_then(Value::string)) {
        ("ExecuteStatement", Some(sql)) if sql.starts_with("SELECT") => {
            good(vec![(2, Value::Struct(vec![(1, Value::Bytes(vec![9; 16]))]))])
        }
        ("GetOperationStatus", _)
            if request.field(1).and_then(|op| op.field(1)) == Some(&Value::Bytes(vec![9; 16])) =>
        {
            good(vec![(2, Value::Int(1))])
        }
        ("CancelOperation", _) => bad("no"),
        _ => one_answer(name, request),
    };
    let (port, _) = start(Manner { password: Some("hunter2"), answers: endless });
    assert_eq!(brief(engine(port, "")), Err(Error::TimedOut { after: time }));

    // One that does not answer at all.
    let mute: Answers = |name, request| {
        if request.field(2).and_then(Value::string).is_some_and(|sql| sql.starts_with("SELECT")) {
            loop {
                thread::park();
            }
        }
        one_answer(name, request)
    };
    let (port, _) = start(Manner { password: None, answers: mute });
    assert_eq!(brief(engine(port, "?auth=nosasl")), Err(Error::TimedOut { after: time }));

    // Answers without what belongs into them.
    let limits = Limits { rows: 1, ..limits() };
    let empty: Answers = |name, request| if name == "FetchResults" { good(vec![]) } else { one_answer(name, request) };
    let (port, _) = start(Manner { password: None, answers: empty });
    let error = ask(&engine(port, "?auth=nosasl"), &limits).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    let (port, _) = start(Manner { password: None, answers: |_, _| good(vec![]) });
    assert!(ask(&engine(port, "?auth=nosasl"), &limits).is_err());
}

#[test]
fn l12_what_is_no_such_server_is_said_to_be() {
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
                // Reads what comes, so that what was said is not lost.
                drop(guest.read(&mut [0; 4096]));
            }
        });
        for more in ["", "?auth=nosasl", "?tls=true"] {
            let outcome = ask(&engine(port, more), &limits);
            let fits = matches!(outcome, Err(Error::Unavailable { .. } | Error::TimedOut { .. }));
            assert!(fits, "{words:?} {more}: {outcome:?}");
        }
    }
}
