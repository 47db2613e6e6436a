#![doc = include_str!("uncovered_term.md")]

use crate::coverage::{missing_subject, uncovered_qualifiers};
use crate::finding::{Finding, Severity};
use crate::review::whole;
use crate::rules::{Rule, Subject};
use crate::values::fold;

/// See the page.
pub static RULE: Rule =
    Rule { code: "uncovered-term", group: "question", page: include_str!("uncovered_term.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let (Some(schema), Some(question)) = (subject.context.schema, subject.context.question) else { return };
    if subject.query.statements.len() != 1 {
        return;
    }
    let mut report = |term: &str, message: String, advice: String| {
        let span = whole(&subject.query.source);
        out.push(Finding::new(RULE.code, Severity::Warning, span, term, message).advise(advice));
    };
    // What the query itself spells out is an interpretation that a person can read.
    let query = fold(&subject.query.sql);
    if let Some(missing) = missing_subject(question, &[&query], schema) {
        let advice = format!("The database has no {}: do not answer for another table.", missing.subject);
        report(&missing.subject, missing.message(), advice);
    }
    for term in uncovered_qualifiers(question, &[&query], schema) {
        let message = format!("no table, column or value covers `{term}`, and the query leaves it out");
        report(
            &term,
            message,
            format!("The question says {term}: find the column that tells, or say that there is none."),
        );
    }
}
