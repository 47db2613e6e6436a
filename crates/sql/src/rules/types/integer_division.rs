#![doc = include_str!("integer_division.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject, types};
use crate::schema::Type;

/// See the page.
pub static RULE: Rule =
    Rule { code: "integer-division", group: "types", page: include_str!("integer_division.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    if !subject.context.dialect.integer_division {
        return;
    }
    for operation in subject.facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Divide) {
        if operation.left.kind != Type::Integer || operation.right.kind != Type::Integer {
            continue;
        }
        let left = types::span_of(subject.query, operation.left_node);
        let span = types::closed(subject.query, left.join(types::span_of(subject.query, operation.right_node)));
        out.push(
            Finding::new(
                "integer-division",
                Severity::Warning,
                span,
                subject.query.text(span),
                "both sides are integers, so the fraction is cut off",
            )
            .suggest((left.end > left.start).then(|| format!("1.0 * {}", subject.query.text(span))))
            .advise("Both sides of / are integers: multiply one side by 1.0 (or CAST it) to keep the fraction."),
        );
    }
}
