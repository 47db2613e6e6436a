//! Problem report that protocols can map to their status codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason that there is no answer, in a form that protocols can map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Kind of problem.
    pub code: ProblemCode,
    /// Human-readable description.
    pub message: String,
    /// Suggested action. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Time to wait before a retry, in seconds. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

impl Problem {
    /// Creates a problem without a hint.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, retry_after_s: None }
    }

    /// Sets the suggested action.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Kind of problem that clients can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ProblemCode {
    MaxRetriesExceeded,
    CircuitBreakerOpen,
    PreflightValidationFailed,
    PermissionDeniedNotRetryable,
    BudgetExceeded,
    ModelUnavailable,
    DatabaseUnavailable,
    Cancelled,
    BadRequest,
    Unauthenticated,
    Forbidden,
    NotFound,
    Conflict,
    TooLarge,
    TooManyRequests,
    Unavailable,
    Internal,
    SubjectMissing,
    WriteRefused,
}

impl ProblemCode {
    /// Returns the HTTP status code.
    pub fn http_status(self) -> u16 {
        match self {
            ProblemCode::MaxRetriesExceeded | ProblemCode::BudgetExceeded | ProblemCode::Internal => 500,
            ProblemCode::CircuitBreakerOpen
            | ProblemCode::ModelUnavailable
            | ProblemCode::DatabaseUnavailable
            | ProblemCode::Unavailable => 503,
            ProblemCode::PreflightValidationFailed | ProblemCode::BadRequest => 400,
            ProblemCode::Unauthenticated => 401,
            ProblemCode::PermissionDeniedNotRetryable | ProblemCode::Forbidden | ProblemCode::WriteRefused => 403,
            ProblemCode::NotFound | ProblemCode::SubjectMissing => 404,
            ProblemCode::Conflict => 409,
            ProblemCode::TooLarge => 413,
            ProblemCode::TooManyRequests => 429,
            // The client has disconnected; the status only appears in logs.
            ProblemCode::Cancelled => 499,
        }
    }

    /// Returns the gRPC status code.
    pub fn grpc_status(self) -> &'static str {
        match self {
            ProblemCode::MaxRetriesExceeded => "FAILED_PRECONDITION",
            ProblemCode::BudgetExceeded | ProblemCode::TooManyRequests | ProblemCode::TooLarge => "RESOURCE_EXHAUSTED",
            ProblemCode::Unauthenticated => "UNAUTHENTICATED",
            ProblemCode::NotFound | ProblemCode::SubjectMissing => "NOT_FOUND",
            ProblemCode::Conflict => "ABORTED",
            ProblemCode::Internal => "INTERNAL",
            ProblemCode::CircuitBreakerOpen
            | ProblemCode::ModelUnavailable
            | ProblemCode::DatabaseUnavailable
            | ProblemCode::Unavailable => "UNAVAILABLE",
            ProblemCode::PreflightValidationFailed | ProblemCode::BadRequest => "INVALID_ARGUMENT",
            ProblemCode::PermissionDeniedNotRetryable | ProblemCode::Forbidden | ProblemCode::WriteRefused => {
                "PERMISSION_DENIED"
            }
            ProblemCode::Cancelled => "CANCELLED",
        }
    }
}
