//! Every way to be refused, and how the status says it.

use std::sync::Arc;
use std::time::Instant;

use ::querymend_server::grpc::proto::*;
use querymend_model::{self as model, ScriptedReply};
use querymend_sql::Policy;
use tonic::{Code, Status};

use super::support::{GOOD, Names, QUESTION, Server, gated, problem, question, server, with};
use crate::timing::{self, most_admitted, within};

async fn refused(server: &Server, text: &str) -> Status {
    server.client().await.ask(question(text)).await.unwrap_err()
}

#[tokio::test]
async fn exhausted_attempts_are_failed_precondition() {
    let drafts = ["SELECT flurb FROM products", "SELECT blorp FROM products", "SELECT wibble FROM products"];
    let server = server(drafts, timing::config().with_fallback(false)).await;
    let status = refused(&server, QUESTION).await;
    let told = problem(&status);
    assert_eq!((status.code(), told.code.as_str()), (Code::FailedPrecondition, "max_retries_exceeded"));
    assert_eq!((told.trace_id.len(), told.retry_after_s), (36, None));
    assert_eq!(status.metadata().get("querymend-trace-id").unwrap().to_str().unwrap(), told.trace_id);
    assert!(told.hint.contains("rephrase the question"), "{told:?}");
    assert_eq!(status.metadata().get("querymend-hint").unwrap().to_str().unwrap(), told.hint);
}

#[tokio::test]
async fn open_breaker_is_unavailable_with_retry_delay() {
    let down = || {
        ScriptedReply::Fail(model::Error::Unreachable {
            model: "script".into(),
            message: "connection refused".into(),
            transient: false,
        })
    };
    let server = server((0..20).map(|_| down()), timing::config()).await;
    let mut codes = Vec::new();
    for _ in 0..7 {
        let status = refused(&server, QUESTION).await;
        assert_eq!(status.code(), Code::Unavailable);
        let told = problem(&status);
        assert!(told.retry_after_s.is_some(), "{told:?}");
        codes.push(told.code);
    }
    assert_eq!((codes[0].as_str(), codes[6].as_str()), ("model_unavailable", "circuit_breaker_open"));

    // It is seen, and closed by hand.
    let mut client = server.client().await;
    let breakers = client.get_breakers(GetBreakersRequest {}).await.unwrap().into_inner().breakers;
    let open = breakers.iter().find(|breaker| breaker.state() == BreakerState::Open).unwrap();
    assert!(open.tool.contains("script") && open.retry_after_ms > 0 && open.opens == 1, "{open:?}");
    let tool = open.tool.clone();
    client.reset_breakers(ResetBreakersRequest { tool }).await.unwrap();
    let breakers = client.get_breakers(GetBreakersRequest {}).await.unwrap().into_inner().breakers;
    assert!(breakers.iter().all(|breaker| breaker.state() == BreakerState::Closed), "{breakers:?}");
    let unknown = client.reset_breakers(ResetBreakersRequest { tool: "nobody".into() }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test]
async fn review_rejection_is_invalid_argument_with_findings() {
    let server = server(["DROP TABLE products"], timing::config().with_self_correction(false)).await;
    let status = refused(&server, QUESTION).await;
    assert_eq!((status.code(), problem(&status).code.as_str()), (Code::InvalidArgument, "preflight_validation_failed"));

    for (sql, finding) in [("SELECT nope FROM products", "unknown-column"), ("DROP TABLE products", "writes-data")] {
        let request = RunRequest { sql: sql.into(), ..RunRequest::default() };
        let mut pages = server.client().await.run(request).await.unwrap().into_inner();
        let status = pages.message().await.unwrap_err();
        let told = problem(&status);
        assert_eq!(
            (status.code(), told.code.as_str()),
            (Code::InvalidArgument, "preflight_validation_failed"),
            "{sql}"
        );
        assert_eq!(told.findings[0].code, finding, "{sql}");
        assert!(told.findings[0].place.is_some());
    }
}

#[tokio::test]
async fn denied_table_is_permission_denied() {
    let policy = Policy { deny_tables: vec!["customers".into()], ..Policy::default() };
    let server = server(["SELECT email FROM customers"], timing::config().with_policy(policy)).await;
    let status = refused(&server, "Which customers are there?").await;
    let told = problem(&status);
    assert_eq!((status.code(), told.code.as_str()), (Code::PermissionDenied, "permission_denied_not_retryable"));
}

#[tokio::test]
async fn reports_not_found_and_invalid_arguments() {
    let server = server([GOOD], timing::config()).await;
    let mut client = server.client().await;
    let nowhere = AskRequest { database: "nowhere".into(), ..question(QUESTION) };
    let status = client.ask(nowhere.clone()).await.unwrap_err();
    assert_eq!((status.code(), problem(&status).hint.as_str()), (Code::NotFound, "available databases: shop"));
    // A stream says the same, and nothing before it.
    let status = client.ask_stream(nowhere).await.unwrap().into_inner().message().await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let session = AskRequest { session_id: "none".into(), ..question(QUESTION) };
    assert_eq!(client.ask(session).await.unwrap_err().code(), Code::NotFound);
    let status = client.ask(question(&"why ".repeat(10_000))).await.unwrap_err();
    assert_eq!((status.code(), problem(&status).code.as_str()), (Code::InvalidArgument, "bad_request"));
    let status = client.ask(question("  ")).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
}

#[tokio::test]
async fn rejects_unknown_users_and_isolates_known_ones() {
    let server = gated([GOOD, GOOD], timing::config(), Arc::new(Names)).await;
    let mut client = server.client().await;
    for status in [
        client.ask(question(QUESTION)).await.unwrap_err(),
        client.ask(with(question(QUESTION), "authorization", "Bearer eve")).await.unwrap_err(),
        client.ask_stream(with(question(QUESTION), "x-api-key", "eve")).await.unwrap_err(),
        client.list_databases(ListDatabasesRequest {}).await.unwrap_err(),
    ] {
        assert_eq!((status.code(), problem(&status).code.as_str()), (Code::Unauthenticated, "unauthenticated"));
    }
    client.ask(with(question(QUESTION), "x-api-key", "ann")).await.unwrap();
    let begin = with(CreateSessionRequest::default(), "authorization", "Bearer ann");
    let session_id = client.create_session(begin).await.unwrap().into_inner().session_id;
    let of = |user: &str| with(GetSessionRequest { session_id: session_id.clone() }, "x-api-key", user);
    assert_eq!(client.get_session(of("bob")).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(client.get_session(of("root")).await.unwrap_err().code(), Code::NotFound);
    client.get_session(of("ann")).await.unwrap();
    let theirs = AskRequest { session_id: session_id.clone(), ..question(QUESTION) };
    assert_eq!(client.ask(with(theirs, "x-api-key", "bob")).await.unwrap_err().code(), Code::NotFound);

    let breakers = client.get_breakers(with(GetBreakersRequest {}, "x-api-key", "ann")).await.unwrap_err();
    assert_eq!((breakers.code(), problem(&breakers).code.as_str()), (Code::PermissionDenied, "forbidden"));
    client.get_breakers(with(GetBreakersRequest {}, "x-api-key", "root")).await.unwrap();
    // What a request says about its user is not believed.
    let asked = CorrectRequest { original_query: GOOD.into(), user_id: "root".into(), ..CorrectRequest::default() };
    let corrected = client.correct(with(asked, "x-api-key", "ann")).await.unwrap().into_inner();
    assert_eq!(corrected.user_id, "ann");
}

#[tokio::test]
async fn rate_limit_is_resource_exhausted_with_retry_delay() {
    let mut config = timing::config();
    config.server.limits.requests_per_minute = 2;
    let server = server([GOOD; 1_000], config).await;
    let mut client = server.client().await;
    let begun = Instant::now();
    let mut admitted = 0;
    let asking = async {
        loop {
            match client.ask(question(QUESTION)).await {
                Ok(_) => admitted += 1,
                Err(status) => return status,
            }
        }
    };
    let status = within("too many", asking).await;
    assert!((2..=most_admitted(2, begun)).contains(&admitted), "{admitted}");
    let told = problem(&status);
    assert_eq!((status.code(), told.code.as_str()), (Code::ResourceExhausted, "too_many_requests"));
    assert!((1..=30).contains(&told.retry_after_s.unwrap()));
}
