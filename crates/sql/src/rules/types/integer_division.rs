#![doc = include_str!("integer_division.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Finding, Severity};
use crate::resolve::spans;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::Type;

/// The `integer-division` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "integer-division",
    group: RuleGroup::Types,
    error_type: ErrorType::Unknown,
    page: include_str!("integer_division.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    if !ctx.context.dialect.integer_division {
        return;
    }
    for operation in ctx.resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Divide) {
        if operation.left.kind != Type::Integer || operation.right.kind != Type::Integer {
            continue;
        }
        let left = spans::expression_span(ctx.query, operation.left_node);
        let span = spans::include_closing_parentheses(
            ctx.query,
            left.join(spans::expression_span(ctx.query, operation.right_node)),
        );
        out.push(
            Finding::new(
                "integer-division",
                Severity::Warning,
                span,
                ctx.query.text(span),
                "both sides are integers, so the fraction is truncated",
            )
            .with_suggestion((left.end > left.start).then(|| format!("1.0 * {}", ctx.query.text(span))))
            .with_advice("Both sides of / are integers: multiply one side by 1.0 (or CAST it) to keep the fraction."),
        );
    }
}
