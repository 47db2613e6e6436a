//! Ways to ask a model again, one file each, tried in order: the first that fits is taken.

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
use querymend_sql::{Dialect, ErrorType, Finding, Severity, Stated};

use crate::event::Feedback;
use crate::retry::RetryStrategy;

/// What is wrong with an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// The query, out of its wrapping.
    pub sql: String,
    /// The rule that the fault belongs to.
    pub code: String,
    /// The name that it is about.
    pub subject: String,
    /// Its family.
    pub error_type: ErrorType,
    /// The database's own words, or the critic's.
    pub message: String,
    /// The database said it, and not the critic.
    pub from_database: bool,
    /// Everything that the critic says about the query.
    pub findings: Vec<Finding>,
    /// Values that a column does not hold, with some that it does.
    pub values: Vec<(Stated, Vec<String>)>,
}

impl Trouble {
    /// Whether it is the same fault again: the same rule about the same name.
    pub fn is_same(&self, other: &Trouble) -> bool {
        self.code == other.code && self.subject.eq_ignore_ascii_case(&other.subject)
    }
}

/// What strategies may look at besides the trouble.
#[derive(Clone, Copy)]
pub struct View<'v> {
    /// All tables.
    pub schema: &'v Schema,
    /// The dialect.
    pub dialect: &'static Dialect,
    /// Names of the tables that the model was shown.
    pub shown: &'v [String],
    /// The attempt that would begin.
    pub attempt: u32,
    /// How many there may be.
    pub of: u32,
    /// What the policy says about failures of this kind.
    pub policy: RetryStrategy,
}

/// A way to ask again.
pub struct Strategy {
    /// As events and traces call it.
    pub name: &'static str,
    /// Whether it is for this.
    pub fits: fn(&Trouble, &View<'_>) -> bool,
    /// What the model is told besides the failure itself.
    pub tell: fn(&Trouble, &View<'_>) -> Vec<Feedback>,
    /// The conversation begins anew, without the failed query.
    pub anew: bool,
}

/// All ways, the most special first. The last fits always.
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

/// The first way that fits.
pub fn choose(trouble: &Trouble, view: &View<'_>) -> &'static Strategy {
    STRATEGIES.iter().find(|s| (s.fits)(trouble, view)).copied().unwrap_or(&explain_findings::STRATEGY)
}

/// What the rules advise about the findings that are errors, each once, and about what the database refused the query for.
fn advice(trouble: &Trouble) -> Vec<Feedback> {
    let mut out: Vec<Feedback> = Vec::new();
    // A warning of the rule that the database's error belongs to has become an error.
    let refused_for = |f: &Finding| trouble.from_database && f.code == trouble.code;
    for finding in trouble.findings.iter().filter(|f| f.severity == Severity::Error || refused_for(f)) {
        let text = if finding.advice.is_empty() { &finding.message } else { &finding.advice };
        if !out.iter().any(|f| f.text == *text) {
            out.push(Feedback { kind: finding.code.to_string(), text: text.clone() });
        }
    }
    if trouble.from_database
        && !out.iter().any(|f| f.kind == trouble.code)
        && let Some(text) = engine_advice::of(&trouble.code)
    {
        out.push(told(&trouble.code, text));
    }
    out
}

fn told(kind: &str, text: impl Into<String>) -> Feedback {
    Feedback { kind: kind.to_string(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use querymend_sql::{Context, Policy, dialect, review};

    use super::*;

    /// What a model is told where a database of that dialect refused a query, by kind.
    fn told_after(sql: &str, ddl: &str, code: &str, dialect: &'static Dialect) -> Vec<(String, String)> {
        let schema = Schema::from_ddl(ddl, dialect).unwrap();
        let policy = Policy::default();
        let context = Context { schema: Some(&schema), dialect, policy: &policy, question: None };
        let trouble = Trouble {
            sql: sql.into(),
            code: code.into(),
            subject: String::new(),
            error_type: ErrorType::of(code),
            message: "refused".into(),
            from_database: true,
            findings: review(sql, &context).findings,
            values: Vec::new(),
        };
        advice(&trouble).into_iter().map(|told| (told.kind, told.text)).collect()
    }

    #[test]
    fn database_errors_are_explained_by_their_rule() {
        let ddl = "CREATE TABLE orders (id INTEGER, day DATE, total INTEGER)";
        for (sql, code, words) in [
            // The review warns of the literal, and the database has proved it right.
            ("SELECT id FROM orders WHERE day = '31/12/2024'", "date-format", "not '31/12/2024'"),
            // The review sees nothing.
            ("SELECT CAST(id AS DATE) FROM orders", "date-format", "'YYYY-MM-DD'"),
            ("SELECT id / total FROM orders", "division-by-zero", "NULLIF"),
            ("SELECT id FROM orders", "alias-reference", "repeat the expression"),
        ] {
            let told = told_after(sql, ddl, code, &dialect::POSTGRES);
            assert!(told.iter().any(|(kind, text)| kind == code && text.contains(words)), "{sql}: {told:?}");
        }
        assert_eq!(told_after("SELECT id FROM orders", ddl, "engine-error", &dialect::POSTGRES), []);
    }
}
