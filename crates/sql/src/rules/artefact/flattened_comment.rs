#![doc = include_str!("flattened_comment.md")]

use crate::finding::{Finding, Severity};
use crate::query::parse;
use crate::rules::{Rule, Subject, artefact};
use crate::salvage::swallowed_clauses;

/// See the page.
pub static RULE: Rule =
    Rule { code: "flattened-comment", group: "artefact", page: include_str!("flattened_comment.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    if subject.query.steps.iter().any(|step| step.code == RULE.code) {
        let message = "a line end was lost, so that a comment swallows the rest of the query";
        let why = "every name resolves when the comment ends before the next clause";
        return artefact::report(subject, RULE.code, message, why, out);
    }
    // The query is valid as it is: whether the comment was meant as one, only its author knows.
    let query = subject.query;
    let parses = |sql: &str| parse(sql, subject.context.dialect, subject.context.policy).is_ok();
    let steps = if query.failure.is_none() { swallowed_clauses(&query.source, &parses) } else { Vec::new() };
    let Some(comment) = steps.first().and_then(|_| query.comments.first()) else { return };
    let text: String = query.text(comment.span).chars().take(60).collect();
    let message = format!("the comment `{text}` holds SQL, which is not run");
    out.push(
        Finding::new(RULE.code, Severity::Info, comment.span, text, message)
            .advise("If a line end was lost, write it again before the clause; else nothing is wrong."),
    );
}
