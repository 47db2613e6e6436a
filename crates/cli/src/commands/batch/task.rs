//! Interface between a batch and the task that processes its lines.

use std::sync::Arc;

use querymend_sql::{Dialect, Finding, Policy, ReviewContext, Severity, Span};
use serde::Serialize;

use crate::args::schema_source::LoadedSchema;
use crate::error::CliError;

/// Task of a batch, shared by all threads.
pub trait BatchTask: Send + Sync + 'static {
    /// Possible outcomes of a line, in the order in which the summary lists them.
    const OUTCOMES: &'static [&'static str];

    /// State that a worker thread keeps between lines and does not share.
    type WorkerState;

    /// Creates the state of a worker thread.
    fn new_state(&self) -> Self::WorkerState;

    /// Processes a line. An error means that the line could not be processed.
    fn run(&self, asked: &TaskInput<'_>, tools: &mut Self::WorkerState)
    -> Result<TaskOutput<impl Serialize>, CliError>;

    /// Returns the answer to a line that could not be processed; the error is added to it.
    fn error_output(&self, sql: &str) -> impl Serialize;
}

/// Parsed line, with everything needed to process it.
pub struct TaskInput<'a> {
    /// Raw line, for fields that only one task reads.
    pub line: &'a str,
    /// SQL of the line.
    pub sql: &'a str,
    /// Question that the query should answer, with its evidence.
    pub question: Option<String>,
    /// Schema that the query is checked against.
    pub loaded: Arc<LoadedSchema>,
    /// Dialect of the line.
    pub dialect: &'static Dialect,
    /// Access policy.
    pub policy: &'a Policy,
}

impl TaskInput<'_> {
    /// Returns the context for a review.
    pub fn context(&self) -> ReviewContext<'_> {
        ReviewContext {
            schema: self.loaded.schema.as_ref(),
            dialect: self.dialect,
            policy: self.policy,
            question: self.question.as_deref(),
        }
    }
}

/// Result of a task for a line.
pub struct TaskOutput<B> {
    /// One of [`BatchTask::OUTCOMES`].
    pub outcome: &'static str,
    /// Fields that are serialized after the `id`.
    pub body: B,
}

/// Compact form of a finding, without the fields that only people and models read.
#[derive(Serialize)]
pub struct BatchFinding {
    code: &'static str,
    severity: Severity,
    message: String,
    span: Span,
    suggestion: Option<String>,
}

impl From<Finding> for BatchFinding {
    fn from(finding: Finding) -> Self {
        let Finding { code, severity, message, span, suggestion, .. } = finding;
        Self { code, severity, message, span, suggestion }
    }
}
