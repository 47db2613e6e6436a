//! What is wrong with a query, where, how sure we are, and how it may be mended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of bytes in the text that was reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to, not including, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The smallest span that holds both.
    pub fn join(self, other: Span) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// How bad a finding is. An error of the safety rules keeps a query from the database; any other error says that the database
/// would refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The query cannot run, or must not.
    Error,
    /// The query runs, but probably does not mean what was asked.
    Warning,
    /// Worth knowing; nothing is wrong.
    Info,
}

impl Severity {
    /// The word that is printed before the code.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// How sure a fix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Applicability {
    /// One candidate, proved: applied, then reviewed again.
    Safe,
    /// One of several ranked candidates: tried where the database can judge, always shown.
    Likely,
    /// Only told to a model or a person.
    Suggested,
}

/// One replacement in the reviewed text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edit {
    /// What is replaced; an empty span inserts.
    pub span: Span,
    /// What stands there afterwards.
    pub text: String,
}

/// Edits that together mend a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fix {
    /// Replacements, in the order of the text, not overlapping.
    pub edits: Vec<Edit>,
    /// How sure it is.
    pub applicability: Applicability,
    /// Why this is right, in one sentence.
    pub why: String,
    /// Schema and question give no reason to prefer the fix before it.
    #[serde(skip)]
    pub tied: bool,
}

/// A question to the database whose answer proves a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proof {
    /// One harmless query with a small limit.
    pub sql: String,
    /// Whether it must return a row.
    pub has_rows: bool,
}

/// One fault of a query in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The rule that found it, as `querymend explain` knows it.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence, for a person.
    pub message: String,
    /// The name or piece of the query that it is about.
    pub subject: String,
    /// Where it stands in the reviewed text.
    pub span: Span,
    /// What to write instead, where one thing is the obvious choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Facts that back the finding (where the column is, which values exist).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What a model is told when it is asked to mend the query.
    pub advice: String,
    /// Ways to mend it without a model, the surest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
    /// What the database must answer before the first fix, if it is Safe, is applied to a query that runs.
    #[serde(skip)]
    pub proofs: Vec<Proof>,
}

impl Finding {
    /// A finding with the parts that all have; the rest is added by the methods below.
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

    /// Adds what to write instead.
    #[must_use]
    pub fn suggest(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// Adds what a model is told.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// Adds a fact that backs the finding.
    #[must_use]
    pub fn because(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Adds what the database must answer before the finding is taken for proved.
    #[must_use]
    pub fn prove(mut self, sql: String, has_rows: bool) -> Self {
        self.proofs.push(Proof { sql, has_rows });
        self
    }

    /// Whether the fix of this warning is applied to a query that runs, once the database has proved it.
    pub fn repairs_silent_error(&self) -> bool {
        let is_safe = self.fixes.first().is_some_and(|fix| fix.applicability == Applicability::Safe);
        self.severity == Severity::Warning && is_safe && !self.proofs.is_empty()
    }

    /// Adds a way to mend it.
    #[must_use]
    pub fn mend(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }
}

/// Applies edits that are sorted and do not overlap; anything else is left out rather than guessed.
pub fn apply(text: &str, edits: &[Edit]) -> String {
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
