#![doc = include_str!("impossible_condition.md")]

use sqlparser::ast::{BinaryOperator, Expr, Value as Literal};

use crate::finding::{Finding, Severity};
use crate::resolve::spans::expression_span;
use crate::resolve::{BinaryOperation, SourceId};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::value_index::fold;

/// The `impossible-condition` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "impossible-condition",
    group: RuleGroup::Shape,
    error_type: ErrorType::Unknown,
    page: include_str!("impossible_condition.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let mut seen: Vec<((SourceId, usize), String, &BinaryOperation<'_>)> = Vec::new();
    let required = |o: &&BinaryOperation<'_>| *o.operator == BinaryOperator::Eq && o.is_conjunct && !o.is_in;
    for operation in ctx.resolution.operations.iter().filter(required) {
        let sides = [
            (operation.left, operation.right.literal, operation.right_node),
            (operation.right, operation.left.literal, operation.left_node),
        ];
        let fixed = sides
            .into_iter()
            .find_map(|(side, literal, node)| Some((side.column?, comparable_constant(literal, node)?)));
        let Some((column, value)) = fixed else { continue };
        // Conditions in ON hold for one join, those in WHERE for the row.
        let alike = |o: &BinaryOperation<'_>| o.block == operation.block && o.clause == operation.clause;
        let other = seen.iter().find(|(c, v, o)| *c == column && *v != value && alike(o));
        if let Some((_, _, other)) = other {
            let name = ctx.resolution.sources[column.0].column_names().get(column.1).copied().unwrap_or("").to_string();
            let (first, second) = (operation_text(ctx, other), operation_text(ctx, operation));
            let span =
                expression_span(ctx.query, operation.left_node).join(expression_span(ctx.query, operation.right_node));
            out.push(
                Finding::new(
                    RULE.code,
                    Severity::Warning,
                    span,
                    &name,
                    format!("no row can have both {first} and {second}: the condition is never true"),
                )
                .with_advice(format!(
                    "No row has both {first} and {second}. For rows with either write IN; for things that have each, \
                     join the table twice or INTERSECT two queries."
                )),
            );
        } else {
            seen.push((column, value, operation));
        }
    }
}

fn operation_text(ctx: &RuleContext<'_>, operation: &BinaryOperation<'_>) -> String {
    let span = expression_span(ctx.query, operation.left_node).join(expression_span(ctx.query, operation.right_node));
    format!("`{}`", ctx.query.text(span))
}

/// Returns a constant in comparable form: text is case-folded, because some databases treat `a` and
/// `A` as equal.
fn comparable_constant(literal: Option<&Literal>, node: &Expr) -> Option<String> {
    match (literal, node) {
        (Some(Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text)), _) => Some(fold(text)),
        (Some(Literal::Number(number, _)), _) => number.to_string().parse::<f64>().ok().map(|n| n.to_string()),
        _ => None,
    }
}
