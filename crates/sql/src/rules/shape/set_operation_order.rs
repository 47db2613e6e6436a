#![doc = include_str!("set_operation_order.md")]

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject, types};

/// See the page.
pub static RULE: Rule =
    Rule { code: "set-operation-order", group: "shape", page: include_str!("set_operation_order.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for term in &subject.facts.stray_order_terms {
        let span = types::span_of(subject.query, term);
        let text = subject.query.text(span);
        out.push(
            Finding::new(RULE.code, Severity::Error, span, text, format!("`{text}` is no column of the combined result, which is all that ORDER BY sees here"))
                .advise(format!("Behind a set operation ORDER BY takes names of result columns only: select {text} in every part, or wrap the whole in a subquery.")),
        );
    }
}
