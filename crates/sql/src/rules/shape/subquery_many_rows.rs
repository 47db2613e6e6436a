#![doc = include_str!("subquery_many_rows.md")]

use sqlparser::ast::{BinaryOperator, Spanned};
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::fixes;
use crate::resolve::{BinaryOperation, spans};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `subquery-many-rows` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "subquery-many-rows",
    group: RuleGroup::Shape,
    error_type: ErrorType::Cardinality,
    // `= (SELECT …)` becomes `IN (SELECT …)`.
    rewrites: Some(RewriteScope { clauses: &[], tokens: &["="], moves: false }),
    page: include_str!("subquery_many_rows.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let refused = ctx.has_engine_error("subquery-many-rows");
    let fails = refused || ctx.context.dialect.many_rows_error;
    for operation in ctx.resolution.operations.iter().filter(|o| spans::is_comparison(o.operator) && !o.is_in) {
        let node = match (operation.left.may_return_many_rows, operation.right.may_return_many_rows) {
            (_, true) => operation.right_node,
            (true, false) => operation.left_node,
            (false, false) => continue,
        };
        let then = if fails { "and then the query fails" } else { "and only the first is compared" };
        let severity = match (refused, fails) {
            (true, _) => Severity::Error,
            (false, true) => Severity::Warning,
            // If it runs, it is right more often than wrong.
            (false, false) => Severity::Info,
        };
        let mut finding = Finding::new(
            "subquery-many-rows",
            severity,
            ctx.query.span(node.span()),
            "",
            format!("the subquery may return several rows, {then}"),
        )
        .with_advice("Compare with IN (subquery), or make the subquery give one row (an aggregate, or LIMIT 1).");
        if fails && operation.right.may_return_many_rows && fixes::within_fix_budget(ctx, out) {
            finding.fixes.extend(replace_with_in(operation, ctx));
        }
        out.push(finding);
    }
}

/// Replaces `=`, which takes one row, with IN, which takes any of them.
fn replace_with_in(operation: &BinaryOperation<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (text, applicability) = match operation.operator {
        BinaryOperator::Eq => ("IN", Applicability::Likely),
        // Ambiguous: different from all of the rows, or from some of them.
        BinaryOperator::NotEq => ("NOT IN", Applicability::Suggested),
        _ => return None,
    };
    let from = ctx.query.span(operation.left_node.span()).end;
    let to = ctx.query.span(operation.right_node.span()).start;
    let tokens = fixes::tokens(ctx);
    let operator = tokens.iter().find(|t| {
        let span = ctx.query.span(t.span);
        matches!(t.token, Token::Eq | Token::DoubleEq | Token::Neq) && from <= span.start && span.end <= to
    })?;
    let why = "the subquery returns several rows, and any of them may match";
    Some(fixes::replace(ctx.query.span(operator.span), text, applicability, why))
}
