//! How servers behave well and badly, and what comes of it: on each wire, over real connections.

use std::time::Duration;

use querymend_model::{CancelSignal, Error, ProviderProtocol, Providers, TimeoutPhase, open};
use querymend_testing::hang_timeout;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::common::{Act, Pauses, SECRET, Server, WIRES, ask, question};

fn said(message: &str) -> String {
    json!({"error": {"message": message}}).to_string()
}

#[tokio::test]
async fn sends_path_headers_and_body_per_protocol() {
    for wire in WIRES {
        let server = Server::start(wire, [Act::Say("SELECT 1", "end")]).await;
        let reply = ask(&*server.model(), &question("One")).await.0.unwrap();
        assert_eq!((reply.usage.input, reply.usage.output), (12, 5));
        assert!((reply.usage.cost_usd.unwrap() - 22e-6).abs() < 1e-12, "{:?}", reply.usage);
        assert_eq!(reply.model, "m-2");
        let (head, body) = server.asked().remove(0);
        let (line, key) = match wire {
            ProviderProtocol::OpenAi => ("post /v1/chat/completions http", format!("authorization: bearer {SECRET}")),
            ProviderProtocol::Anthropic => ("post /v1/messages http", format!("x-api-key: {SECRET}")),
            ProviderProtocol::Gemini => {
                ("post /v1/models/priced:streamgeneratecontent?alt=sse http", format!("x-goog-api-key: {SECRET}"))
            }
        };
        assert!(head.starts_with(line), "{head}");
        assert!(head.contains(&key) && head.contains("content-type: application/json"), "{head}");
        assert_eq!(body["model"].as_str(), (wire != ProviderProtocol::Gemini).then_some("priced"));
        assert!(!body.to_string().contains(SECRET));
    }
}

#[tokio::test]
async fn reaches_a_server_by_url_alone() {
    let server = Server::start(ProviderProtocol::OpenAi, [Act::Say("SELECT 1", "end")]).await;
    let spec = format!("http://{}/v1/#some/model", server.address);
    let model = open(&spec, &Providers::builtin().unwrap().with_variables(|_| None)).unwrap();
    let reply = ask(&*model, &question("One")).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.usage.cost_usd), ("SELECT 1", None));
    let (head, body) = server.asked().remove(0);
    assert_eq!(body["model"], "some/model");
    assert!(head.starts_with("post /v1/chat/completions") && !head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn reuses_a_connection() {
    let mut connections = Vec::new();
    // One connection is enough for a round. The end of a reply is waited for only shortly, so that a machine that stops in that moment
    // costs a connection.
    for _ in 0..5 {
        let server = Server::start(ProviderProtocol::OpenAi, []).await;
        let model = server.model();
        for number in 0..5 {
            ask(&*model, &question(&format!("{number}"))).await.0.unwrap();
        }
        connections.push(server.connections());
    }
    let is_reused = connections.contains(&1) && connections.iter().sum::<usize>() < 10;
    assert!(is_reused, "number of connections for five requests in each round: {connections:?}");
}

#[tokio::test]
async fn retries_a_busy_server_after_its_retry_after() {
    for wire in WIRES {
        let pauses = Pauses::default();
        let server = Server::start(
            wire,
            [
                Act::Status(429, "retry-after: 7\r\n", said("slow down")),
                Act::Status(503, "retry-after: 7\r\nretry-after-ms: 1500\r\n", said("loading")),
                Act::Status(429, "retry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\n", said("a date is not read")),
                Act::Say("SELECT 1", "end"),
            ],
        )
        .await;
        let model = open("test:m", &server.providers(&pauses, "")).unwrap();
        assert_eq!(ask(&*model, &question("One")).await.0.unwrap().text, "SELECT 1");
        assert_eq!(pauses.all(), [7_150, 1_650, 600].map(Duration::from_millis), "and a little chance");
    }
}

#[tokio::test]
async fn does_not_retry_after_a_long_retry_after() {
    let pauses = Pauses::default();
    let server =
        Server::start(ProviderProtocol::OpenAi, [Act::Status(429, "retry-after: 3600\r\n", said("tomorrow"))]).await;
    let model = open("test:m", &server.providers(&pauses, "")).unwrap();
    let error = ask(&*model, &question("One")).await.0.unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }) && error.is_transient(), "{error:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert!(pauses.all().is_empty());
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn retries_a_failing_server_at_most_four_times() {
    for wire in WIRES {
        let pauses = Pauses::default();
        let server = Server::start(wire, [500, 503, 529].map(|status| Act::Status(status, "", said("oh no")))).await;
        let model = open("test:m", &server.providers(&pauses, "")).unwrap();
        assert_eq!(ask(&*model, &question("One")).await.0.unwrap().text, "One", "the fourth try succeeds");
        assert_eq!(pauses.all(), [150, 300, 600].map(Duration::from_millis));

        let server = Server::start(wire, vec![Act::Status(502, "", "<html>".into()); 5]).await;
        let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
        assert!(matches!(error, Error::Overloaded { status: 502, .. }), "{error:?}");
        assert_eq!(server.asked().len(), 4);
    }
}

#[tokio::test]
async fn sends_requests_with_permanent_errors_once() {
    for (status, headers, body, kind) in [
        (401, "", said("wrong key"), "auth"),
        (403, "", said("not for you"), "auth"),
        (404, "", said("no such model"), "configuration"),
        (400, "", said("This model's maximum context length is 10 tokens"), "context_too_long"),
        (429, "", json!({"error": {"code": "insufficient_quota", "message": "pay"}}).to_string(), "auth"),
        (400, "", json!({"error": {"code": "content_filter", "message": "no"}}).to_string(), "refused"),
        (307, "location: http://127.0.0.1:9/\r\n", String::new(), "configuration"),
    ] {
        for wire in WIRES {
            let server = Server::start(wire, [Act::Status(status, headers, body.clone())]).await;
            let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
            assert_eq!(serde_json::to_value(&error).unwrap()["kind"], kind, "{error:?}");
            assert_eq!(server.asked().len(), 1, "{wire:?} {status}");
        }
    }
}

#[tokio::test]
async fn retries_a_broken_reply_only_before_its_first_text() {
    for wire in WIRES {
        let server = Server::start(wire, [Act::Break(""), Act::Say("SELECT 1", "end")]).await;
        let (reply, watched) = ask(&*server.model(), &question("One")).await;
        assert_eq!((reply.unwrap().text.as_str(), watched.concat().as_str()), ("SELECT 1", "SELECT 1"), "{wire:?}");

        let server = Server::start(wire, [Act::Break("SELECT half of"), Act::Say("SELECT 1", "end")]).await;
        let (reply, watched) = ask(&*server.model(), &question("One")).await;
        let error = reply.unwrap_err();
        assert!(matches!(error, Error::Unreachable { transient: true, .. }), "{wire:?}: {error:?}");
        assert_eq!(watched.concat(), "SELECT half of");
        assert_eq!(server.asked().len(), 1, "what was handed on cannot be taken back");
    }
}

#[tokio::test]
async fn rejects_a_stream_that_ends_early() {
    for wire in WIRES {
        let server = Server::start(wire, vec![Act::Events(b": nothing\n\n".to_vec()); 4]).await;
        let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
        assert!(matches!(error, Error::BadResponse { .. }), "{wire:?}: {error:?}");
        let server = Server::start(wire, vec![Act::Events(Vec::new()); 4]).await;
        let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
        assert!(matches!(error, Error::Unreachable { transient: true, .. }), "{wire:?}: {error:?}");
        assert_eq!(server.asked().len(), 4);
    }
}

#[tokio::test]
async fn rejects_responses_that_are_not_replies() {
    for wire in WIRES {
        for garbage in [
            Act::Events(b"data: {\"half\": \n\n".to_vec()),
            Act::Events(b"data: \xff\xff\n\n".to_vec()),
            Act::Events(b"<html>nothing here</html>\n\n".to_vec()),
            Act::Status(200, "content-type: text/html\r\n", "<html>sign in</html>".into()),
            Act::Status(200, "content-type: application/json\r\n", "{\"half\":".into()),
            Act::Status(200, "content-type: application/json\r\n", "{\"status\":\"fine\"}".into()),
        ] {
            let server = Server::start(wire, [garbage]).await;
            let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
            assert!(matches!(error, Error::BadResponse { .. }) && !error.is_transient(), "{wire:?}: {error:?}");
            assert_eq!(server.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn rejects_endless_replies() {
    let event = |wire: ProviderProtocol, text: &str| match wire {
        ProviderProtocol::OpenAi => json!({"choices": [{"delta": {"content": text}}]}),
        ProviderProtocol::Anthropic => {
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}})
        }
        ProviderProtocol::Gemini => json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
    };
    for wire in WIRES {
        // Ten megabytes: in ten thousand events, in one, and in one that never ends.
        let small = format!("data: {}\n\n", event(wire, &"x".repeat(1000)));
        let large = format!("data: {}\n\n", event(wire, &"x".repeat(10 << 20)));
        for bytes in [small.repeat(10_000), large, "x".repeat(10 << 20)] {
            let server = Server::start(wire, [Act::Events(bytes.into_bytes())]).await;
            let (reply, watched) = ask(&*server.model(), &question("One")).await;
            let error = reply.unwrap_err();
            assert!(matches!(error, Error::BadResponse { .. }), "{wire:?}: {error:?}");
            assert!(watched.concat().len() <= 1 << 20);
        }
        let body = "{\"x\": \"".to_owned() + &"x".repeat(10 << 20) + "\"}";
        let server = Server::start(wire, [Act::Status(200, "content-type: application/json\r\n", body)]).await;
        let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
        assert!(matches!(error, Error::BadResponse { .. }), "{wire:?}: {error:?}");
        // An error may not be endless either.
        let server = Server::start(wire, [Act::Status(401, "", "no ".repeat(4 << 20))]).await;
        let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
        assert!(matches!(&error, Error::Auth { message, .. } if message.len() < 1000));
    }
}

#[tokio::test]
async fn accepts_replies_that_are_not_streamed() {
    for wire in WIRES {
        let server = Server::start(wire, [Act::Whole("SELECT 1")]).await;
        let (reply, watched) = ask(&*server.model(), &question("One")).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.usage.output, watched.concat().as_str()), ("SELECT 1", 5, "SELECT 1"));
    }
}

#[tokio::test]
async fn reports_a_silent_block_as_refused() {
    for wire in WIRES {
        let server = Server::start(wire, [Act::Say("never seen", "refused-silently")]).await;
        let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{wire:?}: {error:?}");
    }
}

#[tokio::test]
async fn retries_after_an_error_event() {
    for wire in WIRES {
        let event = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        let bytes = format!("event: error\ndata: {event}\n\n").into_bytes();
        let server = Server::start(wire, [Act::Events(bytes), Act::Say("SELECT 1", "end")]).await;
        assert_eq!(ask(&*server.model(), &question("One")).await.0.unwrap().text, "SELECT 1", "{wire:?}");
    }
}

#[tokio::test]
async fn times_out_on_silence() {
    // A slow machine may be silent for that long as well, and is asked again too.
    const TRIES: u32 = 200;
    const MAX_ROUNDS: usize = 20;
    const HALF: &str = "SELECT half of";
    let silence = Duration::from_millis(100);
    for wire in WIRES {
        for (first, others) in [(Act::Hang(""), Act::Say("SELECT 1", "end")), (Act::Hang(HALF), Act::Hang(HALF))] {
            for round in 1.. {
                let mut acts = vec![others.clone(); TRIES as usize];
                acts[0] = first.clone();
                let server = Server::start(wire, acts).await;
                let mut providers = server.providers(&Pauses::default(), "first_byte_seconds = 0.1");
                providers.retry.max_attempts = TRIES;
                // The field belongs to the provider and not to the model that stands above it in the text.
                let model = open("test:m", &providers).unwrap();
                let (reply, watched) = ask(&*model, &question("One")).await;
                assert!(server.was_left().await);
                if matches!(first, Act::Hang("")) {
                    assert_eq!(reply.unwrap().text, "SELECT 1", "nothing was said, so it is asked again");
                    break;
                }
                assert!(
                    matches!(reply, Err(Error::Timeout { after, waiting_for: TimeoutPhase::FirstByte, .. }) if after == silence),
                    "{wire:?}: {reply:?}"
                );
                // A second try would repeat the text. A machine that stops within the text cuts it short, in some rounds.
                let handed_on = watched.concat();
                assert!(HALF.starts_with(&handed_on), "{wire:?}: {handed_on:?}");
                if handed_on == HALF {
                    break;
                }
                assert!(round < MAX_ROUNDS, "{wire:?}: only {handed_on:?} was handed on, in each of {round} rounds");
            }
        }
    }
}

#[tokio::test]
async fn timeout_covers_all_attempts() {
    let mut time = Duration::from_millis(150);
    loop {
        let server = Server::start(ProviderProtocol::OpenAi, [Act::Hang("SELECT half of")]).await;
        let (reply, watched) = ask(&*server.model(), &question("One").timeout(time)).await;
        let error = reply.unwrap_err();
        if watched.is_empty() && time < hang_timeout() {
            // The machine was too slow to begin the reply in that time.
            assert!(matches!(error, Error::Timeout { after, .. } if after == time), "{error:?}");
            time *= 2;
            continue;
        }
        assert_eq!(error, Error::Timeout { model: "test:priced".into(), after: time, waiting_for: TimeoutPhase::End });
        assert!(server.was_left().await);
        break;
    }
    // A pause that would outlast the request is not begun, also where a server may ask for it.
    let busy = Act::Status(429, "retry-after: 86400\r\n", said("slow down"));
    let server = Server::start(ProviderProtocol::OpenAi, [busy]).await;
    let pauses = Pauses::default();
    let mut providers = server.providers(&pauses, "");
    providers.retry.max_retry_after = Duration::MAX;
    let model = open("test:m", &providers).unwrap();
    let error = ask(&*model, &question("One")).await.0.unwrap_err();
    assert!(matches!(error, Error::RateLimited { .. }), "{error:?}");
    assert!(pauses.all().is_empty());
    // A limit that is none is one too.
    let server = Server::start(ProviderProtocol::OpenAi, []).await;
    assert!(ask(&*server.model(), &question("One").timeout(Duration::MAX)).await.0.is_ok());
}

#[tokio::test]
async fn cancelling_or_dropping_closes_the_connection() {
    for wire in WIRES {
        for drop_it in [false, true] {
            let server = Server::start(wire, [Act::Hang("SELECT half of")]).await;
            let model = server.model();
            let cancel = CancelSignal::new();
            let stop = cancel.clone();
            let (mut heard, all) = (String::new(), Notify::new());
            let question = question("One");
            let mut watch = |piece: &str| {
                heard.push_str(piece);
                match heard.ends_with("of") {
                    true if drop_it => all.notify_one(),
                    true => stop.cancel(),
                    false => {}
                }
            };
            let asking = model.complete(&question, &mut watch, &cancel);
            if drop_it {
                tokio::select! {
                    reply = asking => panic!("{wire:?}: it is not dropped: {reply:?}"),
                    () = all.notified() => {}
                }
            } else {
                assert_eq!(asking.await, Err(Error::Cancelled));
            }
            assert_eq!(heard, "SELECT half of");
            assert!(server.was_left().await, "{wire:?}: the server sees that nobody listens");
            // The model is as good as before.
            assert_eq!(ask(&*model, &question).await.0.unwrap().text, "One");
        }
    }
}

#[tokio::test]
async fn reports_an_absent_server() {
    // A port that is taken, and on which nobody listens.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let mut providers = Providers::builtin().unwrap().with_variables(|_| None);
    let pauses = Pauses::default();
    providers.retry.clock = std::sync::Arc::new(pauses.clone());
    let model = open(&format!("http://127.0.0.1:{port}/v1#m"), &providers).unwrap();
    let error = ask(&*model, &question("One")).await.0.unwrap_err();
    assert!(matches!(error, Error::Unreachable { transient: true, .. }), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(pauses.all().len(), 3);
}

#[tokio::test]
async fn reports_missing_tls_as_permanent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let providers = Providers::builtin().unwrap().with_variables(|_| None);
    let model = open(&format!("https://127.0.0.1:{port}/v1#m"), &providers).unwrap();
    let error = ask(&*model, &question("One")).await.0.unwrap_err();
    assert!(matches!(error, Error::Unreachable { transient: false, .. }), "{error:?}");
}

#[tokio::test]
async fn sends_the_schema_in_each_protocol() {
    let schema = json!({
        "type": "object",
        "properties": {"corrected_sql": {"type": "string"}, "correction_applied": {"type": "string"}},
        "required": ["corrected_sql", "correction_applied"],
        "additionalProperties": false
    });
    for wire in WIRES {
        let text = r#"{"corrected_sql": "SELECT 1", "correction_applied": "none"}"#;
        let server = Server::start(wire, [Act::Say(text, "end")]).await;
        let reply = ask(&*server.model(), &question("One").schema(schema.clone())).await.0.unwrap();
        let value: Value = serde_json::from_str(&reply.text).unwrap();
        assert_eq!(value["corrected_sql"], "SELECT 1");
        let body = server.asked().remove(0).1;
        match wire {
            ProviderProtocol::OpenAi => assert_eq!(body["response_format"]["json_schema"]["schema"], schema),
            ProviderProtocol::Anthropic => assert_eq!(body["output_config"]["format"]["schema"], schema),
            ProviderProtocol::Gemini => {
                assert_eq!(body["generationConfig"]["responseSchema"]["required"], schema["required"])
            }
        }
    }
}

#[tokio::test]
async fn omits_schemas_after_a_server_rejects_one() {
    for wire in WIRES {
        let field = match wire {
            ProviderProtocol::OpenAi => "response_format",
            ProviderProtocol::Anthropic => "output_config",
            ProviderProtocol::Gemini => "responseSchema",
        };
        let server = Server::start(wire, [Act::Status(400, "", said(&format!("{field}: unknown field")))]).await;
        let asked = question("One").schema(json!({"type": "object"}));
        assert_eq!(ask(&*server.model(), &asked).await.0.unwrap().text, "One");
        // Another handle on the same model knows it already.
        assert_eq!(ask(&*server.model(), &asked).await.0.unwrap().text, "One");
        let with: Vec<bool> = server.asked().iter().map(|(_, body)| body.to_string().contains(field)).collect();
        assert_eq!(with, [true, false, false], "{wire:?}");
        // Another model there may know schemas.
        let other = open("test:other", &server.providers(&Pauses::default(), "")).unwrap();
        ask(&*other, &asked).await.0.unwrap();
        assert!(server.asked()[3].1.to_string().contains(field));
    }
}

#[tokio::test]
async fn omits_settings_that_a_model_rejects() {
    let server = Server::start(
        ProviderProtocol::OpenAi,
        [
            Act::Status(400, "", said("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")),
            Act::Status(400, "", said("Unsupported value: 'temperature' does not support 0 with this model.")),
        ],
    )
    .await;
    assert_eq!(ask(&*server.model(), &question("One")).await.0.unwrap().text, "One");
    let last = &server.asked()[2].1;
    assert_eq!(last["max_completion_tokens"], 1024);
    assert!(last["max_tokens"].is_null() && last["temperature"].is_null());
    // The same words a third time, about something that is no longer sent, are an error and no endless round.
    let refusal = Act::Status(400, "", said("Unsupported value: 'temperature'"));
    let server = Server::start(ProviderProtocol::OpenAi, vec![refusal; 5]).await;
    let error = ask(&*server.model(), &question("One")).await.0.unwrap_err();
    assert!(matches!(error, Error::Configuration { .. }), "{error:?}");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn never_reveals_api_keys() {
    let echo = format!("wrong key {SECRET}, that is {}****cdef, or \"{SECRET}\"", &SECRET[..8]);
    let mut acts: Vec<Act> =
        [400, 401, 403, 404, 418, 422].into_iter().map(|status| Act::Status(status, "", said(&echo))).collect();
    acts.push(Act::Status(401, "", echo.clone()));
    acts.push(Act::Events(format!("data: {echo}\n\n").into_bytes()));
    acts.push(Act::Events(
        format!("data: {}\n\n", json!({"error": {"type": "authentication_error", "message": echo}})).into_bytes(),
    ));
    acts.push(Act::Status(200, "content-type: application/json\r\n", json!({"key": echo}).to_string()));
    acts.push(Act::Status(200, "content-type: application/json\r\n", echo.clone()));
    for wire in WIRES {
        let count = acts.len();
        let server = Server::start(wire, acts.clone()).await;
        let providers = server.providers(&Pauses::default(), "");
        let model = open("test:priced", &providers).unwrap();
        for _ in 0..count {
            let error = ask(&*model, &question("One")).await.0.unwrap_err();
            let hint = error.hint().unwrap_or_default();
            let json = serde_json::to_string(&error).unwrap();
            for seen in [format!("{error:?}"), format!("{error:#?}"), error.to_string(), hint.to_owned(), json] {
                assert!(!seen.contains(SECRET) && !seen.contains(&SECRET[..8]) && !seen.contains("cdef"), "{seen}");
            }
        }
        assert!(server.asked().iter().all(|(head, _)| head.contains(SECRET)), "it was sent, though");
        assert!(!format!("{providers:?} {}", model.name()).contains(SECRET));
    }
}
