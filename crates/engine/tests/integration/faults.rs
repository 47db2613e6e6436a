//! What networks do to the bytes between us and real servers, at many places of a call: each call ends with the right rows or with an
//! error that says what to do, and the next one works.
//!
//!     eval "$(scripts/engines.sh up NAMES)"
//!     cargo test -p querymend-engine --test integration faults:: -- --nocapture

#[path = "../../../net/tests/proxy/mod.rs"]
mod proxy;

use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend_engine::{CancelFlag, Engine, Error, Limits, open};
use querymend_sql::Rows;
use querymend_testing::{hang_timeout, is_full_suite, scaled};
use tokio::time::{sleep, timeout};

use self::proxy::{Counts, Fault, Plan, Proxy, Way, all, place, plans};
use crate::engines::servers;
use crate::support::{approve, ask, limits};

/// Enough rows that most of an answer is rows.
const SQL: &str = "SELECT a.id, b.name, c.weight, d.name AS other, 'some words to make it longer' AS words \
    FROM things a CROSS JOIN things b CROSS JOIN things c CROSS JOIN things d ORDER BY a.id, b.id, c.id, d.id";
/// How long tables may take to be listed before an engine gives up.
const LISTING: Duration = Duration::from_secs(120);

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
                self.engine.execute(&approve(&*self.engine, SQL), limits, &CancelFlag::new()).await.map(Told::Rows)
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
            Error::StepLimit { .. } | Error::Cancelled | Error::WrongDialect { .. } | Error::Internal(_) => false,
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
    let patient = limits();
    if call == Call::Warm && road.call(call, &patient).await.as_ref() != Ok(expected) {
        return (counts, vec!["it was not right before anything happened".into()]);
    }
    road.proxy.arm(plan).await;
    let time = match plan.fault {
        // It has to expire, but not before the call has come as far as the fault.
        Fault::Stall | Fault::Garbage | Fault::HalfClose => scaled(Duration::from_secs(2)),
        Fault::Refuse | Fault::Drop | Fault::Truncate | Fault::Delay | Fault::OneByte => patient.time,
    };
    let limits = Limits { time, ..Limits::default() };
    let most = if call == Call::Schema { LISTING } else { time } + hang_timeout();
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
    let mut next = timeout(next.time + hang_timeout(), road.call(Call::Cold, next)).await;
    if doubtful && matches!(next, Ok(Err(Error::TimedOut { .. } | Error::Unavailable { .. }))) {
        next = timeout(patient.time + hang_timeout(), road.call(Call::Cold, &patient)).await;
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
    let limits = limits();
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

/// Every fault once with each call, in either direction and at every place in turn.
fn representative(cases: &[(Call, Plan)]) -> Vec<(Call, Plan)> {
    let same = |one: &(Call, Plan), other: &(Call, Plan)| one.0 == other.0 && one.1.fault == other.1.fault;
    let choose = |group: &[(Call, Plan)]| {
        let (call, plan) = group[0];
        // On a connection that was kept, the other direction is tried than on a new one.
        let turn = if call == Call::Warm { group.len() / 2 } else { 0 };
        group[(plan.fault as usize + turn) % group.len()]
    };
    cases.chunk_by(same).map(choose).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn network_faults_give_correct_rows_or_clear_errors() {
    let mut complaints = Vec::new();
    let tries_all = is_full_suite() || std::env::var_os("QUERYMEND_FAULTS").is_some();
    for (subject, _) in servers() {
        // Other tests run meanwhile, and their connections must not be counted.
        let address = match &subject.connection_counter {
            Some(counter) => (counter.isolated_address)(&subject.address).await,
            None => subject.address.clone(),
        };
        let (sizes, rows, schema) = healthy(&address).await;
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
        if !tries_all {
            cases = representative(&cases);
            if subject.is_slow {
                // Each fault either on a new connection or on one that was kept.
                cases.retain(|(call, plan)| {
                    *call == Call::Schema || (*call == Call::Cold) == (plan.fault as usize).is_multiple_of(2)
                });
            }
        }
        let tried = cases.into_iter().map(|(call, plan)| {
            let expected = Arc::clone(if call == Call::Schema { &schema } else { &rows });
            let address = address.clone();
            (
                format!("{} {call:?} {plan:?}", subject.name),
                async move { suffer(&address, call, plan, &expected).await },
            )
        });
        let at_once = if subject.is_slow { 2 } else { 8 };
        let (counts, why) = all(tried, at_once).await;
        complaints.extend(why);
        eprintln!("{}: {sizes:?} bytes; {counts:?}", subject.name);
        let begun = Instant::now();
        let others = async || match &subject.connection_counter {
            Some(counter) => (counter.count)(&address).await,
            None => 0,
        };
        let mut left = others().await;
        while left > 0 && begun.elapsed() < hang_timeout() {
            sleep(Duration::from_millis(100)).await;
            left = others().await;
        }
        if left > 0 {
            complaints.push(format!("{}: {left} more are connected", subject.name));
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
