use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use querymend::config::RoleSection;
use querymend::{Problem, ProblemCode};
use querymend_server::auth::user::{Authenticator, Credentials};
use querymend_server::{BoxFuture, User};
use serde_json::{Value, json};

use super::house::{
    FINE, HOPELESS, House, MISNAMED, Parrot, Plan, down, house, left_out, paid, script, telemetry_script,
};
use crate::timing::within;

/// A name, labels and the value that goes with them.
type Expected<'e> = (&'e str, &'e [(&'e str, &'e str)], f64);

/// Figures as Prometheus' own reader has them.
struct Figures(Vec<Value>);

impl Figures {
    fn of(text: &str) -> Self {
        let mut child = Command::new(telemetry_script())
            .arg("read")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let hint = "scripts/telemetry.sh fetch says more; QUERYMEND_TEST_CLIENTS=none leaves these tests out";
        assert!(output.status.success(), "{}\n{hint}\n{text}", String::from_utf8_lossy(&output.stderr));
        Self(serde_json::from_slice(&output.stdout).unwrap())
    }

    /// The sum of all samples of this name that have these labels.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |sample: &&Value| {
            sample["name"] == name && labels.iter().all(|(label, value)| sample["labels"][label] == *value)
        };
        self.0.iter().filter(fits).filter_map(|sample| sample["value"].as_f64()).sum()
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|sample| sample["name"] == name)
    }
}

/// A correction by rules, one by the model, a question that is given up, a model that is down until its breaker opens.
async fn eventful() -> House {
    let lines = [
        paid(MISNAMED),
        paid(HOPELESS),
        paid(FINE),
        paid(HOPELESS),
        paid(HOPELESS),
        down(),
        down(),
        paid("never said: the breaker is open"),
    ];
    let house = house(Plan { threshold: 2, ..Plan::new(script(lines)) }, |service| service).await;
    let (status, answer) = house.ask("Which electronics are there, at what price?").await;
    assert_eq!((status, &answer["status"]), (200, &json!("answered")), "{answer}");
    let (status, answer) = house.ask("Which electronics are there?").await;
    assert_eq!((status, &answer["metadata"]["correction_attempts"]), (200, &json!(1)), "{answer}");
    let (status, problem) = house.ask("How wide are products?").await;
    assert_eq!((status, &problem["code"]), (500, &json!("max_retries_exceeded")), "{problem}");
    for expected in ["model_unavailable", "model_unavailable", "circuit_breaker_open"] {
        let (status, problem) = house.ask("Which products are there?").await;
        assert_eq!((status, &problem["code"]), (503, &json!(expected)), "{problem}");
    }
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_parses_the_metrics() {
    if left_out() {
        return;
    }
    let house = eventful().await;
    let (status, _) = house.post("/v1/run", &json!({"sql": "SELECT name FROM products LIMIT 3"}), None).await;
    assert_eq!(status, 200);
    let (status, fixed) = house.post("/v1/fix", &json!({"sql": MISNAMED}), None).await;
    assert_eq!((status, &fixed["status"]), (200, &json!("mended")), "{fixed}");
    let gone = house.client.get(format!("{}/wp-login.php?user=1", house.address)).send().await.unwrap();
    assert_eq!(gone.status(), 404);
    assert!(gone.headers().contains_key("x-request-id"));
    let text = house.metrics_at_rest().await;
    let figures = Figures::of(&text);
    let shop = [("database", "shop")];
    let expected: &[Expected<'_>] = &[
        // Rules once over /v1/ask and once over /v1/fix; the model once in the second question and once in the third.
        ("querymend_correction_attempts_total", &shop, 4.0),
        ("querymend_corrections_total", &[("by", "rules"), ("successful", "true")], 2.0),
        ("querymend_corrections_total", &[("by", "model"), ("successful", "true")], 1.0),
        ("querymend_corrections_total", &[("by", "model"), ("successful", "false")], 1.0),
        ("querymend_correction_success_rate", &shop, 0.75),
        ("querymend_circuit_breaker_opens_total", &[("tool", "model:script")], 1.0),
        ("querymend_circuit_breaker_state", &[("tool", "model:script")], 1.0),
        ("querymend_circuit_breaker_rejections_total", &[("tool", "model:script")], 1.0),
        ("querymend_tool_calls_total", &[("tool", "model:script"), ("outcome", "ok")], 5.0),
        ("querymend_tool_calls_total", &[("tool", "model:script"), ("outcome", "failed")], 2.0),
        ("querymend_questions_total", &[("outcome", "answered"), ("stop", "answered")], 2.0),
        ("querymend_questions_total", &[("outcome", "gave_up")], 1.0),
        ("querymend_questions_total", &[("outcome", "failed"), ("stop", "model_failed")], 3.0),
        ("querymend_question_duration_seconds_count", &shop, 6.0),
        ("querymend_stage_duration_seconds_count", &[("stage", "generation")], 8.0),
        ("querymend_stage_duration_seconds_count", &[("stage", "self_correction")], 1.0),
        ("querymend_model_call_duration_seconds_count", &[("model", "script"), ("outcome", "ok")], 5.0),
        ("querymend_model_call_duration_seconds_count", &[("model", "script"), ("outcome", "failed")], 3.0),
        ("querymend_model_tokens_total", &[("direction", "input")], 500.0),
        ("querymend_model_tokens_total", &[("direction", "output")], 100.0),
        ("querymend_model_cost_usd_total", &[("model", "script")], 1.25),
        ("querymend_queries_total", &[("outcome", "ran")], 3.0),
        ("querymend_queries_total", &[("outcome", "held_back")], 3.0),
        ("querymend_http_requests_total", &[("route", "/v1/ask"), ("status", "200")], 2.0),
        ("querymend_http_requests_total", &[("route", "/v1/ask"), ("status", "503")], 3.0),
        ("querymend_http_requests_total", &[("route", "other"), ("method", "GET"), ("status", "404")], 1.0),
        ("querymend_http_request_duration_seconds_count", &[("route", "/v1/ask"), ("method", "POST")], 6.0),
        ("querymend_cache_hits_total", &shop, 0.0),
        ("querymend_requests_running", &[], 0.0),
    ];
    for (name, labels, value) in expected {
        assert!(figures.has(name), "{name} in {text}");
        assert_eq!(figures.sum(name, labels), *value, "{name} {labels:?}\n{text}");
    }
    let high = figures.sum("querymend_high_confidence_corrections_total", &shop);
    let low = figures.sum("querymend_low_confidence_corrections_total", &shop);
    // Those of the model and of `correct` are of medium confidence, and count as neither.
    assert_eq!((high, low), (1.0, 0.0), "{text}");
    assert!(!text.contains(" -0\n"), "{text}");
    assert!(figures.sum("querymend_rows_returned_total", &shop) > 3.0);
    assert!(figures.sum("querymend_audit_lines_total", &[]) >= 8.0);
    assert!(figures.sum("querymend_errors_total", &shop) >= 2.0, "{text}");
    assert!(figures.sum("process_resident_memory_bytes", &[]) > 1e6);
    // What people wrote is nowhere in it.
    for private in ["dragons", "lectronics", "wp-login", "SELECT"] {
        assert!(!text.contains(private), "{private} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_in_one_process_have_separate_metrics() {
    let (one, other) = (house(Plan::new(Parrot(FINE)), |s| s).await, house(Plan::new(Parrot(FINE)), |s| s).await);
    one.ask("Which electronics are there?").await;
    let total = |text: &str| text.lines().any(|line| line.starts_with("querymend_questions_total{"));
    assert!(total(&one.metrics().await));
    assert!(!total(&other.metrics().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_exact_under_concurrent_requests() {
    let house = Arc::new(house(Plan::new(Parrot(FINE)), |service| service).await);
    let asked: Vec<_> = (0..64)
        .map(|n| {
            let house = Arc::clone(&house);
            tokio::spawn(async move {
                let (status, answer) = house.ask("Which electronics are there?").await;
                assert_eq!(status, 200, "{answer}");
                if n % 8 == 0 {
                    house.metrics().await;
                }
            })
        })
        .collect();
    let all = async {
        for one in asked {
            one.await.unwrap();
        }
    };
    within("all are answered", all).await;
    let text = house.metrics_at_rest().await;
    for expected in [
        "querymend_questions_total{database=\"shop\",outcome=\"answered\",stop=\"answered\"} 64\n",
        "querymend_question_duration_seconds_count{database=\"shop\",outcome=\"answered\"} 64\n",
        "querymend_model_tokens_total{model=\"test:parrot\",direction=\"input\"} 448\n",
        "querymend_http_requests_total{route=\"/v1/ask\",method=\"POST\",status=\"200\"} 64\n",
        "querymend_requests_running 0\n",
        "querymend_audit_lines_total 128\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

/// Knows two users by what stands in `Authorization`.
struct Two;

impl Authenticator for Two {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, User> {
        Box::pin(async move {
            let administer = match credentials.authorization {
                Some("Bearer operator") => true,
                Some("Bearer analyst") => false,
                _ => return Err(Problem::new(ProblemCode::Unauthenticated, "who are you?")),
            };
            let role = Arc::new(RoleSection { admin: administer, ..RoleSection::default() });
            Ok(User { id: Some("someone".into()), role_name: Some(format!("{administer}")), role })
        })
    }

    fn requires_credentials(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_administrators_read_metrics() {
    let plan = Plan { gate: Arc::new(Two), ..Plan::new(Parrot(FINE)) };
    let house = house(plan, |service| service).await;
    let mut told = BTreeMap::new();
    for who in ["", "Bearer analyst", "Bearer operator"] {
        let request = house.client.get(format!("{}/metrics", house.address)).header("authorization", who);
        let response = request.send().await.unwrap();
        told.insert(who, response.status().as_u16());
    }
    assert_eq!(told, BTreeMap::from([("", 401), ("Bearer analyst", 403), ("Bearer operator", 200)]));
}
