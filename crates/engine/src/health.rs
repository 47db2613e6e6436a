//! Results of health checks of a connection.

/// Status of a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    /// The check passed.
    Passed,
    /// The connection works but could be safer.
    Warning,
    /// The check failed.
    Failed,
}

/// Result of one health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// Short name of the check: "connection", "read-only", "rights".
    pub name: &'static str,
    /// Status of the check.
    pub status: CheckStatus,
    /// Observation that led to the status.
    pub detail: String,
    /// Suggested remedy, if there is one.
    pub hint: Option<String>,
}

impl HealthCheck {
    /// Creates a check that passed.
    pub fn passed(what: &'static str, seen: impl Into<String>) -> Self {
        Self { name: what, status: CheckStatus::Passed, detail: seen.into(), hint: None }
    }

    /// Creates a check with a warning.
    pub fn warning(what: &'static str, seen: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name: what, status: CheckStatus::Warning, detail: seen.into(), hint: Some(hint.into()) }
    }

    /// Creates a check that failed.
    pub fn failed(what: &'static str, seen: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name: what, status: CheckStatus::Failed, detail: seen.into(), hint: Some(hint.into()) }
    }
}
