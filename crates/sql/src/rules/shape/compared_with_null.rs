#![doc = include_str!("compared_with_null.md")]

use sqlparser::ast::{BinaryOperator, Expr, Spanned, Value};
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::fixes;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `compared-with-null` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "compared-with-null",
    group: RuleGroup::Shape,
    error_type: ErrorType::Unknown,
    page: include_str!("compared_with_null.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for operation in &ctx.resolution.operations {
        let right = match operation.operator {
            BinaryOperator::Eq => "IS",
            BinaryOperator::NotEq => "IS NOT",
            _ => continue,
        };
        let null = matches!(operation.right_node, Expr::Value(v) if v.value == Value::Null);
        if !null {
            continue;
        }
        let (left, null) = (ctx.query.span(operation.left_node.span()), ctx.query.span(operation.right_node.span()));
        let whole = left.join(null);
        let mut finding = Finding::new(
            RULE.code,
            Severity::Warning,
            whole,
            ctx.query.text(whole),
            "nothing is equal or unequal to NULL, so this is never true",
        )
        .with_suggestion(Some(format!("{right} NULL")))
        .with_advice(format!("Compare with NULL by {right} NULL."));
        if fixes::within_fix_budget(ctx, out) {
            let between = Span::new(left.end, null.start);
            let operator = fixes::significant_tokens(ctx).into_iter().find(|(span, token)| {
                between.start <= span.start
                    && span.end <= between.end
                    && matches!(token, Token::Eq | Token::DoubleEq | Token::Neq)
            });
            finding.fixes.extend(operator.map(|(span, _)| {
                fixes::replace(span, right, Applicability::Likely, "only IS NULL and IS NOT NULL test for NULL")
            }));
        }
        out.push(finding);
    }
}
