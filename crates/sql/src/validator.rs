//! Checks that a program registers beside the built-in rules.

use std::fmt;
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::finding::Finding;
use crate::review::Extracted;

/// What a validator looks at.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'s> {
    /// The text under review. Spans of findings count its bytes.
    pub text: &'s str,
    /// The SQL in it and the names that it uses.
    pub extracted: &'s Extracted,
    /// The dialect that it is read in.
    pub dialect: &'static Dialect,
}

/// A check that is run on every query before the database sees it. An error keeps the query back; warnings and hints go along
/// with the answer.
pub trait Validator: Send + Sync {
    /// Its name: the code of its findings, and what `guardrails_checked` lists.
    fn name(&self) -> &'static str;

    /// Returns what is wrong with a query. The code of the findings is replaced by [`Validator::name`].
    fn validate(&self, subject: &Subject<'_>) -> Vec<Finding>;
}

/// The validators of a policy.
#[derive(Clone, Default)]
pub struct Validators(Vec<Arc<dyn Validator>>);

impl Validators {
    /// Adds one. A validator of the same name is replaced.
    pub fn register(&mut self, validator: Arc<dyn Validator>) {
        self.0.retain(|known| known.name() != validator.name());
        self.0.push(validator);
    }

    /// Their names, in the order in which they were registered.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|validator| validator.name())
    }

    /// Each of them.
    pub(crate) fn each(self) -> impl Iterator<Item = Arc<dyn Validator>> {
        self.0.into_iter()
    }

    pub(crate) fn validate(&self, subject: &Subject<'_>, out: &mut Vec<Finding>) {
        for validator in &self.0 {
            let code = validator.name();
            let end = subject.text.len();
            out.extend(validator.validate(subject).into_iter().map(|mut finding| {
                // A span outside the text would break whoever shows it.
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
