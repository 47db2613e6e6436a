#![doc = include_str!("too_deep.md")]

use crate::finding::{Finding, Severity};
use crate::query::Failure;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "too-deep", group: "safety", page: include_str!("too_deep.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(Failure::TooMuch(why)) = &subject.query.failure else { return };
    let span = crate::finding::Span::new(0, subject.query.source.len().min(1));
    out.push(
        Finding::new("too-deep", Severity::Error, span, "", format!("the query is not looked at: {why}"))
            .advise("Write a much shorter query."),
    );
}
