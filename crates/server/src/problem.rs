//! Error responses: problem details (RFC 9457) with the codes shared by all protocols.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use querymend::correction::LocatedFinding;
use querymend::sql_api::QueryError;
use querymend::{Answer, Problem, ProblemCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::wire_name::wire_name;

/// Problem details of an error response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProblemDetails {
    /// URI that identifies the problem type: `urn:querymend:problem:<code>`.
    #[serde(rename = "type")]
    kind: String,
    /// Short summary of the problem type.
    title: String,
    /// HTTP status code of the response.
    status: u16,
    /// Description of this occurrence of the problem.
    detail: String,
    /// Machine-readable problem code.
    code: ProblemCode,
    /// Suggested next step; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Seconds until a retry may succeed; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u64>,
    /// Findings of the review; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<LocatedFinding>,
    /// Partial answer of a question that failed, with its attempts; absent for other problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Box<Answer>>,
}

/// Error response of a handler.
#[derive(Debug)]
pub struct ApiError {
    /// HTTP status that overrides the one of the problem's code.
    status: Option<StatusCode>,
    problem: Problem,
    findings: Vec<LocatedFinding>,
    answer: Option<Box<Answer>>,
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self { status: None, problem, findings: Vec::new(), answer: None }
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        Self { status: None, problem: error.problem, findings: error.findings, answer: None }
    }
}

impl ApiError {
    /// Creates the error of a question that failed, with its partial answer.
    pub fn unanswered(problem: Problem, answer: Answer) -> Self {
        Self { status: None, problem, findings: Vec::new(), answer: Some(Box::new(answer)) }
    }

    /// Overrides the HTTP status, for statuses without a problem code.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Converts the error to its response body.
    pub fn into_details(self) -> ProblemDetails {
        let code = wire_name(&self.problem.code);
        ProblemDetails {
            kind: format!("urn:querymend:problem:{code}"),
            title: code.replace('_', " "),
            status: self.status.map_or(self.problem.code.http_status(), |status| status.as_u16()),
            detail: self.problem.message,
            code: self.problem.code,
            hint: self.problem.hint,
            retry_after_s: self.problem.retry_after_s,
            findings: self.findings,
            answer: self.answer,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let details = self.into_details();
        let status = StatusCode::from_u16(details.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&details).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if details.code == ProblemCode::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let default_wait = matches!(status.as_u16(), 429 | 503).then_some(5);
        if let Some(wait) = details.retry_after_s.or(default_wait) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}
