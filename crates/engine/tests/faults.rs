//! What networks do to the bytes between us and real servers, at many places of a call: each call ends with the right rows or with an
//! error that says what to do, and the next one works.
//!
//!     eval "$(scripts/engines.sh up postgres mysql spark trino)"
//!     cargo test --workspace --test faults f03 -- --nocapture

// Helpers of tests fail loudly, as tests do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, dead_code)]

#[path = "conformance/asking.rs"]
mod asking;
#[path = "../../net/tests/proxy/mod.rs"]
mod proxy;
#[path = "conformance/subjects/mod.rs"]
mod subjects;

use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use querymend_engine::{Cancel, Engine, Error, Limits, open};
use querymend_sql::Rows;
use tokio::time::{sleep, timeout};

use self::asking::{approve, ask};
use self::proxy::{Counts, Fault, Plan, Proxy, Way, all, place, plans};
use self::subjects::{Subject, servers};

/// Enough rows that most of an answer is rows.
const SQL: &str = "SELECT a.id, b.name, c.weight, d.name AS other, 'some words to make it longer' AS words \
    FROM things a CROSS JOIN things b CROSS JOIN things c CROSS JOIN things d ORDER BY a.id, b.id, c.id, d.id";
/// So much later than its limit a call has hung.
const HUNG: Duration = Duration::from_secs(20);
/// So long is waited for where the right rows are to come: the machine may have much else to do.
const PATIENT: Duration = Duration::from_secs(120);

/// How many are connected to a server beside whoever asks, where it says so.
async fn others(subject: &Subject) -> Option<i64> {
    match subject.name {
        "postgres" => {
            let (client, connection) = tokio_postgres::connect(&subject.address, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            let sql = "SELECT count(*) - 1 FROM pg_stat_activity WHERE usename = 'reader'";
            Some(client.query_one(sql, &[]).await.unwrap().get(0))
        }
        "mysql" => {
            let mut connection = mysql_async::Conn::from_url(&subject.address).await.unwrap();
            let sql = "SELECT count(*) - 1 FROM information_schema.processlist";
            let others = connection.query_first(sql).await.unwrap();
            connection.disconnect().await.unwrap();
            others
        }
        // What runs on the others is told by tables that nobody may read here.
        _ => None,
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// A query, the first on its engine.
    Cold,
    /// A query on a connection that was kept.
    Warm,
    /// The tables.
    Schema,
}

#[derive(Debug, PartialEq)]
enum Told {
    Rows(Rows),
    /// As JSON.
    Schema(String),
}

/// One server behind a proxy of its own.
struct Road {
    proxy: Proxy,
    engine: Box<dyn Engine>,
    secret: String,
}

impl Road {
    async fn to(address: &str) -> Self {
        let (server, at) = place(address);
        let proxy = Proxy::start(server).await;
        let engine = open(&at(proxy.address.port())).unwrap();
        let secret = address.split_once('@').unwrap().0.rsplit(':').next().unwrap().to_owned();
        Self { proxy, engine, secret }
    }

    async fn call(&self, call: Call, limits: &Limits) -> Result<Told, Error> {
        match call {
            Call::Cold | Call::Warm => {
                self.engine.execute(&approve(&*self.engine, SQL), limits, &Cancel::new()).await.map(Told::Rows)
            }
            Call::Schema => {
                self.engine.schema().await.map(|schema| Told::Schema(serde_json::to_string(&schema).unwrap()))
            }
        }
    }

    /// What is wrong with an error, if something is.
    fn blame(&self, error: &Error, fault: Fault) -> Option<String> {
        let kind = match error {
            // A server that was cut off while it was told the password says that the password is wrong.
            Error::Unavailable { transient, cause, .. } => {
                *transient || fault == Fault::Garbage || fault == Fault::HalfClose && cause.is_some()
            }
            Error::TimedOut { .. } => matches!(fault, Fault::Stall | Fault::Garbage | Fault::HalfClose),
            // Garbage may be what the server was sent, and it may say so.
            Error::Rejected(_) => fault == Fault::Garbage,
            Error::Cancelled | Error::WrongDialect { .. } | Error::Internal(_) => false,
        };
        let hint = matches!(error, Error::Rejected(_)) || error.hint().is_some_and(|hint| !hint.is_empty());
        let said = format!("{error} {:?} {error:?}", error.hint());
        // Names of users are no secrets, and here they are the same words.
        let name = self.engine.name();
        let bare = said.replace(name, "").replace(&format!("user '{}'", self.secret), "");
        let bare = bare
            .replace(&format!("user \\\"{}\\\"", self.secret), "")
            .replace(&format!("user \"{}\"", self.secret), "");
        let told = bare.contains(&self.secret) || said.contains(&format!(":{}@", self.secret));
        (!kind || !hint || told).then(|| format!("{error:?}"))
    }
}

/// One fault at one place, on an engine of its own; and what is to be complained of.
async fn suffer(address: &str, call: Call, plan: Plan, expected: &Told) -> (Counts, Vec<String>) {
    let mut counts = Counts { tried: 1, ..Counts::default() };
    let mut complaints = Vec::new();
    let road = Road::to(address).await;
    let patient = Limits { time: PATIENT, ..Limits::default() };
    if call == Call::Warm && road.call(call, &patient).await.as_ref() != Ok(expected) {
        return (counts, vec!["it was not right before anything happened".into()]);
    }
    road.proxy.arm(plan).await;
    let time = match plan.fault {
        Fault::Stall | Fault::Garbage | Fault::HalfClose => Duration::from_secs(2),
        Fault::Refuse | Fault::Drop | Fault::Truncate | Fault::Delay | Fault::OneByte => patient.time,
    };
    let limits = Limits { time, ..Limits::default() };
    let most = if call == Call::Schema { Duration::from_secs(120) } else { time } + HUNG;
    let outcome = timeout(most, road.call(call, &limits)).await;
    counts.struck = usize::from(road.proxy.has_struck());
    match &outcome {
        Err(_) => {
            counts.hangs = 1;
            complaints.push("it hangs".into());
        }
        Ok(Ok(told)) if told == expected => counts.right = 1,
        Ok(Ok(told)) => {
            counts.wrong = 1;
            complaints.push(format!("wrong: {told:?}"));
        }
        Ok(Err(error)) => {
            counts.errors = 1;
            complaints.extend(road.blame(error, plan.fault).map(|why| format!("no clear error: {why}")));
            if plan.fault.is_harmless() {
                complaints.push(format!("it should have been waited for: {error:?}"));
            }
        }
    }
    road.proxy.heal().await;
    // A line that fell silent, or was fed garbage, after its answer came is like one that is slow: it costs one call, and no more.
    let doubtful = matches!(plan.fault, Fault::Stall | Fault::Garbage) && matches!(outcome, Ok(Ok(_)));
    let next = if doubtful { &limits } else { &patient };
    let mut next = timeout(next.time + HUNG, road.call(Call::Cold, next)).await;
    if doubtful && matches!(next, Ok(Err(Error::TimedOut { .. } | Error::Unavailable { .. }))) {
        next = timeout(patient.time + HUNG, road.call(Call::Cold, &patient)).await;
    }
    let wanted = if call == Call::Schema { None } else { Some(expected) };
    match next {
        Ok(Ok(told)) if wanted.is_none_or(|wanted| *wanted == told) => counts.recovered = 1,
        other => complaints.push(format!("the next call: {other:?}")),
    }
    let Road { proxy, engine, .. } = road;
    drop(engine);
    complaints.extend(proxy.is_left().await);
    (counts, complaints)
}

/// How much goes each way when nothing happens, and what comes of it.
async fn healthy(address: &str) -> ([(usize, usize); 3], Told, Told) {
    let road = Road::to(address).await;
    let limits = Limits { time: PATIENT, ..Limits::default() };
    let rows = road.call(Call::Cold, &limits).await.unwrap();
    let cold = road.proxy.most();
    let direct = open(address).unwrap();
    assert_eq!(rows, Told::Rows(ask(&*direct, SQL).await.unwrap()));
    road.proxy.heal().await;
    assert_eq!(road.call(Call::Warm, &limits).await.unwrap(), rows);
    let warm = road.proxy.most();
    let other = Road::to(address).await;
    let schema = other.call(Call::Schema, &limits).await.unwrap();
    ([cold, warm, other.proxy.most()], rows, schema)
}

#[tokio::test(flavor = "multi_thread")]
async fn f03_whatever_the_network_does_rows_are_right_or_the_error_is_clear() {
    let mut complaints = Vec::new();
    for (subject, _) in servers() {
        let (sizes, rows, schema) = healthy(&subject.address).await;
        let (rows, schema) = (Arc::new(rows), Arc::new(schema));
        let mut cases: Vec<(Call, Plan)> = Vec::new();
        for (call, (sent, received)) in [Call::Cold, Call::Warm, Call::Schema].into_iter().zip(sizes) {
            let fits = |plan: &Plan| {
                // Tables may take long to be listed, so that nothing falls silent here; what is cut short is what matters.
                call != Call::Schema
                    || plan.way == Way::ToClient
                        && matches!(plan.fault, Fault::Drop | Fault::Truncate | Fault::HalfClose)
            };
            cases.extend(plans(sent, received).into_iter().filter(fits).map(|plan| (call, plan)));
        }
        let tried = cases.into_iter().map(|(call, plan)| {
            let expected = Arc::clone(if call == Call::Schema { &schema } else { &rows });
            let address = subject.address.clone();
            (
                format!("{} {call:?} {plan:?}", subject.name),
                async move { suffer(&address, call, plan, &expected).await },
            )
        });
        // Servers are real, and share a machine; those in Java need most of it for a single query.
        let at_once = if ["spark", "trino"].contains(&subject.name) { 2 } else { 8 };
        let (counts, why) = all(tried, at_once).await;
        complaints.extend(why);
        eprintln!("{}: {sizes:?} bytes; {counts:?}", subject.name);
        let mut left = others(&subject).await;
        for _ in 0..60 {
            if left.is_none_or(|left| left == 0) {
                break;
            }
            sleep(Duration::from_millis(500)).await;
            left = others(&subject).await;
        }
        if left.is_some_and(|left| left > 0) {
            complaints.push(format!("{}: {left:?} more are connected", subject.name));
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
