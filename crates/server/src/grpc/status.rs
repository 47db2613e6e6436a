//! What clients are told when something is refused: the status, its kind in the metadata, all of it in the details.

use axum::http::Response;
use prost::Message;
use prost_types::Any;
use querymend::correct::Placed;
use querymend::direct::NotRun;
use querymend::{Problem, ProblemCode};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use super::proto;
use crate::service::word;

/// Everything that is said about an error goes into trailers, of which some clients take no more than eight kilobytes.
const LONGEST_MESSAGE: usize = 600;
const LONGEST_HINT: usize = 400;
const LONGEST_DETAILS: usize = 2_000;

/// How gRPC writes what a status has to say besides its code and message (`google.rpc.Status`).
#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// Of a problem.
pub fn refused(problem: Problem) -> Status {
    status(problem, Vec::new(), None)
}

/// Of a query that was not run.
pub fn not_run(not: NotRun) -> Status {
    status(not.problem, not.findings, None)
}

/// Of a question that has no answer.
pub fn unanswered(problem: Problem, trace_id: &str) -> Status {
    status(problem, Vec::new(), Some(trace_id))
}

fn status(problem: Problem, findings: Vec<Placed>, trace_id: Option<&str>) -> Status {
    let code = code(problem.code);
    let message = cut(problem.message.clone(), LONGEST_MESSAGE);
    let hint = cut(problem.hint.clone().unwrap_or_default(), LONGEST_HINT);
    let soon = matches!(problem.code.http_status(), 429 | 503).then_some(5);
    let retry_after_s = problem.retry_after_s.or(soon);
    let kind = word(&problem.code);

    let mut told = proto::Problem {
        code: kind.clone(),
        hint: hint.clone(),
        retry_after_s,
        trace_id: trace_id.unwrap_or_default().to_owned(),
        ..proto::Problem::default()
    };
    for placed in findings {
        let finding = proto::Finding { fixes: Vec::new(), advice: String::new(), ..placed.into() };
        told.findings.push(finding);
        if told.encoded_len() > LONGEST_DETAILS {
            told.findings.pop();
            break;
        }
    }
    let any = Any { type_url: "type.googleapis.com/querymend.v1.Problem".into(), value: told.encode_to_vec() };
    let details = Details { code: code as i32, message: message.clone(), details: vec![any] };

    let mut metadata = MetadataMap::new();
    let mut say = |key: &'static str, value: &str| {
        // Metadata is plain letters; what has others stands in the details alone.
        MetadataValue::try_from(value).ok().and_then(|value| metadata.insert(key, value));
    };
    say("querymend-code", &kind);
    if !hint.is_empty() {
        say("querymend-hint", &hint);
    }
    if let Some(seconds) = retry_after_s {
        say("retry-after", &seconds.to_string());
    }
    if let Some(id) = trace_id {
        say("querymend-trace-id", id);
    }
    Status::with_details_and_metadata(code, message, details.encode_to_vec().into(), metadata)
}

/// What the protocol itself refuses before a method is asked, in our words. Such a refusal has no code of ours.
pub fn refused_by_protocol<B: Default>(response: Response<B>) -> Response<B> {
    if response.headers().contains_key("querymend-code") {
        return response;
    }
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    let code = match status.code() {
        Code::OutOfRange => ProblemCode::TooLarge,
        Code::Internal => ProblemCode::BadRequest,
        _ => return response,
    };
    refused(Problem::new(code, status.message())).into_http()
}

fn code(code: ProblemCode) -> Code {
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

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most - '…'.len_utf8()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use querymend_sql::{Finding, Severity, Span};

    #[test]
    fn l10_no_problem_is_too_long_for_trailers() {
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
        let placed = Placed { finding, line: 1, column: 1, end_line: 1, end_column: 2 };
        let problem = Problem::new(ProblemCode::PreflightValidationFailed, "日".repeat(9_000)).hint("h".repeat(9_000));
        let told = not_run(NotRun { problem, findings: vec![placed; 50] });
        let mut headers = axum::http::HeaderMap::new();
        told.add_header(&mut headers).unwrap();
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum();
        assert!(bytes < 8_000, "{bytes}");
        let details = Details::decode(told.details()).unwrap();
        let problem = proto::Problem::decode(details.details[0].value.as_slice()).unwrap();
        assert!(!problem.findings.is_empty() && problem.findings.len() < 50);
        assert_eq!((details.code, details.message.as_str()), (told.code() as i32, told.message()));
        assert!(told.message().ends_with("日…"));
    }
}
