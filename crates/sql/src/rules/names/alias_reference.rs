#![doc = include_str!("alias_reference.md")]

use sqlparser::ast::Expr;

use crate::finding::{Applicability, Finding, Severity};
use crate::fixes;
use crate::fixes::{aggregates, windows};
use crate::resolve::{Clause, ColumnBinding, expr_span};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `alias-reference` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "alias-reference",
    group: RuleGroup::Names,
    error_type: ErrorType::ColumnNotFound,
    // A condition on an aggregate moves from WHERE to HAVING.
    rewrites: Some(RewriteScope { clauses: &["WHERE"], tokens: &["AND"], moves: true }),
    page: include_str!("alias_reference.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for reference in &ctx.resolution.references {
        let ColumnBinding::AliasNotVisible(item) = reference.binding else { continue };
        let name = reference.name.value.as_str();
        let clause = match reference.clause {
            Clause::Select => "the same SELECT",
            other => other.keyword(),
        };
        let expression = ctx.resolution.blocks[reference.block].items.get(item).and_then(|i| i.expression);
        let filters = matches!(reference.clause, Clause::Where | Clause::On);
        // Outside of SELECT, an aggregate is allowed in HAVING and ORDER BY, a window function in
        // ORDER BY.
        let aggregate =
            ctx.item_has_aggregate(reference.block, item) && (filters || reference.clause == Clause::GroupBy);
        let window = expression.is_some_and(|e| has_window(ctx, e)) && reference.clause != Clause::OrderBy;
        let written = expression.map(|e| if is_simple(e) { e.to_string() } else { format!("({e})") });
        let rest = match &written {
            Some(_) if window => "compute it in a subquery and use it in the outer query".to_string(),
            Some(e) if aggregate && filters => format!("it is an aggregate, so filter on {e} in HAVING"),
            Some(_) if aggregate => "it is an aggregate, so group by plain columns instead".to_string(),
            Some(e) => format!("repeat the expression {e}"),
            None => "repeat its expression".to_string(),
        };
        let repeated = written.filter(|_| !aggregate && !window);
        let mut finding = Finding::new(
            "alias-reference",
            Severity::Error,
            ctx.query.span(reference.span),
            name,
            format!("the alias `{name}` cannot be used in {clause}"),
        )
        .with_suggestion(repeated.clone())
        .with_advice(format!("The alias {name} is not visible in {clause}: {rest}."));
        if aggregate && fixes::within_fix_budget(ctx, out) {
            finding.fixes.extend(aggregates::fix_for_alias(reference, item, ctx));
        } else if window && reference.clause == Clause::Where && fixes::within_fix_budget(ctx, out) {
            finding.fixes.extend(windows::rewrite_where(reference.block, ctx));
        } else if let Some(text) = repeated.filter(|_| fixes::within_fix_budget(ctx, out)) {
            let why = format!("`{name}` is that expression, which every clause can compute");
            let span = ctx.query.span(reference.span);
            finding.fixes.push(fixes::replace(span, text, Applicability::Safe, why));
        }
        out.push(finding);
    }
}

/// Returns whether an expression keeps its meaning in any context.
fn is_simple(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_) | Expr::Value(_) | Expr::Nested(_)
    )
}

fn has_window(ctx: &RuleContext<'_>, expression: &Expr) -> bool {
    let span = ctx.query.span(expr_span(expression));
    ctx.resolution
        .calls
        .iter()
        .any(|c| c.has_over && span.start <= ctx.query.span(c.span).start && ctx.query.span(c.span).start < span.end)
}
