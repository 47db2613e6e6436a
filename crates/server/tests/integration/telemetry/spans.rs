use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use querymend_model::Providers;
use querymend_server::observe::observer::{EventOrigin, Observer};
use querymend_server::observe::otlp::{OtlpExporter, OtlpSettings};
use querymend_server::{RequestContext, User};
use querymend_testing::hang_timeout;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::collector::{Collector, Printed, spans};
use super::house::{FINE, HOPELESS, House, MISNAMED, Parrot, Plan, down, house, left_out, paid, script};
use crate::timing::{NEVER, within};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Settings for a collector that may take as long as it likes.
fn settings(address: &str) -> OtlpSettings {
    let mut settings = OtlpSettings::new(address).unwrap();
    settings.timeout = NEVER;
    settings
}

/// A server that sends to a collector.
async fn traced(plan: Plan, settings: &OtlpSettings) -> (House, OtlpExporter) {
    let otlp = OtlpExporter::start(settings).unwrap();
    let listener = Arc::new(otlp.clone());
    let house = house(plan, |service| service.with_observer(listener)).await;
    otlp.export_metrics_of(&house.service);
    (house, otlp)
}

fn of_trace<'s>(all: &'s [Printed], id: &str) -> (&'s Printed, Vec<&'s Printed>) {
    let own: Vec<&Printed> = all.iter().filter(|span| span.trace_id == id).collect();
    let root = own.iter().find(|span| span.kind == "SPAN_KIND_SERVER");
    assert!(root.is_some(), "no {id} in {all:#?}");
    let root = root.unwrap();
    (root, own.iter().filter(|span| span.id != root.id).copied().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_spans_and_metrics_to_a_collector() {
    if left_out() {
        return;
    }
    let collector = Collector::start();
    let lines = [paid(MISNAMED), paid(HOPELESS), paid(FINE), down()];
    let (house, otlp) = traced(Plan::new(script(lines)), &settings(&collector.address)).await;
    let ask = |question: &str| json!({"question": question});
    let (status, mended) =
        house.post("/v1/ask", &ask("Which electronics are there, at what price?"), Some(PARENT)).await;
    assert_eq!(status, 200, "{mended}");
    let (status, retried) = house.ask("Which electronics are there?").await;
    assert_eq!(status, 200, "{retried}");
    let (status, failed) = house.ask("Which products are there?").await;
    assert_eq!(status, 503, "{failed}");
    let (status, _) = house.post("/v1/run", &json!({"sql": FINE}), None).await;
    assert_eq!(status, 200);
    let (status, fixed) = house.post("/v1/fix", &json!({"sql": MISNAMED}), None).await;
    assert_eq!(status, 200, "{fixed}");
    assert!(otlp.shut_down(hang_timeout()).await, "{}", collector.printed());
    let check = |printed: &str| {
        let all = spans(printed);

        // The trace of whoever asked goes on.
        let (root, children) = of_trace(&all, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((root.name.as_str(), root.parent.as_str()), ("question", "00f067aa0ba902b7"));
        assert!(children.iter().all(|span| span.parent == root.id), "{children:#?}");
        assert!(children.iter().all(|span| root.start <= span.start && span.start <= span.end && span.end <= root.end));
        let says = |name: &str| root.says(name).to_owned();
        assert_eq!(says("outcome"), "Str(answered)");
        assert_eq!(says("attempt_count"), "Int(1)");
        assert_eq!(says("error_type"), "Str(column_not_found)");
        assert_eq!(says("querymend.trace_id"), format!("Str({})", mended["trace_id"].as_str().unwrap()));
        assert_eq!(says("confidence"), format!("Str({})", mended["confidence"].as_str().unwrap()));
        let names: Vec<&str> = children.iter().map(|span| span.name.as_str()).collect();
        let expected = ["schema_discovery", "pattern_selection", "chat script", "review", "repair", "SELECT shop"];
        assert_eq!(names, expected);
        let chat = children[2];
        assert_eq!(chat.kind, "SPAN_KIND_CLIENT");
        for (name, value) in [
            ("gen_ai.operation.name", "Str(chat)"),
            ("gen_ai.request.model", "Str(script)"),
            ("gen_ai.usage.input_tokens", "Int(100)"),
            ("gen_ai.usage.output_tokens", "Int(20)"),
        ] {
            assert_eq!(chat.says(name), value, "{chat:#?}");
        }
        let query = children[5];
        assert_eq!((query.says("db.system.name"), query.says("db.namespace")), ("Str(sqlite)", "Str(shop)"));
        let rows = mended["rows"]["rows"].as_array().unwrap().len();
        assert_eq!(query.says("db.response.returned_rows"), format!("Int({rows})"));
        assert!(children[4].says("querymend.rules").contains("unknown-column"), "{:#?}", children[4]);

        // Others have the name of their run.
        let (root, children) = of_trace(&all, &retried["trace_id"].as_str().unwrap().replace('-', ""));
        assert_eq!((root.says("attempt_count"), root.parent.as_str()), ("Int(2)", ""));
        assert_eq!(root.marks, ["retry"]);
        assert!(!root.says("error_type").is_empty(), "{root:#?}");
        assert_eq!(children.iter().filter(|span| span.name == "chat script").count(), 2);

        let broken = all.iter().find(|span| span.name == "chat script" && span.status == "STATUS_CODE_ERROR").unwrap();
        assert_eq!(broken.says("error.type"), "Str(model_unavailable)");
        let (root, _) = of_trace(&all, &broken.trace_id);
        assert_eq!((root.says("outcome"), root.status.as_str()), ("Str(failed)", "STATUS_CODE_ERROR"));

        assert!(all.iter().any(|span| span.name == "run" && span.kind == "SPAN_KIND_SERVER"));
        let fix = all.iter().find(|span| span.name == "correct").unwrap();
        assert_eq!(fix.says("outcome"), "Str(mended)");
        assert!(printed.contains("service.name: Str(querymend)"));
        for name in ["querymend_circuit_breaker_state", "querymend_question_duration", "querymend_model_tokens"] {
            assert!(printed.contains(name), "{name} in {printed}");
        }
        // Nobody gets texts unasked.
        assert!(!printed.contains("SELECT name") && !printed.contains("lectronics"), "{printed}");
    };
    collector.check(5, check).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_contain_text_only_if_enabled() {
    if left_out() {
        return;
    }
    let collector = Collector::start();
    let mut settings = settings(&collector.address);
    settings.capture_content = true;
    let (house, otlp) = traced(Plan::new(Parrot(FINE)), &settings).await;
    house.ask("Which electronics are there?").await;
    // A trace that nobody wants to be written down is not.
    let unsampled = PARENT.replace("-01", "-00");
    house.post("/v1/ask", &json!({"question": "Which products?"}), Some(&unsampled)).await;
    assert!(otlp.shut_down(hang_timeout()).await);
    let check = |printed: &str| {
        assert!(printed.contains(&format!("db.query.text: Str({FINE}")), "{printed}");
        assert!(printed.contains("querymend.question: Str(Which electronics are there?)"), "{printed}");
        assert!(!printed.contains("4bf92f3577b34da6a3ce929d0e0e4736"), "{printed}");
    };
    collector.check(1, check).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn model_server_receives_the_trace_context() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let answer = move |headers: HeaderMap| {
        let parent = headers.get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
        heard.lock().unwrap().push(parent.unwrap_or_default());
        let message = json!({"role": "assistant", "content": FINE});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        async move { axum::Json(json!({"model": "m", "choices": [choice]})) }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1#m", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/chat/completions", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let model = querymend_model::open(&address, &Providers::builtin().unwrap()).unwrap();
    let plan = || Plan { model: Arc::clone(&model), ..Plan::new(Parrot("")) };

    // Without a collector it is passed on as it came; with one the question stands between.
    let plain = house(plan(), |service| service).await;
    let question = json!({"question": "Which electronics are there?"});
    let (status, answer) = plain.post("/v1/ask", &question, Some(PARENT)).await;
    assert_eq!(status, 200, "{answer}");
    let (house, _otlp) = traced(plan(), &OtlpSettings::new("http://127.0.0.1:1").unwrap()).await;
    house.post("/v1/ask", &question, Some(PARENT)).await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen.len(), seen[0].as_str()), (2, PARENT));
    assert!(seen[1].starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && seen[1] != PARENT, "{seen:?}");
}

/// Takes connections, which it tells, and never says anything.
async fn mute() -> (String, Arc<Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let connected = Arc::new(Notify::new());
    let tell = Arc::clone(&connected);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
            tell.notify_one();
        }
    });
    (address, connected)
}

#[tokio::test(flavor = "multi_thread")]
async fn unresponsive_collector_does_not_delay_questions() {
    let (mute, connected) = mute().await;
    for (address, connected) in [(mute.as_str(), Some(connected)), ("http://127.0.0.1:1", None)] {
        let (house, otlp) = traced(Plan::new(Parrot(FINE)), &settings(address)).await;
        let user = User::anonymous();
        let request = RequestContext { user: &user, request_id: "r", traceparent: None };
        let place = EventOrigin { request: &request, database: "shop", model: "script", dialect: "sqlite" };
        let send = |spans: usize| {
            for _ in 0..spans {
                drop(otlp.on_question(&place, "0192f0c1-2345-7678-89ab-cdef01234567"));
            }
        };
        // More than one request to the collector takes, so that one is under way. The mute one never answers it.
        send(1_000);
        if let Some(connected) = connected {
            within("spans are sent", connected.notified()).await;
        }
        for _ in 0..3 {
            let (status, answer) = within("an answer", house.ask("Which electronics are there?")).await;
            assert_eq!(status, 200, "{answer}");
        }
        // Much more than can wait in line is dropped, at once, and counted.
        send(20_000);
        // Closing waits no longer than it is told to.
        within("closing", otlp.shut_down(Duration::from_millis(200))).await;
        let text = house.metrics().await;
        let dropped =
            text.lines().find_map(|line| line.strip_prefix("querymend_telemetry_dropped_total{signal=\"spans\"} "));
        assert!(dropped.and_then(|count| count.parse::<f64>().ok()).is_some_and(|count| count > 10_000.0), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_of_concurrent_questions_do_not_mix() {
    if left_out() {
        return;
    }
    let collector = Collector::start();
    let (house, otlp) = traced(Plan::new(Parrot(FINE)), &settings(&collector.address)).await;
    let house = Arc::new(house);
    let asked: Vec<_> = (0..32)
        .map(|_| {
            let house = Arc::clone(&house);
            tokio::spawn(async move { house.ask("Which electronics are there?").await.1 })
        })
        .collect();
    let mut ids = Vec::new();
    for one in asked {
        ids.push(one.await.unwrap()["trace_id"].as_str().unwrap().replace('-', ""));
    }
    assert!(otlp.shut_down(hang_timeout()).await);
    let check = |printed: &str| {
        let all = spans(printed);
        assert_eq!(all.len(), 32 * 6);
        for id in &ids {
            let (root, children) = of_trace(&all, id);
            let names: Vec<&str> = children.iter().map(|span| span.name.as_str()).collect();
            assert_eq!(names, ["schema_discovery", "pattern_selection", "chat parrot", "review", "SELECT shop"]);
            assert!(children.iter().all(|span| span.parent == root.id));
        }
    };
    collector.check(32, check).await;
}
