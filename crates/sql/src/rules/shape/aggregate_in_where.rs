#![doc = include_str!("aggregate_in_where.md")]

use crate::finding::{Finding, Severity};
use crate::fixes;
use crate::fixes::{aggregates, windows};
use crate::resolve::{Clause, ColumnBinding};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `aggregate-in-where` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "aggregate-in-where",
    group: RuleGroup::Shape,
    error_type: ErrorType::Aggregation,
    // A condition moves from WHERE to HAVING, the outer of two aggregates is removed, or an
    // aggregate is removed from the list of GROUP BY.
    rewrites: Some(RewriteScope {
        clauses: &["WHERE"],
        tokens: &["AND", ",", "MAX", "MIN", "AVG", "SUM", "(", ")"],
        moves: true,
    }),
    page: include_str!("aggregate_in_where.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let resolution = ctx.resolution;
    for call in resolution.calls.iter().filter(|c| c.is_aggregate) {
        let misplaced = matches!(call.clause, Clause::Where | Clause::On | Clause::GroupBy);
        // An aggregate over columns of an outer query belongs to that query, regardless of its
        // position.
        let outer = call.first_argument.column.is_some_and(|(s, _)| Some(resolution.sources[s].block) != call.block);
        // Without groups there is nothing to sort by an aggregate, unless the whole query is one
        // aggregate.
        let lonely = call.clause == Clause::OrderBy
            && call.block.is_some_and(|b| !resolution.blocks[b].is_grouped)
            && !resolution.calls.iter().any(|c| c.is_aggregate && c.block == call.block && c.clause != Clause::OrderBy);
        if outer && ctx.has_engine_error(RULE.code) {
            out.extend(aggregates::use_own_column(call, ctx).map(|fix| {
                let name = call.lower_name.to_uppercase();
                let message = format!("{name} aggregates a column of the outer query, which is not allowed here");
                let advice =
                    format!("{name} in this subquery must be taken over a column of the subquery's own tables.");
                Finding::new(RULE.code, Severity::Error, ctx.query.span(call.span), &call.lower_name, message)
                    .with_advice(advice)
                    .with_fix(fix)
            }));
        }
        if outer || !(misplaced || call.is_inside_aggregate || lonely) {
            continue;
        }
        let name = call.lower_name.to_uppercase();
        let clause = call.clause.keyword();
        let (message, advice) = if call.is_inside_aggregate {
            (
                format!("{name} is nested inside another aggregate"),
                format!("Compute {name} in a subquery, then aggregate its result."),
            )
        } else if lonely {
            (
                format!("{name} sorts rows that are not grouped"),
                format!("Sort by the column itself, or add GROUP BY before sorting by {name}."),
            )
        } else if call.clause == Clause::GroupBy {
            (format!("{name} cannot be used in GROUP BY"), "Group by plain columns, not by aggregates.".to_string())
        } else {
            (
                format!("{name} cannot be used in {clause}: rows are not grouped yet"),
                format!("Move the condition on {name} from {clause} to HAVING, or compare with a subquery."),
            )
        };
        let mut finding =
            Finding::new("aggregate-in-where", Severity::Error, ctx.query.span(call.span), &call.lower_name, message)
                .with_advice(advice);
        if fixes::within_fix_budget(ctx, out) {
            finding.fixes = aggregates::fixes_for_call(call, ctx);
        }
        out.push(finding);
    }
    for call in resolution
        .calls
        .iter()
        .filter(|c| c.has_over && matches!(c.clause, Clause::Where | Clause::On | Clause::GroupBy | Clause::Having))
    {
        let (name, clause) = (call.lower_name.to_uppercase(), call.clause.keyword());
        let message = format!("{name} OVER (…) cannot be used in {clause}: window functions are evaluated last");
        let mut finding =
            Finding::new("aggregate-in-where", Severity::Error, ctx.query.span(call.span), &call.lower_name, message)
                .with_advice(format!("Compute {name} OVER (…) in a subquery, then filter its result outside."));
        if let Some(block) = call.block.filter(|_| call.clause == Clause::Where && fixes::within_fix_budget(ctx, out)) {
            finding.fixes.extend(windows::rewrite_where(block, ctx));
        }
        out.push(finding);
    }
    for reference in &resolution.references {
        let ColumnBinding::Alias(item) = reference.binding else { continue };
        let misplaced = matches!(reference.clause, Clause::Where | Clause::On | Clause::GroupBy);
        if misplaced && windows::item_has_window(reference.block, item, ctx) {
            let (name, clause) = (&reference.name.value, reference.clause.keyword());
            let message = format!(
                "`{name}` is computed by a window function and cannot be used in {clause}: window functions are evaluated last"
            );
            let mut finding = Finding::new(RULE.code, Severity::Error, ctx.query.span(reference.span), name, message)
                .with_advice(format!("Compute {name} in a subquery, then use it in the query around it."));
            if reference.clause == Clause::Where && fixes::within_fix_budget(ctx, out) {
                finding.fixes.extend(windows::rewrite_where(reference.block, ctx));
            }
            out.push(finding);
            continue;
        }
        if misplaced && ctx.item_has_aggregate(reference.block, item) {
            let (name, clause) = (&reference.name.value, reference.clause.keyword());
            let advice = match reference.clause {
                Clause::GroupBy => format!("{name} is an aggregate: group by plain columns instead."),
                _ => format!("{name} is an aggregate: filter it in HAVING, not in {clause}."),
            };
            let mut finding = Finding::new(
                "aggregate-in-where",
                Severity::Error,
                ctx.query.span(reference.span),
                name,
                format!("`{name}` is an aggregate and cannot be used in {clause}"),
            )
            .with_advice(advice);
            if fixes::within_fix_budget(ctx, out) {
                finding.fixes.extend(aggregates::fix_for_alias(reference, item, ctx));
            }
            out.push(finding);
        }
    }
}
