#![doc = include_str!("missing_group_by.md")]

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Span as TokenSpan;

use crate::dialect::UngroupedColumns;
use crate::finding::{Applicability, Finding, Fix, Severity, Span};
use crate::fixes;
use crate::resolve::{BlockId, Clause, ColumnBinding, ColumnReference, Resolution, SelectBlock, SourceId, expr_span};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `missing-group-by` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "missing-group-by",
    group: RuleGroup::Shape,
    error_type: ErrorType::Aggregation,
    page: include_str!("missing_group_by.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let resolution = ctx.resolution;
    for (id, block) in resolution.blocks.iter().enumerate() {
        if block.has_grouping_sets || !(block.is_grouped || block.has_aggregates) {
            continue;
        }
        let (in_keys, keys) = (columns_fixed_by_keys(ctx, id, false), columns_fixed_by_keys(ctx, id, true));
        let loose = ctx.context.dialect.grouping == UngroupedColumns::AnyRow;
        if loose && has_single_min_max(resolution, id) {
            continue;
        }
        for reference in resolution.references.iter().filter(|r| r.block == id && !r.in_aggregate && !r.in_group_key) {
            let ColumnBinding::Column(source, column) = reference.binding else { continue };
            let clause_counts = matches!(reference.clause, Clause::Select | Clause::Having | Clause::OrderBy);
            // `upper(o.x)` may be the `upper(x)` of GROUP BY; a plain column is not an expression.
            let fixed = if !loose && is_select_item(block, reference) { &keys } else { &in_keys };
            if !clause_counts || resolution.sources[source].block != id || is_determined(ctx, fixed, source, column) {
                continue;
            }
            let severity = if loose { Severity::Warning } else { Severity::Error };
            let span = ctx.query.span(reference.span);
            let qualifier = reference.qualifier.map_or(String::new(), |q| format!("{}.", q.value));
            let name = format!("{qualifier}{}", reference.name.value);
            let written = ctx.query.text(span);
            let message = match (loose, block.is_grouped) {
                (true, _) => format!("`{name}` is neither aggregated nor in GROUP BY: any row's value is taken"),
                (false, true) => format!("`{name}` must be in GROUP BY or in an aggregate"),
                (false, false) => format!("`{name}` is used with an aggregate: GROUP BY is missing"),
            };
            let mut finding = Finding::new("missing-group-by", severity, span, &name, message)
                .with_advice(format!("Keep every aggregate, and add {written} to GROUP BY or aggregate it."));
            if !loose {
                let equal = is_equal_to_key(ctx, id, keys.clone(), (source, column));
                finding.fixes.extend(add_to_group_by(ctx, id, written, equal));
            }
            out.push(finding);
        }
    }
}

/// Returns whether the only aggregate of a block is MIN or MAX.
///
/// In SQLite, a bare column next to it comes from the row with that value, and people rely on that.
fn has_single_min_max(resolution: &Resolution<'_>, block: BlockId) -> bool {
    let mut calls = resolution.calls.iter().filter(|c| c.block == Some(block) && c.is_aggregate);
    matches!((calls.next(), calls.next()), (Some(only), None) if matches!(only.lower_name.as_str(), "min" | "max"))
}

/// Returns whether a reference is a whole item of the SELECT list.
fn is_select_item(block: &SelectBlock<'_>, reference: &ColumnReference<'_>) -> bool {
    reference.clause == Clause::Select
        && block
            .items
            .iter()
            .filter_map(|i| i.expression)
            .any(|e| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) && expr_span(e) == reference.span)
}

/// Returns the columns that have one value per group: the keys (or, unless `exact`, any column
/// inside a key), and the columns that joins equate with them.
fn columns_fixed_by_keys(ctx: &RuleContext<'_>, block: BlockId, exact: bool) -> Vec<(SourceId, usize)> {
    let resolution = ctx.resolution;
    let keys: Vec<TokenSpan> = resolution.blocks[block].group_keys.iter().map(|k| expr_span(k)).collect();
    let mut fixed: Vec<(SourceId, usize)> = resolution
        .references
        .iter()
        // Keys written as an ordinal or an alias are in SELECT.
        .filter(|r| r.block == block && r.in_group_key && matches!(r.clause, Clause::GroupBy | Clause::Select))
        .filter(|r| !exact || keys.contains(&r.span))
        .filter_map(|r| match r.binding {
            ColumnBinding::Column(s, c) => Some((s, c)),
            _ => None,
        })
        .collect();
    for merged in &resolution.blocks[block].using_columns {
        let columns: Vec<(SourceId, usize)> = resolution.blocks[block]
            .sources
            .iter()
            .filter_map(|&s| {
                let at = resolution.sources[s].column_names().iter().position(|c| c.eq_ignore_ascii_case(merged))?;
                Some((s, at))
            })
            .collect();
        if columns.iter().any(|c| fixed.contains(c)) {
            fixed.extend(columns);
        }
    }
    if matches!(ctx.context.dialect.grouping, UngroupedColumns::AnyRow | UngroupedColumns::FunctionallyDependent) {
        extend_by_equality(resolution, block, &mut fixed, &|_| true);
    }
    fixed
}

/// Adds the columns that also have one value, because they equal a fixed column or a constant.
fn extend_by_equality(
    resolution: &Resolution<'_>,
    block: BlockId,
    fixed: &mut Vec<(SourceId, usize)>,
    counts: &dyn Fn(Clause) -> bool,
) {
    let equal: Vec<_> = resolution
        .operations
        .iter()
        .filter(|o| o.block == Some(block) && o.is_conjunct && *o.operator == BinaryOperator::Eq && counts(o.clause))
        .collect();
    loop {
        let before = fixed.len();
        for o in &equal {
            for (a, b) in [(o.left, o.right), (o.right, o.left)] {
                let known = b.column.is_some_and(|c| fixed.contains(&c)) || b.literal.is_some();
                if let Some(a) = a.column.filter(|a| known && !fixed.contains(a)) {
                    fixed.push(a);
                }
            }
        }
        if fixed.len() == before {
            return;
        }
    }
}

/// Returns whether a column has one value per group: it is fixed, or a key of its table is.
fn is_determined(ctx: &RuleContext<'_>, fixed: &[(SourceId, usize)], source: SourceId, column: usize) -> bool {
    if fixed.contains(&(source, column)) {
        return true;
    }
    if ctx.context.dialect.grouping == UngroupedColumns::Rejected {
        return false;
    }
    let Some(table) = ctx.resolution.sources[source].table() else {
        // The keys of a subquery are unknown.
        return ctx.context.dialect.grouping == UngroupedColumns::AnyRow && fixed.iter().any(|(s, _)| *s == source);
    };
    let names: Vec<&str> =
        fixed.iter().filter(|(s, _)| *s == source).map(|(_, c)| table.columns[*c].name.as_str()).collect();
    table.is_unique(&names)
}

/// Returns whether a column has one value per group although the engine does not infer it, so that
/// grouping by it adds no groups.
fn is_equal_to_key(
    ctx: &RuleContext<'_>,
    block: BlockId,
    mut keys: Vec<(SourceId, usize)>,
    column: (SourceId, usize),
) -> bool {
    if !ctx.resolution.blocks[block].is_grouped {
        return false;
    }
    extend_by_equality(ctx.resolution, block, &mut keys, &|clause| matches!(clause, Clause::Where | Clause::On));
    keys.contains(&column)
}

/// Adds the column to GROUP BY, or adds GROUP BY with every bare column; aggregates are unchanged.
fn add_to_group_by(ctx: &RuleContext<'_>, block: BlockId, name: &str, equal: bool) -> Option<Fix> {
    let stops: Vec<Keyword> =
        fixes::CLAUSES_AFTER_FROM.iter().copied().filter(|k| !matches!(k, Keyword::WHERE | Keyword::GROUP)).collect();
    let end = fixes::clause_end(ctx, ctx.resolution.blocks[block].from_start, &stops)?;
    let text = if ctx.resolution.blocks[block].is_grouped { format!(", {name}") } else { format!(" GROUP BY {name}") };
    let (sure, why) = match equal {
        true => (Applicability::Safe, "it is determined by the columns in GROUP BY, so the groups stay the same"),
        false => (Applicability::Likely, "every column that is not aggregated must be in GROUP BY"),
    };
    Some(fixes::replace(Span::new(end, end), text, sure, why))
}
