//! What networks do to the bytes between us and a server of models: a reply is whole or the error is clear, and the next one comes.
//!
//! The server streams as they all do; where QUERYMEND_MODEL_URL names a real one, that is tried too, if all is to be (it takes minutes):
//!
//!     scripts/model_server.sh up, then QUERYMEND_FAULTS=all QUERYMEND_MODEL_URL=… cargo test -p querymend-model --test integration faults:: -- --nocapture

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use querymend_model::{CompletionRequest, Error, Message, Model, Providers, Retry, open};
use querymend_testing::{hang_timeout, lock_server, scaled};
use serde_json::{Value, to_value};
use tokio::time::timeout;

use crate::common::{Pauses, SECRET, Server, WIRES, ask};
use crate::proxy::{Counts, Fault, Plan, Proxy, all, place, plans};

/// A server, and how a model behind this address of it is reached.
#[derive(Clone)]
struct Subject {
    name: String,
    server: SocketAddr,
    wire: Value,
    base: &'static str,
    at_once: usize,
    /// Time of a request that comes to nothing, long enough for a reply that nothing disturbs.
    short: Duration,
}

impl Subject {
    fn model(&self, at: SocketAddr) -> Arc<dyn Model> {
        let connect = hang_timeout().as_secs_f64();
        let text = format!(
            "[test]\nwire = {}\nbase = 'http://{at}{}'\nkey = 'TEST_KEY'\nconnect_seconds = {connect:.1}\n",
            self.wire, self.base
        );
        let mut providers = Providers::builtin().unwrap().merge_text(&text, "test").unwrap();
        providers.retry = Retry { clock: Arc::new(Pauses::default()), ..Retry::default() };
        open("test:m", &providers.with_variables(|name| (name == "TEST_KEY").then(|| SECRET.to_owned()))).unwrap()
    }
}

fn question(time: Duration) -> CompletionRequest {
    let words =
        "Count from one to twelve in words, please: one two three four five six seven eight nine ten eleven twelve";
    CompletionRequest::new(vec![Message::system("You answer briefly."), Message::user(words)])
        .max_tokens(24)
        .timeout(time)
}

/// What is wrong with an error, if something is.
fn blame(error: &Error, fault: Fault) -> Option<String> {
    let kind = match error {
        Error::Timeout { .. } => matches!(fault, Fault::Stall | Fault::Garbage | Fault::HalfClose),
        Error::Unreachable { transient, .. } => *transient || fault == Fault::Garbage,
        // Half of a stream, or garbage in it, or what the server says to garbage.
        Error::BadResponse { .. } => !matches!(fault, Fault::Refuse | Fault::Stall),
        // A server that was sent half of a request may say that it is none.
        Error::Configuration { .. } => matches!(fault, Fault::Garbage | Fault::HalfClose),
        Error::Auth { .. } | Error::Overloaded { .. } => fault == Fault::Garbage,
        _ => false,
    };
    let hint = error.hint().unwrap_or_default();
    let said = format!("{error} {hint} {error:?}");
    (!kind || hint.is_empty() || said.contains(SECRET)).then(|| format!("no clear error: {error:?}"))
}

async fn suffer(subject: &Subject, warm: bool, plan: Plan, expected: &str) -> (Counts, Vec<String>) {
    let mut counts = Counts { tried: 1, ..Counts::default() };
    let mut complaints = Vec::new();
    let proxy = Proxy::start(subject.server).await;
    let model = subject.model(proxy.address);
    let patient = question(hang_timeout());
    if warm {
        ask(&*model, &patient).await.0.unwrap();
    }
    proxy.arm(plan).await;
    let time = match plan.fault {
        Fault::Stall | Fault::Garbage | Fault::HalfClose => subject.short,
        Fault::Refuse | Fault::Drop | Fault::Truncate | Fault::Delay | Fault::OneByte => patient.timeout,
    };
    let outcome = timeout(time + hang_timeout(), ask(&*model, &question(time))).await.map(|(reply, _)| reply);
    counts.struck = usize::from(proxy.has_struck());
    match &outcome {
        Err(_) => {
            counts.hangs = 1;
            complaints.push("it hangs".into());
        }
        Ok(Ok(reply)) if reply.text == expected => counts.right = 1,
        Ok(Ok(reply)) => {
            counts.wrong = 1;
            complaints.push(format!("wrong: {reply:?}"));
        }
        Ok(Err(error)) => {
            counts.errors = 1;
            complaints.extend(blame(error, plan.fault));
            if plan.fault.is_harmless() {
                complaints.push(format!("it should have been waited for: {error:?}"));
            }
        }
    }
    proxy.heal().await;
    match timeout(2 * patient.timeout, ask(&*model, &patient)).await {
        Ok((Ok(reply), _)) if reply.text == expected => counts.recovered = 1,
        other => complaints.push(format!("the next call: {other:?}")),
    }
    drop(model);
    complaints.extend(proxy.is_left().await);
    (counts, complaints)
}

#[tokio::test(flavor = "multi_thread")]
async fn network_faults_give_whole_replies_or_clear_errors() {
    let mut servers = Vec::new();
    let mut subjects = Vec::new();
    for wire in WIRES {
        let server = Server::start(wire, []).await;
        let base = if wire == querymend_model::ProviderProtocol::Anthropic { "" } else { "/v1" };
        let (name, wire) = (format!("{wire:?}"), to_value(wire).unwrap());
        let short = scaled(Duration::from_millis(500));
        subjects.push(Subject { name, server: server.address, wire, base, at_once: 16, short });
        servers.push(server);
    }
    let mut turn = None;
    match std::env::var("QUERYMEND_MODEL_URL") {
        Ok(url)
            if url.contains("127.0.0.1:") && std::env::var("QUERYMEND_FAULTS").is_ok_and(|which| which == "all") =>
        {
            let (server, _) = place(&url);
            turn = Some(lock_server("model"));
            // It works on one request at a time.
            let (wire, short) = (Value::from("openai"), scaled(Duration::from_secs(2)));
            subjects.push(Subject { name: "a real server".into(), server, wire, base: "/v1", at_once: 1, short });
        }
        _ => eprintln!(
            "skipped on a real server: takes QUERYMEND_FAULTS=all and QUERYMEND_MODEL_URL (scripts/model_server.sh up)"
        ),
    }
    let mut complaints = Vec::new();
    for subject in subjects {
        let proxy = Proxy::start(subject.server).await;
        let model = subject.model(proxy.address);
        let patient = question(hang_timeout());
        let expected: Arc<str> = ask(&*model, &patient).await.0.unwrap().text.into();
        let cold = proxy.most();
        proxy.heal().await;
        assert_eq!(ask(&*model, &patient).await.0.unwrap().text, *expected);
        let sizes = [(false, cold), (true, proxy.most())];
        let cases: Vec<(bool, Plan)> = sizes
            .into_iter()
            .flat_map(|(warm, (sent, received))| plans(sent, received).into_iter().map(move |plan| (warm, plan)))
            .collect();
        let tried = cases.into_iter().map(|(warm, plan)| {
            let (subject, expected) = (subject.clone(), Arc::clone(&expected));
            let name = format!("{} {} {plan:?}", subject.name, if warm { "Warm" } else { "Cold" });
            (name, async move { suffer(&subject, warm, plan, &expected).await })
        });
        let (counts, why) = all(tried, subject.at_once).await;
        eprintln!("{}: {sizes:?} bytes; {counts:?}", subject.name);
        complaints.extend(why);
    }
    drop(turn);
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
