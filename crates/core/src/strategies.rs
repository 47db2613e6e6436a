//! Retry strategies, one module each, in order of precedence: the first applicable one is used.

mod aggregation;
mod engine_advice;
mod explain_findings;
mod join;
mod show_values;
mod simplify;
mod start_over;
mod timeout;
mod widen_schema;

use querymend_sql::schema::Schema;
use querymend_sql::{Dialect, ErrorType, Finding, LiteralFilter, Severity};

use crate::event::Feedback;
use crate::retry::RetryStrategy;

/// Failure of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptFailure {
    /// Query extracted from the draft.
    pub sql: String,
    /// Code of the rule that the error belongs to.
    pub code: String,
    /// Name that the error refers to.
    pub subject: String,
    /// Category of the error.
    pub error_type: ErrorType,
    /// Message of the database or of the review.
    pub message: String,
    /// `true` if the database reported the error, `false` if the review did.
    pub from_database: bool,
    /// All findings of the review.
    pub findings: Vec<Finding>,
    /// Literals that do not occur in their column, with similar values.
    pub values: Vec<(LiteralFilter, Vec<String>)>,
}

impl AttemptFailure {
    /// Returns whether it is the same error again: the same rule about the same name.
    pub fn is_same_error(&self, other: &AttemptFailure) -> bool {
        self.code == other.code && self.subject.eq_ignore_ascii_case(&other.subject)
    }
}

/// Context of the failure for strategies.
#[derive(Clone, Copy)]
pub struct StrategyContext<'v> {
    /// Full schema.
    pub schema: &'v Schema,
    /// SQL dialect.
    pub dialect: &'static Dialect,
    /// Names of the tables in the prompt.
    pub linked_tables: &'v [String],
    /// Number of the next attempt.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Reaction that the retry policy prescribes for this kind of failure.
    pub policy: RetryStrategy,
}

/// Retry strategy.
pub struct Strategy {
    /// Name in events and traces.
    pub name: &'static str,
    /// Returns whether the strategy applies to the failure.
    pub applies: fn(&AttemptFailure, &StrategyContext<'_>) -> bool,
    /// Returns the feedback to the model besides the error itself.
    pub feedback: fn(&AttemptFailure, &StrategyContext<'_>) -> Vec<Feedback>,
    /// `true` to restart the conversation without the failed query.
    pub restart_conversation: bool,
}

/// All strategies, most specific first. The last one always applies.
pub static STRATEGIES: &[&Strategy] = &[
    &start_over::STRATEGY,
    &show_values::STRATEGY,
    &timeout::STRATEGY,
    &widen_schema::STRATEGY,
    &aggregation::STRATEGY,
    &join::STRATEGY,
    &simplify::STRATEGY,
    &explain_findings::STRATEGY,
];

/// Returns the first applicable strategy.
pub fn choose(failure: &AttemptFailure, context: &StrategyContext<'_>) -> &'static Strategy {
    STRATEGIES.iter().find(|s| (s.applies)(failure, context)).copied().unwrap_or(&explain_findings::STRATEGY)
}

/// Returns the distinct advice for errors, and for the reason of a database rejection.
fn advice(failure: &AttemptFailure) -> Vec<Feedback> {
    let mut out: Vec<Feedback> = Vec::new();
    // A warning is promoted to an error if the database's error belongs to the same rule.
    let refused_for = |f: &Finding| failure.from_database && f.code == failure.code;
    for finding in failure.findings.iter().filter(|f| f.severity == Severity::Error || refused_for(f)) {
        let text = if finding.advice.is_empty() { &finding.message } else { &finding.advice };
        if !out.iter().any(|f| f.text == *text) {
            out.push(Feedback { kind: finding.code.to_string(), text: text.clone() });
        }
    }
    if failure.from_database
        && !out.iter().any(|f| f.kind == failure.code)
        && let Some(text) = engine_advice::advice_for(&failure.code)
    {
        out.push(feedback(&failure.code, text));
    }
    out
}

fn feedback(kind: &str, text: impl Into<String>) -> Feedback {
    Feedback { kind: kind.to_string(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use querymend_sql::{Policy, ReviewContext, dialect, review};

    use super::*;

    /// Returns the feedback (kind and text) after a database of this dialect rejected a query.
    fn feedback_after(sql: &str, ddl: &str, code: &str, dialect: &'static Dialect) -> Vec<(String, String)> {
        let schema = Schema::from_ddl(ddl, dialect).unwrap();
        let policy = Policy::default();
        let context = ReviewContext { schema: Some(&schema), dialect, policy: &policy, question: None };
        let failure = AttemptFailure {
            sql: sql.into(),
            code: code.into(),
            subject: String::new(),
            error_type: ErrorType::of(code),
            message: "refused".into(),
            from_database: true,
            findings: review(sql, &context).findings,
            values: Vec::new(),
        };
        advice(&failure).into_iter().map(|told| (told.kind, told.text)).collect()
    }

    #[test]
    fn explains_engine_errors_with_rule_advice() {
        let ddl = "CREATE TABLE orders (id INTEGER, day DATE, total INTEGER)";
        for (sql, code, words) in [
            // The review warns about the literal, and the database confirms it.
            ("SELECT id FROM orders WHERE day = '31/12/2024'", "date-format", "not '31/12/2024'"),
            // The review finds nothing.
            ("SELECT CAST(id AS DATE) FROM orders", "date-format", "'YYYY-MM-DD'"),
            ("SELECT id / total FROM orders", "division-by-zero", "NULLIF"),
            ("SELECT id FROM orders", "alias-reference", "repeat the expression"),
        ] {
            let told = feedback_after(sql, ddl, code, &dialect::POSTGRES);
            assert!(told.iter().any(|(kind, text)| kind == code && text.contains(words)), "{sql}: {told:?}");
        }
        assert_eq!(feedback_after("SELECT id FROM orders", ddl, "engine-error", &dialect::POSTGRES), []);
    }
}
