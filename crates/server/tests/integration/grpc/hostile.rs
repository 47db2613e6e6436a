//! Clients that go away, stop reading, or do not speak the language; and what tells tools about the service.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::querymend_server::grpc::proto::ask_event::Event;
use ::querymend_server::grpc::proto::*;
use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use prost::Message;
use querymend::StopReason;
use querymend_model::ScriptedReply;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use super::support::{
    GOOD, GRPC, Names, QUESTION, READ_TIMEOUT, framed, gated, problem, question, server, status, with,
};
use crate::long_deadline::ENDLESS;
use crate::timing::{self, advance, expire, within};

/// Time that a client has to send the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn disconnected_client_cancels_its_question() {
    let server = server([ScriptedReply::Hang, ScriptedReply::Hang, GOOD.into()], timing::config()).await;
    let mut client = server.client().await;
    let asked = tokio::spawn(async move { client.ask(question(QUESTION)).await });
    server.left(2).await;
    asked.abort();
    assert_eq!(server.ended().await, StopReason::Cancelled);
    server.running(0).await;

    // The same where it has begun to read.
    let mut stream = server.client().await.ask_stream(question(QUESTION)).await.unwrap().into_inner();
    while let Some(event) = stream.message().await.unwrap() {
        if event.stage() == Stage::Generation {
            break;
        }
    }
    server.left(1).await;
    assert_eq!(server.service.running_requests(), 1);
    drop(stream);
    assert_eq!(server.ended().await, StopReason::Cancelled);
    server.running(0).await;
    // Nobody else is affected.
    server.client().await.ask(question(QUESTION)).await.unwrap();
}

#[tokio::test]
async fn dropped_stream_stops_the_query() {
    let server = server([GOOD], timing::config()).await;
    let pages =
        server.client().await.run(RunRequest { sql: ENDLESS.to_owned(), ..RunRequest::default() }).await.unwrap();
    assert_eq!(server.service.running_requests(), 1);
    drop(pages);
    // It has no end of its own, and no limit on its time.
    server.running(0).await;
}

#[tokio::test]
async fn call_ends_at_its_deadline() {
    let server = server([ScriptedReply::Hang], timing::config()).await;
    let body = framed(&question(QUESTION).encode_to_vec());
    // The time may be up before the question is taken on; then it never ends either.
    let stop = async {
        for time in (0..).map(|doublings| format!("{}m", 200 << doublings)) {
            let response = server.raw("Ask", &[GRPC, ("grpc-timeout", time.as_str())], body.clone()).await;
            assert_eq!(status(&response).code(), Code::DeadlineExceeded);
            server.running(0).await;
            if let Ok(stop) = server.ends.lock().unwrap().try_recv() {
                return stop;
            }
        }
        unreachable!()
    };
    assert_eq!(within("a question that ends", stop).await, StopReason::Cancelled);
}

#[tokio::test]
async fn stops_waiting_for_a_client_that_stops_reading() {
    let server = server([GOOD], timing::config()).await;
    let sql = "SELECT hex(zeroblob(20000)) AS long FROM order_items".to_owned();
    let run = RunRequest { sql, page_rows: 1, ..RunRequest::default() };
    let waiting = async {
        loop {
            let mut pages = server.client().await.run(run.clone()).await.unwrap().into_inner();
            assert!(pages.message().await.unwrap().is_some());
            // It waits for its reader, unless the machine has stopped for longer than that.
            if server.service.running_requests() == 1 {
                return pages;
            }
        }
    };
    let mut pages = within("it waits for its reader", waiting).await;
    // Others are served meanwhile.
    server.client().await.ask(question(QUESTION)).await.unwrap();
    expire(READ_TIMEOUT).await;
    server.running(0).await;
    // Whoever comes back is told that something is missing.
    let ended = loop {
        match pages.message().await {
            Ok(Some(page)) => assert!(!page.last),
            Ok(None) => panic!("it ends as if that were all"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Aborted);
}

#[tokio::test]
async fn rejects_only_oversized_messages() {
    let mut config = timing::config();
    config.server.limits.body_bytes = 10_000;
    let server = server([GOOD, GOOD], config).await;
    let mut client = server.client().await;
    let long = AskRequest { evidence: "x".repeat(30_000), ..question(QUESTION) };
    let refused = client.ask(long).await.unwrap_err();
    assert_eq!((refused.code(), problem(&refused).code.as_str()), (Code::ResourceExhausted, "too_large"));
    // One that only says that it is long is not believed: nothing is set aside for it.
    let mut lying = framed(b"");
    lying[1..5].copy_from_slice(&u32::MAX.to_be_bytes());
    let refused = status(&server.raw("Ask", &[GRPC], lying).await);
    assert_eq!((refused.code(), problem(&refused).code.as_str()), (Code::ResourceExhausted, "too_large"));
    // The most that fits does.
    let room = 10_000 - question(QUESTION).encoded_len() - 3;
    let fits = AskRequest { evidence: "x".repeat(room), ..question(QUESTION) };
    assert_eq!(fits.encoded_len(), 10_000);
    client.ask(fits).await.unwrap();
    client.ask(question(QUESTION)).await.unwrap();
    server.running(0).await;
}

#[tokio::test]
async fn malformed_message_is_invalid_argument() {
    let server = server([GOOD], timing::config()).await;
    let mut compressed = framed(b"");
    compressed[0] = 1;
    for (body, why) in [
        (framed(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]), "a length beyond its end"),
        (framed(&[0x0a, 0x02, 0xc3, 0x28]), "text that is not UTF-8"),
        (framed(&[0x07, 0x07, 0x07]), "no such kind of field"),
        (framed(&[0xff; 64]), "a number without end"),
        (Vec::new(), "nothing at all"),
        (vec![0, 0, 0], "half a prefix"),
        (framed(b"abc")[..6].to_vec(), "half a message"),
        (vec![9; 40], "no such compression"),
        (compressed, "compressed, but not said how"),
    ] {
        for method in ["Ask", "AskStream", "Correct"] {
            let refused = status(&server.raw(method, &[GRPC], body.clone()).await);
            let told = problem(&refused);
            assert_eq!((refused.code(), told.code.as_str()), (Code::InvalidArgument, "bad_request"), "{method}: {why}");
        }
    }
    let unknown = status(&server.raw("Drop", &[GRPC], framed(b"")).await);
    assert_eq!(unknown.code(), Code::Unimplemented);
    // A page in a browser can send text to any server, but not gRPC.
    for kind in ["text/plain", "application/json", "application/grpc-web"] {
        let response = server.raw("ListDatabases", &[("content-type", kind)], framed(b"")).await;
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
    }
    server.client().await.ask(question(QUESTION)).await.unwrap();
    server.running(0).await;
}

#[tokio::test]
async fn stops_waiting_for_slow_senders() {
    let begun = || {
        let begin = stream::iter([Ok::<_, Infallible>(Bytes::from_static(&[0, 0, 0]))]);
        Body::from_stream(begin.chain(stream::pending()))
    };
    // Whoever is not known is not listened to at all.
    let closed = gated([GOOD], timing::config(), Arc::new(Names)).await;
    let refused = status(&closed.raw("Ask", &[GRPC], begun()).await);
    assert_eq!(refused.code(), Code::Unauthenticated);

    let open = server([GOOD], timing::config()).await;
    let time_is_up = async {
        open.running(1).await;
        advance(BODY_TIMEOUT + Duration::from_secs(1)).await;
    };
    let headers = [GRPC];
    let (response, ()) = tokio::join!(open.raw("Ask", &headers, begun()), time_is_up);
    let refused = status(&response);
    assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, "timed out while reading the body"));
    open.running(0).await;
}

#[tokio::test]
async fn panic_is_an_internal_error_without_details() {
    let server = gated([GOOD], timing::config(), Arc::new(Names)).await;
    let mut client = server.client().await;
    let status = client.ask(with(question(QUESTION), "x-api-key", "boom")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Internal, "an internal error occurred"));
    assert_eq!(problem(&status).code, "internal");
    client.ask(with(question(QUESTION), "x-api-key", "ann")).await.unwrap();
}

#[tokio::test]
async fn keeps_the_request_id_of_the_client() {
    let server = server([GOOD], timing::config()).await;
    for (given, kept) in [("job-7", true), ("a b", false)] {
        let response = server.raw("ListDatabases", &[GRPC, ("x-request-id", given)], framed(b"")).await;
        assert_eq!(response.headers()["x-request-id"] == given, kept);
    }
}

#[tokio::test]
async fn http_and_grpc_share_a_port() {
    let server = server([GOOD], timing::config()).await;
    assert_eq!(server.plain("GET", "/healthz").await, 200);
    server.client().await.ask(question(QUESTION)).await.unwrap();
    assert_eq!(server.plain("POST", "/querymend.v1.Other/Ask").await, 404);
    assert_eq!(server.plain("POST", "/querymend.v1.Querymend/Ask").await, 415);
    assert_eq!(server.plain("GET", "/querymend.v1.Querymend/Ask").await, 415);
}

#[tokio::test]
async fn health_check_reports_serving() {
    let server = server([GOOD], timing::config()).await;
    let mut health = HealthClient::new(server.channel().await);
    for service in ["", "querymend.v1.Querymend"] {
        let request = HealthCheckRequest { service: service.into() };
        let said = health.check(request).await.unwrap().into_inner();
        assert_eq!(said.status(), ServingStatus::Serving, "{service}");
    }
    let unknown = health.check(HealthCheckRequest { service: "other".into() }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
}

#[tokio::test]
async fn reflection_describes_the_service() {
    let server = server([GOOD], timing::config()).await;
    let ask = |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
    let mut client = ServerReflectionClient::new(server.channel().await);
    let mut said = Vec::new();
    for request in [
        MessageRequest::ListServices(String::new()),
        MessageRequest::FileContainingSymbol("querymend.v1.Querymend".into()),
    ] {
        let request = stream::iter([ask(request)]);
        let mut stream = client.server_reflection_info(request).await.unwrap().into_inner();
        said.push(stream.message().await.unwrap().unwrap().message_response.unwrap());
    }
    let MessageResponse::ListServicesResponse(listed) = &said[0] else { panic!("{said:?}") };
    let names: Vec<&str> = listed.service.iter().map(|service| service.name.as_str()).collect();
    assert!(names.contains(&"querymend.v1.Querymend") && names.contains(&"grpc.health.v1.Health"), "{names:?}");
    let MessageResponse::FileDescriptorResponse(files) = &said[1] else { panic!("{said:?}") };
    let file = prost_types::FileDescriptorProto::decode(files.file_descriptor_proto[0].as_slice()).unwrap();
    assert_eq!(file.package(), "querymend.v1");
    let methods: Vec<&str> = file.service[0].method.iter().map(|method| method.name()).collect();
    assert!(methods.contains(&"Ask") && methods.contains(&"AskStream") && methods.len() == 14, "{methods:?}");

    // Older tools ask for the older version.
    use tonic_reflection::pb::v1alpha as older;
    let request = older::server_reflection_request::MessageRequest::ListServices(String::new());
    let request = older::ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let mut client = older::server_reflection_client::ServerReflectionClient::new(server.channel().await);
    let stream = client.server_reflection_info(stream::iter([request])).await;
    assert!(stream.unwrap().into_inner().message().await.unwrap().is_some());
}

#[tokio::test]
async fn shutdown_lets_a_running_question_finish() {
    let server = server([GOOD], timing::config()).await;
    let mut stream = server.client().await.ask_stream(question(QUESTION)).await.unwrap().into_inner();
    server.stop();
    let answered = async {
        while let Some(event) = stream.message().await.unwrap() {
            if let Some(Event::Answer(answer)) = event.event {
                return answer.status();
            }
        }
        panic!("no answer")
    };
    assert_eq!(within("the answer", answered).await, AnswerStatus::Answered);
}
