#![doc = include_str!("nulls_first.md")]

use sqlparser::ast::{LimitClause, OrderByExpr, OrderByKind, OrderBySort, Spanned, Statement};

use crate::dialect::NullOrder;
use crate::finding::{Applicability, Finding, Severity, Span};
use crate::fixes;
use crate::resolve::{Clause, ColumnBinding};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `nulls-first` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "nulls-first",
    group: RuleGroup::Shape,
    error_type: ErrorType::Unknown,
    page: include_str!("nulls_first.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    if let Some(finding) = nulls_first_finding(ctx) {
        out.push(finding);
    }
}

fn nulls_first_finding(ctx: &RuleContext<'_>) -> Option<Finding> {
    let order = first_sort_key(ctx)?;
    let is_ascending = match &order.options.sort {
        None | Some(OrderBySort::Asc) => true,
        Some(OrderBySort::Desc) => false,
        Some(OrderBySort::Using(_)) => return None,
    };
    let puts_nulls_first = match ctx.context.dialect.null_order {
        NullOrder::Smallest => is_ascending,
        NullOrder::Largest => !is_ascending,
        NullOrder::Last => false,
    };
    if !puts_nulls_first || order.options.nulls_first.is_some() {
        return None;
    }
    let resolution = ctx.resolution;
    let place = order.expr.span();
    let reference = resolution.references.iter().find(|r| r.clause == Clause::OrderBy && r.span == place)?;
    let ColumnBinding::Column(source, index) = reference.binding else { return None };
    let (table, column) = resolution.sources[source].origin(index)?;
    let block = &resolution.blocks[reference.block];
    let is_plain = !block.is_grouped && !block.has_aggregates && !block.is_distinct && resolution.blocks.len() == 1;
    if !is_plain || !column.nullable || table.is_unique(&[column.name.as_str()]) {
        return None;
    }
    let span = ctx.query.span(place);
    let message = format!("`{}` can be NULL, and {} sorts NULL first", column.name, ctx.context.dialect.name);
    let why = format!("rows where `{}` is NULL would displace those that LIMIT should return", column.name);
    let nulls_last = format!("{} IS NULL, ", ctx.query.text(span));
    let fix = fixes::replace(Span::new(span.start, span.start), nulls_last, Applicability::Likely, why);
    let finding = Finding::new(RULE.code, Severity::Info, span, &column.name, message)
        .with_advice(format!("Sort by {0} IS NULL first, or add WHERE {0} IS NOT NULL.", column.name));
    Some(finding.with_fix(fix))
}

/// Returns the first sort key of a statement that has a limit.
fn first_sort_key<'s>(ctx: &'s RuleContext<'_>) -> Option<&'s OrderByExpr> {
    let [Statement::Query(query)] = ctx.query.statements.as_slice() else { return None };
    let OrderByKind::Expressions(keys) = &query.order_by.as_ref()?.kind else { return None };
    let is_limited = matches!(query.limit_clause, Some(LimitClause::LimitOffset { limit: Some(_), offset: None, .. }));
    keys.first().filter(|_| is_limited)
}
