#![doc = include_str!("set_operation_arity.md")]

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};
use crate::scope::ArityKind;

/// See the page.
pub static RULE: Rule =
    Rule { code: "set-operation-arity", group: "shape", page: include_str!("set_operation_arity.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for arity in subject.facts.arities.iter().filter(|a| a.kind == ArityKind::SetOperation) {
        let (left, right) = (arity.left, arity.right);
        out.push(
            Finding::new(
                "set-operation-arity",
                Severity::Error,
                subject.query.span(arity.place),
                "",
                format!("the first part gives {}, this one {right}", columns(left)),
            )
            .advise(format!(
                "Both sides of the set operation must select the same number of columns: {left} and {right} now."
            )),
        );
    }
}

/// `1 column`, `2 columns`
pub(super) fn columns(count: usize) -> String {
    format!("{count} column{}", if count == 1 { "" } else { "s" })
}
