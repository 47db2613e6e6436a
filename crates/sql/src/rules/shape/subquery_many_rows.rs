#![doc = include_str!("subquery_many_rows.md")]

use sqlparser::ast::Spanned;

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject, types};

/// See the page.
pub static RULE: Rule =
    Rule { code: "subquery-many-rows", group: "shape", page: include_str!("subquery_many_rows.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let fails = subject.context.dialect.many_rows_error;
    for operation in subject.facts.operations.iter().filter(|o| types::compares(o.operator) && !o.is_in) {
        let node = match (operation.left.many_rows, operation.right.many_rows) {
            (_, true) => operation.right_node,
            (true, false) => operation.left_node,
            (false, false) => continue,
        };
        let then = if fails { "and then the query fails" } else { "and only the first is compared" };
        out.push(
            Finding::new(
                "subquery-many-rows",
                Severity::Warning,
                subject.query.span(node.span()),
                "",
                format!("the subquery may give several rows, {then}"),
            )
            .advise("Compare with IN (subquery), or make the subquery give one row (an aggregate, or LIMIT 1)."),
        );
    }
}
