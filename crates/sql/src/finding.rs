//! Findings about a query: location, severity and fixes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Byte range in the reviewed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span from `start` to `end`, exclusive.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the smallest span that contains both.
    pub fn join(self, other: Span) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Returns the span of a text without surrounding whitespace.
pub(crate) fn trimmed_span(text: &str) -> Span {
    let start = text.len() - text.trim_start().len();
    Span::new(start, text.trim_end().len().max(start))
}

/// Severity of a finding.
///
/// An error of a safety rule keeps the query from the database; with any other error the database
/// would reject it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The query cannot run or must not run.
    Error,
    /// The query runs but probably does not answer the question.
    Warning,
    /// Additional information; nothing is wrong.
    Info,
}

impl Severity {
    /// Returns the name that is printed before the code.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// Certainty of a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Applicability {
    /// Single, proved candidate: applied and then reviewed again.
    Safe,
    /// One of several ranked candidates: tried if the database can check it, always shown.
    Likely,
    /// Only shown to a model or a person.
    Suggested,
}

/// Replacement in the reviewed text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edit {
    /// Span to replace; an empty span inserts.
    pub span: Span,
    /// New text of the span.
    pub text: String,
}

/// Edits that together repair a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fix {
    /// Edits in the order of the text, without overlaps.
    pub edits: Vec<Edit>,
    /// Certainty of the fix.
    pub applicability: Applicability,
    /// Reason for the fix, in one sentence.
    pub why: String,
    /// `true` if schema and question give no reason to prefer the previous fix.
    #[serde(skip)]
    pub is_tied_with_previous: bool,
}

/// Database query that proves a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProofQuery {
    /// Safe query with a small limit.
    pub sql: String,
    /// `true` if the query must return a row, `false` if it must return none.
    pub expects_rows: bool,
}

/// Problem in a query, at one span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Code of the rule, as `querymend explain` accepts it.
    pub code: &'static str,
    /// Severity of the problem.
    pub severity: Severity,
    /// Description of the problem in one sentence, for a person.
    pub message: String,
    /// Name or part of the query that the finding is about.
    pub subject: String,
    /// Location in the reviewed text.
    pub span: Span,
    /// Replacement for the subject; absent if there is no obvious one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Facts that support the finding, such as the table with the column or the existing values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Instruction for a model that repairs the query.
    pub advice: String,
    /// Fixes that need no model, most certain first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
    /// Queries that must hold before a Safe first fix is applied to a query that runs.
    #[serde(skip)]
    pub proofs: Vec<ProofQuery>,
}

impl Finding {
    /// Creates a finding with the required fields; the methods below add the rest.
    pub fn new(
        code: &'static str,
        severity: Severity,
        span: Span,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            message: message.into(),
            subject: subject.into(),
            span,
            suggestion: None,
            evidence: Vec::new(),
            advice: String::new(),
            fixes: Vec::new(),
            proofs: Vec::new(),
        }
    }

    /// Adds the replacement for the subject.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// Adds the instruction for a model.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// Adds a fact that supports the finding.
    #[must_use]
    pub fn with_evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Adds a query that must hold for the finding to be proved.
    #[must_use]
    pub fn with_proof(mut self, sql: String, has_rows: bool) -> Self {
        self.proofs.push(ProofQuery { sql, expects_rows: has_rows });
        self
    }

    /// Returns whether the fix of this warning can be applied to a query that runs.
    ///
    /// The database must prove it first.
    pub fn has_provable_fix(&self) -> bool {
        let is_safe = self.fixes.first().is_some_and(|fix| fix.applicability == Applicability::Safe);
        self.severity == Severity::Warning && is_safe && !self.proofs.is_empty()
    }

    /// Adds a fix.
    #[must_use]
    pub fn with_fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }
}

/// Applies sorted edits that do not overlap; any other edit is skipped.
pub fn apply_edits(text: &str, edits: &[Edit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        if edit.span.start < at || !text.is_char_boundary(edit.span.start) {
            continue;
        }
        let end = edit.span.end.min(text.len());
        if !text.is_char_boundary(end) {
            continue;
        }
        out.push_str(&text[at..edit.span.start]);
        out.push_str(&edit.text);
        at = end;
    }
    out.push_str(&text[at..]);
    out
}
