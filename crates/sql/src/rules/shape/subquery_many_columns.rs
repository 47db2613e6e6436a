#![doc = include_str!("subquery_many_columns.md")]

use crate::finding::{Finding, Severity};
use crate::rules::shape::set_operation_arity::columns;
use crate::rules::{Rule, Subject};
use crate::scope::ArityKind;

/// See the page.
pub static RULE: Rule =
    Rule { code: "subquery-many-columns", group: "shape", page: include_str!("subquery_many_columns.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for arity in subject.facts.arities.iter().filter(|a| a.kind == ArityKind::Subquery) {
        let (wanted, given) = (arity.left, arity.right);
        out.push(
            Finding::new(
                "subquery-many-columns",
                Severity::Error,
                subject.query.span(arity.place),
                "",
                format!("the subquery gives {} where {wanted} is wanted", columns(given)),
            )
            .advise(format!("The subquery must select {}, not {given}.", columns(wanted))),
        );
    }
}
