//! What clients are told when something is refused: RFC 9457, with the codes that all faces share.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use querymend::correct::Placed;
use querymend::direct::NotRun;
use querymend::{Answer, Problem, ProblemCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::service::word;

/// A problem, as it is sent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Told {
    /// A name for the kind of problem.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem.
    title: String,
    /// The status of the response.
    status: u16,
    /// What happened.
    detail: String,
    /// The kind, for programs.
    code: ProblemCode,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// When to try again, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u64>,
    /// What is wrong with the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Placed>,
    /// How far the question came.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Box<Answer>>,
}

/// Why there is nothing else to send.
#[derive(Debug)]
pub struct Refused {
    /// The status, where it is not the one of the problem's code.
    status: Option<StatusCode>,
    problem: Problem,
    findings: Vec<Placed>,
    answer: Option<Box<Answer>>,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { status: None, problem, findings: Vec::new(), answer: None }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        refused.problem
    }
}

impl From<NotRun> for Refused {
    fn from(not: NotRun) -> Self {
        Self { status: None, problem: not.problem, findings: not.findings, answer: None }
    }
}

impl Refused {
    /// A question that has no answer, with how far it came.
    pub fn unanswered(problem: Problem, answer: Answer) -> Self {
        Self { status: None, problem, findings: Vec::new(), answer: Some(Box::new(answer)) }
    }

    /// With a status that no code has.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status: Some(status), ..self }
    }

    /// What is sent.
    pub fn told(self) -> Told {
        let code = word(&self.problem.code);
        Told {
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

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let told = self.told();
        let status = StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&told).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if told.code == ProblemCode::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let soon = matches!(status.as_u16(), 429 | 503).then_some(5);
        if let Some(wait) = told.retry_after_s.or(soon) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}
