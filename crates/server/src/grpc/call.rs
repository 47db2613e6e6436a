//! One call: who sends it, its message in full and in time, and then the method that it names.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response as HttpResponse};
use querymend::correct::Correct;
use querymend::{Cancel, Problem, ProblemCode};
use querymend_sql::Applicability;
use serde_json::Value;
use tonic::{Request as Given, Response, Status};
use tower::Service as _;

use super::proto::querymend_server::{Querymend, QuerymendServer};
use super::proto::*;
use super::status::{refused, refused_by_protocol};
use super::stream::Told;
use super::{ask, run, sql};
use crate::http::{Caller, Refused, read};
use crate::service::{QueryText, Service};

/// Before every message there is one byte that says whether it is compressed, and four with its length.
const PREFIX: usize = 5;

/// A call whose sender is known.
pub struct Call {
    service: Arc<Service>,
    caller: Arc<Caller>,
}

/// Answers a call.
pub async fn answer(service: Arc<Service>, request: Request) -> HttpResponse {
    if !is_grpc(request.headers()) {
        return not_grpc();
    }
    let deadline = deadline(request.headers());
    let answered = answer_in_time(service, request);
    match deadline {
        None => answered.await,
        Some(deadline) => tokio::time::timeout(deadline, answered)
            .await
            .unwrap_or_else(|_| Status::deadline_exceeded("the time that the call gave is up").into_http()),
    }
}

async fn answer_in_time(service: Arc<Service>, request: Request) -> HttpResponse {
    let (mut head, body) = request.into_parts();
    let caller = match Caller::from_request_parts(&mut head, &service).await {
        Ok(caller) => Arc::new(caller),
        Err(problem) => return refused(problem.into()).into_http(),
    };
    let request_id = HeaderValue::from_str(&caller.request_id);
    let most = service.body_bytes();
    // Every method takes one message, so that a call can be read in full before anybody works on it, as HTTP has it.
    let mut response = match read(body, most + PREFIX).await {
        Ok(message) => {
            let mut server = QuerymendServer::new(Call { service, caller }).max_decoding_message_size(most);
            let request = Request::from_parts(head, Body::from(message));
            // It cannot fail: what is refused is a response too.
            let Ok(response) = server.call(request).await;
            refused_by_protocol(response).map(Body::new)
        }
        Err(problem) => refused(problem.into()).into_http(),
    };
    request_id.ok().and_then(|id| response.headers_mut().insert("x-request-id", id));
    response
}

/// Browsers send other kinds to other servers without asking first whether they may; this one they do not.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    matches!(kind.split(';').next().unwrap_or_default().trim(), "application/grpc" | "application/grpc+proto")
}

fn not_grpc() -> HttpResponse {
    let problem = Problem::new(ProblemCode::BadRequest, "this address takes gRPC (Content-Type: application/grpc)");
    Refused::from(problem).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE).into_response()
}

/// How long the sender waits: digits and a unit. What cannot be read is not heeded, as the protocol's own servers have it.
fn deadline(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3_600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

/// What is left empty counts as not given.
pub fn given(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Querymend for Call {
    type AskStreamStream = Told<AskEvent>;
    type RunStream = Told<RunPage>;

    async fn ask(&self, request: Given<AskRequest>) -> Answered<Answer> {
        let (service, caller) = (Arc::clone(&self.service), Arc::clone(&self.caller));
        ask::ask(service, caller, request.into_inner()).await.map(Response::new)
    }

    async fn ask_stream(&self, request: Given<AskRequest>) -> Answered<Told<AskEvent>> {
        let (service, caller) = (Arc::clone(&self.service), Arc::clone(&self.caller));
        Ok(Response::new(ask::stream(service, caller, request.into_inner())))
    }

    async fn correct(&self, request: Given<CorrectRequest>) -> Answered<CorrectResponse> {
        let mut asked = to_correct(request.into_inner()).map_err(refused)?;
        let cancel = Cancel::new();
        let database = asked.database.take();
        let corrected = self.service.correct(&self.caller.asking(), database.as_deref(), asked, true, &cancel).await;
        corrected.map(|corrected| Response::new(corrected.into())).map_err(refused)
    }

    async fn check(&self, request: Given<CheckRequest>) -> Answered<CheckResponse> {
        let CheckRequest { sql, database, question } = request.into_inner();
        let query = QueryText { sql, database: given(database), question: given(question), max_rows: None };
        let checked = self.service.check(&self.caller.asking(), &query).await.map_err(refused)?;
        Ok(Response::new(checked.into()))
    }

    async fn run(&self, request: Given<RunRequest>) -> Answered<Told<RunPage>> {
        let (service, caller) = (Arc::clone(&self.service), Arc::clone(&self.caller));
        Ok(Response::new(run::stream(service, caller, request.into_inner())))
    }

    async fn schema(&self, request: Given<SchemaRequest>) -> Answered<SchemaResponse> {
        let database = given(request.into_inner().database);
        let schema = self.service.schema(&self.caller.user, database.as_deref()).await.map_err(refused)?;
        Ok(Response::new(SchemaResponse { tables: schema.tables().iter().map(sql::table).collect() }))
    }

    async fn list_databases(&self, _: Given<ListDatabasesRequest>) -> Answered<ListDatabasesResponse> {
        let databases = self.service.databases(&self.caller.user).into_iter();
        let databases = databases.map(|d| Database { name: d.name, dialect: d.dialect.to_owned() }).collect();
        Ok(Response::new(ListDatabasesResponse { databases }))
    }

    async fn begin_session(&self, request: Given<BeginSessionRequest>) -> Answered<Session> {
        let database = given(request.into_inner().database);
        let talk = self.service.begin(&self.caller.user, database.as_deref()).await.map_err(refused)?;
        Ok(Response::new(talk.into()))
    }

    async fn get_session(&self, request: Given<GetSessionRequest>) -> Answered<Session> {
        let talk = self.service.talk(&self.caller.user, &request.into_inner().session_id).await.map_err(refused)?;
        Ok(Response::new(talk.into()))
    }

    async fn forget_session(&self, request: Given<ForgetSessionRequest>) -> Answered<ForgetSessionResponse> {
        self.service.forget(&self.caller.user, &request.into_inner().session_id).await.map_err(refused)?;
        Ok(Response::new(ForgetSessionResponse {}))
    }

    async fn list_session_errors(
        &self,
        request: Given<ListSessionErrorsRequest>,
    ) -> Answered<ListSessionErrorsResponse> {
        let session = request.into_inner().session_id;
        let errors = self.service.session_errors(&self.caller.user, &session).await.map_err(refused)?;
        Ok(Response::new(ListSessionErrorsResponse { errors: errors.into_iter().map(Into::into).collect() }))
    }

    async fn clear_session_errors(
        &self,
        request: Given<ClearSessionErrorsRequest>,
    ) -> Answered<ClearSessionErrorsResponse> {
        let session = request.into_inner().session_id;
        self.service.clear_session_errors(&self.caller.user, &session).await.map_err(refused)?;
        Ok(Response::new(ClearSessionErrorsResponse {}))
    }

    async fn get_breakers(&self, _: Given<GetBreakersRequest>) -> Answered<GetBreakersResponse> {
        let stats = self.service.breakers(&self.caller.user).map_err(refused)?;
        Ok(Response::new(GetBreakersResponse { breakers: stats.into_iter().map(Breaker::from).collect() }))
    }

    async fn reset_breakers(&self, request: Given<ResetBreakersRequest>) -> Answered<ResetBreakersResponse> {
        let tool = given(request.into_inner().tool);
        self.service.reset(&self.caller.asking(), tool.as_deref()).await.map_err(refused)?;
        Ok(Response::new(ResetBreakersResponse {}))
    }
}

fn to_correct(request: CorrectRequest) -> Result<Correct, Problem> {
    let apply = match super::proto::Applicability::try_from(request.apply) {
        Ok(super::proto::Applicability::Safe) => Applicability::Safe,
        Ok(super::proto::Applicability::Unspecified | super::proto::Applicability::Likely) => Applicability::Likely,
        Ok(super::proto::Applicability::Suggested) => Applicability::Suggested,
        Err(_) => return Err(Problem::new(ProblemCode::BadRequest, "`apply` is none of the values of Applicability")),
    };
    // What is no object is CREATE TABLE text, and is read as such.
    let tables = |text: String| match serde_json::from_str::<Value>(&text) {
        Ok(object @ Value::Object(_)) => object,
        _ => Value::String(text),
    };
    Ok(Correct {
        database: given(request.database),
        error_message: given(request.error_message),
        last_error: given(request.last_error),
        schema_context: given(request.schema_context).map(tables),
        dialect: given(request.dialect),
        retry_count: request.retry_count,
        question: given(request.question),
        evidence: given(request.evidence),
        apply,
        session_id: given(request.session_id),
        user_id: given(request.user_id),
        ..Correct::new(request.original_query)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l09_a_deadline_is_digits_and_a_unit() {
        let read = |text: &'static str| {
            deadline(&HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), HeaderValue::from_static(text))]))
        };
        for (text, time) in [
            ("1S", Some(Duration::from_secs(1))),
            ("250m", Some(Duration::from_millis(250))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
            ("7u", Some(Duration::from_micros(7))),
            ("0n", Some(Duration::ZERO)),
            ("", None),
            ("S", None),
            ("1", None),
            ("1x", None),
            ("+1S", None),
            ("999999999S", None),
        ] {
            assert_eq!(read(text), time, "{text}");
        }
        assert_eq!(deadline(&HeaderMap::new()), None);
    }
}
