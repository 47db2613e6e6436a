//! Custom checks that a program registers in addition to the built-in rules.

use std::fmt;
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::finding::Finding;
use crate::query_references::QueryReferences;

/// Input of a validator.
#[derive(Debug, Clone, Copy)]
pub struct ValidationTarget<'s> {
    /// Text under review. Spans of findings are byte offsets in it.
    pub text: &'s str,
    /// SQL in the text and the names that it uses.
    pub references: &'s QueryReferences,
    /// Dialect of the text.
    pub dialect: &'static Dialect,
}

/// Check that is run on every query before it is sent to the database.
///
/// An error keeps the query from the database; warnings and hints are returned with the answer.
pub trait Validator: Send + Sync {
    /// Returns the name, which is the code of the findings and is listed in `guardrails_checked`.
    fn name(&self) -> &'static str;

    /// Returns the findings for a query. [`Validator::name`] replaces their code.
    fn validate(&self, target: &ValidationTarget<'_>) -> Vec<Finding>;
}

/// Validators of a policy.
#[derive(Clone, Default)]
pub struct Validators(Vec<Arc<dyn Validator>>);

impl Validators {
    /// Adds a validator, replacing one with the same name.
    pub fn register(&mut self, validator: Arc<dyn Validator>) {
        self.0.retain(|known| known.name() != validator.name());
        self.0.push(validator);
    }

    /// Returns the names in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|validator| validator.name())
    }

    /// Returns the validators.
    pub(crate) fn into_validators(self) -> impl Iterator<Item = Arc<dyn Validator>> {
        self.0.into_iter()
    }

    pub(crate) fn validate(&self, subject: &ValidationTarget<'_>, out: &mut Vec<Finding>) {
        for validator in &self.0 {
            let code = validator.name();
            let end = subject.text.len();
            out.extend(validator.validate(subject).into_iter().map(|mut finding| {
                // A span outside the text would break code that renders it.
                finding.span.end = finding.span.end.min(end);
                finding.span.start = finding.span.start.min(finding.span.end);
                Finding { code, ..finding }
            }));
        }
    }
}

impl fmt::Debug for Validators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl PartialEq for Validators {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl Eq for Validators {}
