//! Why a command could not do what it was asked, and how every command ends.

use std::process::ExitCode;

/// What went wrong and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In one sentence, naming the file or option that it is about.
    pub what: String,
    /// What can be done about it.
    pub hint: Option<String>,
    /// How the command ends for it.
    pub exit: Exit,
}

impl Failure {
    /// A failure that does not yet say what to do about it.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, exit: Exit::Failed }
    }

    /// The user stopped it before it could be done.
    pub fn stopped(what: impl Into<String>) -> Self {
        Self { exit: Exit::Interrupted, ..Self::new(what) }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<querymend_engine::Error> for Failure {
    fn from(error: querymend_engine::Error) -> Self {
        Self { hint: error.hint().map(str::to_string), ..Self::new(error.to_string()) }
    }
}

/// How a command ended; scripts read it as the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The query is approved, the question answered.
    Done,
    /// The query is refused, by the rules or by the database.
    Refused,
    /// The command could not do its work.
    Failed,
    /// The user stopped it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Failed => 2,
            Exit::Interrupted => 130,
        })
    }
}
