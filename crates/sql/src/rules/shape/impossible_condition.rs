#![doc = include_str!("impossible_condition.md")]

use sqlparser::ast::{BinaryOperator, Expr, Value as Literal};

use crate::finding::{Finding, Severity};
use crate::rules::types::span_of;
use crate::rules::{Rule, Subject};
use crate::scope::{Operation, SourceId};
use crate::values::fold;

/// See the page.
pub static RULE: Rule =
    Rule { code: "impossible-condition", group: "shape", page: include_str!("impossible_condition.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let mut seen: Vec<((SourceId, usize), String, &Operation<'_>)> = Vec::new();
    let required = |o: &&Operation<'_>| *o.operator == BinaryOperator::Eq && o.required && !o.is_in;
    for operation in subject.facts.operations.iter().filter(required) {
        let sides = [
            (operation.left, operation.right.literal, operation.right_node),
            (operation.right, operation.left.literal, operation.left_node),
        ];
        let fixed = sides.into_iter().find_map(|(side, literal, node)| Some((side.column?, constant(literal, node)?)));
        let Some((column, value)) = fixed else { continue };
        // Conditions of ON hold for one join, those of WHERE for the row.
        let alike = |o: &Operation<'_>| o.block == operation.block && o.clause == operation.clause;
        let other = seen.iter().find(|(c, v, o)| *c == column && *v != value && alike(o));
        if let Some((_, _, other)) = other {
            let name = subject.facts.sources[column.0].column_names().get(column.1).copied().unwrap_or("").to_string();
            let (first, second) = (other_text(subject, other), other_text(subject, operation));
            let span = span_of(subject.query, operation.left_node).join(span_of(subject.query, operation.right_node));
            out.push(
                Finding::new(
                    RULE.code,
                    Severity::Warning,
                    span,
                    &name,
                    format!("no row can have both {first} and {second}: nothing is ever found"),
                )
                .advise(format!(
                    "No row has both {first} and {second}. For rows with either write IN; for things that have each, \
                     join the table twice or INTERSECT two queries."
                )),
            );
        } else {
            seen.push((column, value, operation));
        }
    }
}

fn other_text(subject: &Subject<'_>, operation: &Operation<'_>) -> String {
    let span = span_of(subject.query, operation.left_node).join(span_of(subject.query, operation.right_node));
    format!("`{}`", subject.query.text(span))
}

/// A constant as it is compared: texts without case, since some databases take `a` and `A` for equal.
fn constant(literal: Option<&Literal>, node: &Expr) -> Option<String> {
    match (literal, node) {
        (Some(Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)), _) => Some(fold(text)),
        (Some(Literal::Number(number, _)), _) => number.to_string().parse::<f64>().ok().map(|n| n.to_string()),
        _ => None,
    }
}
