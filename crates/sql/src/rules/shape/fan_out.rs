#![doc = include_str!("fan_out.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::fixes;
use crate::resolve::{BlockId, Clause, ColumnBinding, Resolution, SourceId};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `fan-out` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "fan-out",
    group: RuleGroup::Shape,
    error_type: ErrorType::Unknown,
    page: include_str!("fan_out.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let resolution = ctx.resolution;
    check_counted_keys(ctx, out);
    for call in resolution
        .calls
        .iter()
        .filter(|c| c.is_aggregate && !c.is_distinct && matches!(c.lower_name.as_str(), "sum" | "avg"))
    {
        let (Some(block), Some((source, column))) = (call.block, call.first_argument.column) else { continue };
        if resolution.sources[source].block != block {
            continue;
        }
        if call.lower_name == "avg" && is_grouped_by_key(resolution, block, source) {
            continue;
        }
        let Some(multiplier) = resolution.blocks[block]
            .sources
            .iter()
            .copied()
            .find(|&other| other != source && fans_out(resolution, block, source, other))
        else {
            continue;
        };
        let (table, other) = (resolution.sources[source].display_name(), resolution.sources[multiplier].display_name());
        let name = resolution.sources[source].column_names().get(column).copied().unwrap_or("").to_string();
        out.push(
            Finding::new(
                "fan-out",
                Severity::Warning,
                ctx.query.span(call.span),
                &name,
                format!(
                    "a row of `{table}` can match many rows of `{other}`: `{name}` is counted more than once in {}",
                    call.lower_name.to_uppercase()
                ),
            )
            .with_advice(format!(
                "Aggregate {table}.{name} before joining {other}, or filter with EXISTS instead of joining it."
            )),
        );
    }
}

/// Reports keys of a table that are counted once for every joined row of another table.
fn check_counted_keys(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let resolution = ctx.resolution;
    for call in resolution.calls.iter().filter(|c| c.is_aggregate && !c.is_distinct && c.lower_name == "count") {
        let (Some(block), Some((source, index))) = (call.block, call.first_argument.column) else { continue };
        let Some(table) = resolution.sources[source].table().filter(|_| resolution.sources[source].block == block)
        else {
            continue;
        };
        let column = table.columns[index].name.as_str();
        if !table.is_unique(&[column]) || is_grouped_by_key(resolution, block, source) {
            continue;
        }
        let others = resolution.blocks[block].sources.iter().copied();
        let Some(other) = others.filter(|&o| o != source).find(|&o| fans_out(resolution, block, source, o)) else {
            continue;
        };
        let (name, other) = (resolution.sources[source].display_name(), resolution.sources[other].display_name());
        let span = ctx.query.span(call.span);
        let message =
            format!("a row of `{name}` can match many rows of `{other}`: its `{column}` is counted more than once");
        let finding = Finding::new(RULE.code, Severity::Warning, span, column, message)
            .with_advice(format!("Write COUNT(DISTINCT {name}.{column}) to count rows of {name}."));
        out.push(with_distinct(finding, ctx));
    }
}

/// Adds a fix with DISTINCT. It is not applied automatically: a count of a key over a join may well
/// be meant to count the rows of the join.
fn with_distinct(finding: Finding, ctx: &RuleContext<'_>) -> Finding {
    let arguments = fixes::call_span(ctx, finding.span).map(|(_, arguments)| arguments).unwrap_or_default();
    let [argument] = arguments.as_slice() else { return finding };
    let at = Span::new(argument.start, argument.start);
    let fix = fixes::replace(at, "DISTINCT ", Applicability::Likely, "each row is then counted once");
    finding.with_fix(fix)
}

/// Returns whether each group contains one row of the source, so that the mean of its copies is the
/// value itself.
fn is_grouped_by_key(resolution: &Resolution<'_>, block: BlockId, source: SourceId) -> bool {
    let Some(table) = resolution.sources[source].table() else { return false };
    let keys: Vec<&str> = resolution
        .references
        .iter()
        .filter(|r| r.block == block && r.clause == Clause::GroupBy)
        .filter_map(|r| match r.binding {
            ColumnBinding::Column(s, i) if s == source => Some(table.columns[i].name.as_str()),
            _ => None,
        })
        .collect();
    table.is_unique(&keys)
}

/// Returns whether a row of `one` can join several rows of `many`: they are joined on a key of the
/// former that is not a key of the latter.
fn fans_out(resolution: &Resolution<'_>, block: BlockId, one: SourceId, many: SourceId) -> bool {
    let (Some(one_table), Some(many_table)) = (resolution.sources[one].table(), resolution.sources[many].table())
    else {
        return false;
    };
    let mut one_columns: Vec<&str> = Vec::new();
    let mut many_columns: Vec<&str> = Vec::new();
    for o in resolution
        .operations
        .iter()
        .filter(|o| o.block == Some(block) && o.is_conjunct && *o.operator == BinaryOperator::Eq)
    {
        for (a, b) in [(o.left, o.right), (o.right, o.left)] {
            match (a.column, b.column) {
                (Some((s, i)), Some((t, j))) if s == one && t == many => {
                    one_columns.push(&one_table.columns[i].name);
                    many_columns.push(&many_table.columns[j].name);
                }
                // A column compared with a constant is fixed, and may complete a key.
                (Some((s, i)), None) if s == many && b.literal.is_some() => {
                    many_columns.push(&many_table.columns[i].name)
                }
                _ => {}
            }
        }
    }
    let has_keys = !many_table.primary_key.is_empty() || !many_table.unique.is_empty();
    !one_columns.is_empty() && one_table.is_unique(&one_columns) && has_keys && !many_table.is_unique(&many_columns)
}
