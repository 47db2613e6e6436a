//! What a batch does with its lines: reviews them, or mends them.

use std::sync::Arc;

use querymend_sql::{Context, Dialect, Finding, Policy, Severity, Span};
use serde::Serialize;

use crate::against::Known;
use crate::failure::Failure;

/// A kind of batch. It is shared by all threads.
pub trait Job: Send + Sync + 'static {
    /// What can become of a line, in the order in which the summary counts them.
    const OUTCOMES: &'static [&'static str];

    /// What a thread keeps from one line to the next, and shares with no other.
    type Tools;

    /// The tools of one more thread.
    fn tools(&self) -> Self::Tools;

    /// What becomes of a line, and the answer to it. A failure means that the line could not be looked at.
    fn answer(&self, asked: &Asked<'_>, tools: &mut Self::Tools) -> Result<Answer<impl Serialize>, Failure>;

    /// The answer to a line that could not be looked at; the failure is added to it.
    fn unseen(&self, sql: &str) -> impl Serialize;
}

/// A line as a job sees it.
pub struct Asked<'a> {
    /// The line itself, for fields that only this job knows.
    pub line: &'a str,
    /// Its SQL.
    pub sql: &'a str,
    /// The question that it is to answer, with what is known about it.
    pub question: Option<String>,
    /// What it is held against.
    pub known: Arc<Known>,
    /// The dialect of this line.
    pub dialect: &'static Dialect,
    /// The rules of the house.
    pub policy: &'a Policy,
}

impl Asked<'_> {
    /// The same, as a review wants it.
    pub fn context(&self) -> Context<'_> {
        Context {
            schema: self.known.schema.as_ref(),
            dialect: self.dialect,
            policy: self.policy,
            question: self.question.as_deref(),
        }
    }
}

/// What a job says about a line.
pub struct Answer<B> {
    /// One of [`Job::OUTCOMES`].
    pub outcome: &'static str,
    /// What is written after the `id`.
    pub body: B,
}

/// A finding as batches write it: short, without what only people and models read.
#[derive(Serialize)]
pub struct Found {
    code: &'static str,
    severity: Severity,
    message: String,
    span: Span,
    suggestion: Option<String>,
}

impl From<Finding> for Found {
    fn from(finding: Finding) -> Self {
        let Finding { code, severity, message, span, suggestion, .. } = finding;
        Self { code, severity, message, span, suggestion }
    }
}
