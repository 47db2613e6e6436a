#![doc = include_str!("many_statements.md")]

use sqlparser::ast::Spanned;

use crate::finding::{Finding, Severity};
use crate::review::whole;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "many-statements", group: "safety", page: include_str!("many_statements.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let count = subject.query.statements.len();
    if count < 2 {
        return;
    }
    let span = subject.query.statements.get(1).map(|s| subject.query.span(s.span())).filter(|s| s.end > s.start);
    let span = span.unwrap_or(whole(&subject.query.source));
    out.push(
        Finding::new(
            "many-statements",
            Severity::Error,
            span,
            "",
            format!("there are {count} statements; one is allowed"),
        )
        .advise("Answer with exactly one statement; combine what you need in one SELECT."),
    );
}
