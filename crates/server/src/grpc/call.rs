//! Handling of one call: authentication, deadline, reading the message, dispatch to the method.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response as HttpResponse};
use querymend::correction::CorrectionRequest;
use querymend::{CancellationToken, Problem, ProblemCode};
use querymend_sql::Applicability;
use serde_json::Value;
use tonic::{Request as RpcRequest, Response, Status};
use tower::Service as _;

use super::fields::non_empty;
use super::proto::querymend_server::{Querymend, QuerymendServer};
use super::proto::*;
use super::status::{map_protocol_error, problem_status};
use super::stream::ResponseStream;
use super::{ask, messages, run};
use crate::caller::Caller;
use crate::problem::ApiError;
use crate::request_body::read_body;
use crate::service::{Service, SqlRequest};

/// Length of the prefix of every message: one byte for the compression flag, four for the length.
const MESSAGE_PREFIX_BYTES: usize = 5;

/// Call of an authenticated caller.
pub struct GrpcCall {
    service: Arc<Service>,
    caller: Arc<Caller>,
}

/// Handles a call.
pub async fn handle(service: Arc<Service>, request: Request) -> HttpResponse {
    if !is_grpc(request.headers()) {
        return not_grpc();
    }
    let deadline = deadline(request.headers());
    let response = handle_call(service, request);
    match deadline {
        None => response.await,
        Some(deadline) => tokio::time::timeout(deadline, response)
            .await
            .unwrap_or_else(|_| Status::deadline_exceeded("the deadline of the call has passed").into_http()),
    }
}

async fn handle_call(service: Arc<Service>, request: Request) -> HttpResponse {
    let (head, body) = request.into_parts();
    let caller = match Caller::from_parts(&head, &service).await {
        Ok(caller) => Arc::new(caller),
        Err(problem) => return problem_status(problem).into_http(),
    };
    let request_id = HeaderValue::from_str(&caller.request_id);
    let max_bytes = service.max_body_bytes();
    // All methods are unary or server-streaming, so the message can be read in full before
    // dispatch, as in HTTP.
    let mut response = match read_body(body, max_bytes + MESSAGE_PREFIX_BYTES).await {
        Ok(message) => {
            let mut server = QuerymendServer::new(GrpcCall { service, caller }).max_decoding_message_size(max_bytes);
            let request = Request::from_parts(head, Body::from(message));
            // Infallible: a rejection is a response too.
            let Ok(response) = server.call(request).await;
            map_protocol_error(response).map(Body::new)
        }
        Err(problem) => problem_status(problem).into_http(),
    };
    request_id.ok().and_then(|id| response.headers_mut().insert("x-request-id", id));
    response
}

/// Returns whether a request is gRPC by its content type.
///
/// This content type requires a CORS preflight, which prevents CSRF from browsers.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    matches!(kind.split(';').next().unwrap_or_default().trim(), "application/grpc" | "application/grpc+proto")
}

fn not_grpc() -> HttpResponse {
    let problem =
        Problem::new(ProblemCode::BadRequest, "this endpoint accepts gRPC only (Content-Type: application/grpc)");
    ApiError::from(problem).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE).into_response()
}

/// Parses `grpc-timeout`: digits and a unit.
///
/// Invalid values are ignored, as in the reference implementations.
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

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Querymend for GrpcCall {
    type AskStreamStream = ResponseStream<AskEvent>;
    type RunStream = ResponseStream<RunPage>;

    async fn ask(&self, request: RpcRequest<AskRequest>) -> RpcResult<Answer> {
        let (service, caller) = (Arc::clone(&self.service), Arc::clone(&self.caller));
        ask::ask(service, caller, request.into_inner()).await.map(Response::new)
    }

    async fn ask_stream(&self, request: RpcRequest<AskRequest>) -> RpcResult<ResponseStream<AskEvent>> {
        let (service, caller) = (Arc::clone(&self.service), Arc::clone(&self.caller));
        Ok(Response::new(ask::stream(service, caller, request.into_inner())))
    }

    async fn correct(&self, request: RpcRequest<CorrectRequest>) -> RpcResult<CorrectResponse> {
        let mut correction = to_correct_request(request.into_inner()).map_err(problem_status)?;
        let cancel = CancellationToken::new();
        let database = correction.database.take();
        let corrected =
            self.service.correct(&self.caller.context(), database.as_deref(), correction, true, &cancel).await;
        corrected.map(|corrected| Response::new(corrected.into())).map_err(problem_status)
    }

    async fn check(&self, request: RpcRequest<CheckRequest>) -> RpcResult<CheckResponse> {
        let CheckRequest { sql, database, question } = request.into_inner();
        let query = SqlRequest { sql, database: non_empty(database), question: non_empty(question), max_rows: None };
        let checked = self.service.check(&self.caller.context(), &query).await.map_err(problem_status)?;
        Ok(Response::new(checked.into()))
    }

    async fn run(&self, request: RpcRequest<RunRequest>) -> RpcResult<ResponseStream<RunPage>> {
        let (service, caller) = (Arc::clone(&self.service), Arc::clone(&self.caller));
        Ok(Response::new(run::stream(service, caller, request.into_inner())))
    }

    async fn schema(&self, request: RpcRequest<SchemaRequest>) -> RpcResult<SchemaResponse> {
        let database = non_empty(request.into_inner().database);
        let schema = self.service.schema(&self.caller.user, database.as_deref()).await.map_err(problem_status)?;
        Ok(Response::new(SchemaResponse { tables: schema.tables().iter().map(messages::table).collect() }))
    }

    async fn list_databases(&self, _: RpcRequest<ListDatabasesRequest>) -> RpcResult<ListDatabasesResponse> {
        let databases = self.service.databases(&self.caller.user).into_iter();
        let databases = databases.map(|d| Database { name: d.name, dialect: d.dialect.to_owned() }).collect();
        Ok(Response::new(ListDatabasesResponse { databases }))
    }

    async fn create_session(&self, request: RpcRequest<CreateSessionRequest>) -> RpcResult<Session> {
        let database = non_empty(request.into_inner().database);
        let session =
            self.service.create_session(&self.caller.user, database.as_deref()).await.map_err(problem_status)?;
        Ok(Response::new(session.into()))
    }

    async fn get_session(&self, request: RpcRequest<GetSessionRequest>) -> RpcResult<Session> {
        let session =
            self.service.session(&self.caller.user, &request.into_inner().session_id).await.map_err(problem_status)?;
        Ok(Response::new(session.into()))
    }

    async fn delete_session(&self, request: RpcRequest<DeleteSessionRequest>) -> RpcResult<DeleteSessionResponse> {
        self.service
            .delete_session(&self.caller.user, &request.into_inner().session_id)
            .await
            .map_err(problem_status)?;
        Ok(Response::new(DeleteSessionResponse {}))
    }

    async fn list_session_errors(
        &self,
        request: RpcRequest<ListSessionErrorsRequest>,
    ) -> RpcResult<ListSessionErrorsResponse> {
        let session = request.into_inner().session_id;
        let errors = self.service.session_errors(&self.caller.user, &session).await.map_err(problem_status)?;
        Ok(Response::new(ListSessionErrorsResponse { errors: errors.into_iter().map(Into::into).collect() }))
    }

    async fn clear_session_errors(
        &self,
        request: RpcRequest<ClearSessionErrorsRequest>,
    ) -> RpcResult<ClearSessionErrorsResponse> {
        let session = request.into_inner().session_id;
        self.service.clear_session_errors(&self.caller.user, &session).await.map_err(problem_status)?;
        Ok(Response::new(ClearSessionErrorsResponse {}))
    }

    async fn get_breakers(&self, _: RpcRequest<GetBreakersRequest>) -> RpcResult<GetBreakersResponse> {
        let stats = self.service.breakers(&self.caller.user).map_err(problem_status)?;
        Ok(Response::new(GetBreakersResponse { breakers: stats.into_iter().map(Breaker::from).collect() }))
    }

    async fn reset_breakers(&self, request: RpcRequest<ResetBreakersRequest>) -> RpcResult<ResetBreakersResponse> {
        let tool = non_empty(request.into_inner().tool);
        self.service.reset_breakers(&self.caller.context(), tool.as_deref()).await.map_err(problem_status)?;
        Ok(Response::new(ResetBreakersResponse {}))
    }
}

fn to_correct_request(request: CorrectRequest) -> Result<CorrectionRequest, Problem> {
    let apply = match super::proto::Applicability::try_from(request.apply) {
        Ok(super::proto::Applicability::Safe) => Applicability::Safe,
        Ok(super::proto::Applicability::Unspecified | super::proto::Applicability::Likely) => Applicability::Likely,
        Ok(super::proto::Applicability::Suggested) => Applicability::Suggested,
        Err(_) => return Err(Problem::new(ProblemCode::BadRequest, "`apply` is not a value of Applicability")),
    };
    // Anything but a JSON object is parsed as CREATE TABLE text.
    let tables = |text: String| match serde_json::from_str::<Value>(&text) {
        Ok(object @ Value::Object(_)) => object,
        _ => Value::String(text),
    };
    Ok(CorrectionRequest {
        database: non_empty(request.database),
        error_message: non_empty(request.error_message),
        last_error: non_empty(request.last_error),
        schema_context: non_empty(request.schema_context).map(tables),
        dialect: non_empty(request.dialect),
        retry_count: request.retry_count,
        question: non_empty(request.question),
        evidence: non_empty(request.evidence),
        apply,
        session_id: non_empty(request.session_id),
        user_id: non_empty(request.user_id),
        ..CorrectionRequest::new(request.original_query)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_grpc_timeouts() {
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
