//! Errors and exit codes of commands.

use std::process::ExitCode;

/// Error of a command, with a hint for fixing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// One sentence that names the affected file or option.
    pub message: String,
    /// Hint for fixing the error.
    pub hint: Option<String>,
    /// Exit status of the command.
    pub status: ExitStatus,
}

impl CliError {
    /// Creates an error without a hint.
    pub fn new(what: impl Into<String>) -> Self {
        Self { message: what.into(), hint: None, status: ExitStatus::Failed }
    }

    /// Creates an error for a command that the user interrupted.
    pub fn interrupted(what: impl Into<String>) -> Self {
        Self { status: ExitStatus::Interrupted, ..Self::new(what) }
    }

    /// Adds a hint for fixing the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<querymend_engine::Error> for CliError {
    fn from(error: querymend_engine::Error) -> Self {
        Self { hint: error.hint().map(str::to_string), ..Self::new(error.to_string()) }
    }
}

impl From<querymend::config::ConfigError> for CliError {
    fn from(error: querymend::config::ConfigError) -> Self {
        Self::new(error.to_string()).hint(error.hint)
    }
}

impl From<querymend_model::Error> for CliError {
    fn from(error: querymend_model::Error) -> Self {
        Self { hint: error.hint().map(str::to_string), ..Self::new(error.to_string()) }
    }
}

impl From<querymend_memory::Error> for CliError {
    fn from(error: querymend_memory::Error) -> Self {
        Self { hint: error.hint().map(str::to_string), ..Self::new(error.to_string()) }
    }
}

impl From<querymend_model::PullError> for CliError {
    fn from(error: querymend_model::PullError) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}

impl From<querymend_net::Error> for CliError {
    fn from(error: querymend_net::Error) -> Self {
        Self::new(error.message).hint(error.hint)
    }
}

/// Exit status of a command, exposed to scripts as the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// The query is approved, or the question is answered.
    Success,
    /// The query is refused by the review or by the database.
    Refused,
    /// The command failed.
    Failed,
    /// The user interrupted the command.
    Interrupted,
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        ExitCode::from(match exit {
            ExitStatus::Success => 0,
            ExitStatus::Refused => 1,
            ExitStatus::Failed => 2,
            ExitStatus::Interrupted => 130,
        })
    }
}
