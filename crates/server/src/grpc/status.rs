//! Conversion of problems to gRPC statuses.
//!
//! The problem code is in the metadata, the full problem in the details.

use axum::http::Response;
use prost::Message;
use prost_types::Any;
use querymend::correction::LocatedFinding;
use querymend::sql_api::QueryError;
use querymend::{Problem, ProblemCode};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use super::proto;
use crate::wire_name::wire_name;

/// Maximum size of the status message, in bytes. Errors travel in trailers, which some clients
/// limit to 8 KB in total.
const MAX_MESSAGE_BYTES: usize = 600;
const MAX_HINT_BYTES: usize = 400;
const MAX_DETAILS_BYTES: usize = 2_000;

/// `google.rpc.Status`, which carries the error details of a gRPC status.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// Returns the status of a problem.
pub fn problem_status(problem: Problem) -> Status {
    build_status(problem, Vec::new(), None)
}

/// Returns the status of a query that was not executed.
pub fn query_error_status(error: QueryError) -> Status {
    build_status(error.problem, error.findings, None)
}

/// Returns the status of a question that could not be answered.
pub fn unanswered_status(problem: Problem, trace_id: &str) -> Status {
    build_status(problem, Vec::new(), Some(trace_id))
}

fn build_status(problem: Problem, findings: Vec<LocatedFinding>, trace_id: Option<&str>) -> Status {
    let code = grpc_code(problem.code);
    let message = truncate_text(problem.message.clone(), MAX_MESSAGE_BYTES);
    let hint = truncate_text(problem.hint.clone().unwrap_or_default(), MAX_HINT_BYTES);
    let default_wait = matches!(problem.code.http_status(), 429 | 503).then_some(5);
    let retry_after_s = problem.retry_after_s.or(default_wait);
    let kind = wire_name(&problem.code);

    let mut details_message = proto::Problem {
        code: kind.clone(),
        hint: hint.clone(),
        retry_after_s,
        trace_id: trace_id.unwrap_or_default().to_owned(),
        ..proto::Problem::default()
    };
    for located in findings {
        let finding = proto::Finding { fixes: Vec::new(), advice: String::new(), ..located.into() };
        details_message.findings.push(finding);
        if details_message.encoded_len() > MAX_DETAILS_BYTES {
            details_message.findings.pop();
            break;
        }
    }
    let any =
        Any { type_url: "type.googleapis.com/querymend.v1.Problem".into(), value: details_message.encode_to_vec() };
    let details = RpcStatus { code: code as i32, message: message.clone(), details: vec![any] };

    let mut metadata = MetadataMap::new();
    let mut insert = |key: &'static str, value: &str| {
        // Metadata values are ASCII; other text is in the details only.
        MetadataValue::try_from(value).ok().and_then(|value| metadata.insert(key, value));
    };
    insert("querymend-code", &kind);
    if !hint.is_empty() {
        insert("querymend-hint", &hint);
    }
    if let Some(seconds) = retry_after_s {
        insert("retry-after", &seconds.to_string());
    }
    if let Some(id) = trace_id {
        insert("querymend-trace-id", id);
    }
    Status::with_details_and_metadata(code, message, details.encode_to_vec().into(), metadata)
}

/// Converts errors of the protocol layer, which have no problem code, to problem statuses.
pub fn map_protocol_error<B: Default>(response: Response<B>) -> Response<B> {
    if response.headers().contains_key("querymend-code") {
        return response;
    }
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    let code = match status.code() {
        Code::OutOfRange => ProblemCode::TooLarge,
        Code::Internal => ProblemCode::BadRequest,
        _ => return response,
    };
    problem_status(Problem::new(code, status.message())).into_http()
}

fn grpc_code(code: ProblemCode) -> Code {
    match code.grpc_status() {
        "CANCELLED" => Code::Cancelled,
        "INVALID_ARGUMENT" => Code::InvalidArgument,
        "NOT_FOUND" => Code::NotFound,
        "PERMISSION_DENIED" => Code::PermissionDenied,
        "RESOURCE_EXHAUSTED" => Code::ResourceExhausted,
        "FAILED_PRECONDITION" => Code::FailedPrecondition,
        "ABORTED" => Code::Aborted,
        "INTERNAL" => Code::Internal,
        "UNAVAILABLE" => Code::Unavailable,
        "UNAUTHENTICATED" => Code::Unauthenticated,
        _ => Code::Unknown,
    }
}

fn truncate_text(mut text: String, max_bytes: usize) -> String {
    if text.len() > max_bytes {
        text.truncate(text.floor_char_boundary(max_bytes - '…'.len_utf8()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use querymend_sql::{Finding, Severity, Span};

    #[test]
    fn problems_fit_into_trailers() {
        let finding = Finding {
            code: "unknown-column",
            severity: Severity::Error,
            message: "ä".repeat(200),
            subject: "s".repeat(200),
            span: Span::new(0, 1),
            suggestion: None,
            evidence: vec!["e".repeat(500)],
            advice: "a".repeat(5_000),
            fixes: Vec::new(),
            proofs: Vec::new(),
        };
        let located = LocatedFinding { finding, line: 1, column: 1, end_line: 1, end_column: 2 };
        let problem = Problem::new(ProblemCode::PreflightValidationFailed, "日".repeat(9_000)).hint("h".repeat(9_000));
        let status = query_error_status(QueryError { problem, findings: vec![located; 50] });
        let mut headers = axum::http::HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(bytes < 8_000, "{bytes}");
        let details = RpcStatus::decode(status.details()).unwrap();
        let problem = proto::Problem::decode(details.details[0].value.as_slice()).unwrap();
        assert!(!problem.findings.is_empty() && problem.findings.len() < 50);
        assert_eq!((details.code, details.message.as_str()), (status.code() as i32, status.message()));
        assert!(status.message().ends_with("日…"));
    }
}
