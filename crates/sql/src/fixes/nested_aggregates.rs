//! Fixes for nested aggregates in blocks without GROUP BY.

use sqlparser::ast::{BinaryOperator, Spanned};
use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::fixes::query_block::{
    SET_OPERATIONS, contains_span, group_by_end, has_clause, insert, likely_fix, nested_calls,
};
use crate::resolve::{BlockId, Clause, FunctionCall};
use crate::rule::RuleContext;

/// Returns the aggregate that directly encloses a call, its full span and its only argument.
fn enclosing_aggregate<'s>(
    call: &FunctionCall<'_>,
    block: BlockId,
    ctx: &RuleContext<'s>,
) -> Option<(&'s FunctionCall<'s>, Span, Span)> {
    let place = ctx.query.span(call.span);
    let calls =
        ctx.resolution.calls.iter().filter(|c| c.is_aggregate && !c.is_inside_aggregate && c.block == Some(block));
    calls.into_iter().find_map(|c| {
        let (whole, arguments) = fixes::call_span(ctx, ctx.query.span(c.span))?;
        let [argument] = arguments.as_slice() else { return None };
        contains_span(*argument, place).then_some((c, whole, *argument))
    })
}

/// Groups by the filtered column and keeps the first group in sort order.
///
/// In `MAX(SUM(x)) … WHERE name = 'A' OR name = 'B'` the listed values are the groups.
pub(crate) fn best_of_filtered_groups(call: &FunctionCall<'_>, block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let resolution = ctx.resolution;
    if resolution.blocks[block].is_grouped
        || resolution.blocks[block].items.len() != 1
        || has_clause(block, SET_OPERATIONS, ctx)
    {
        return None;
    }
    let (outer, whole, argument) = enclosing_aggregate(call, block, ctx)?;
    let direction = match outer.lower_name.as_str() {
        "max" => " DESC",
        "min" => "",
        _ => return None,
    };
    let inner = nested_calls(block, ctx);
    let text = ctx.query.text(argument).trim();
    if !matches!(inner.as_slice(), [only] if ctx.query.text(*only) == text) {
        return None;
    }
    let mut named = resolution.operations.iter().filter(|o| {
        let choice = *o.operator == BinaryOperator::Eq && !o.is_conjunct && o.right.literal.is_some();
        choice && o.block == Some(block) && o.clause == Clause::Where
    });
    let first = named.next()?;
    let key = first.left.column?;
    let mut others = 0;
    for o in named {
        if o.left.column != Some(key) {
            return None;
        }
        others += 1;
    }
    if others == 0 || has_clause(block, &[Keyword::ORDER, Keyword::LIMIT, Keyword::FETCH], ctx) {
        return None;
    }
    let key = ctx.query.text(ctx.query.span(first.left_node.span()));
    let end = group_by_end(block, true, ctx)?;
    let after = format!(" GROUP BY {key} ORDER BY {text}{direction} LIMIT 1");
    let why =
        format!("`{key}` is compared with several values, and the one with the {} is requested", outer.lower_name);
    Some(likely_fix(vec![Edit { span: whole, text: text.to_string() }, insert(end, after)], why))
}

/// Replaces `MAX(x)` with `x` where it is compared with a subquery for the extreme.
///
/// In `COUNT(…) FILTER (WHERE MAX(x) = (SELECT MAX(x) …))` a single row has no maximum, so its own
/// value is meant.
pub(crate) fn unwrap_extreme(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    if !matches!(call.lower_name.as_str(), "min" | "max") {
        return None;
    }
    let (whole, arguments) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    let [argument] = arguments.as_slice() else { return None };
    let compared = ctx.resolution.operations.iter().any(|o| {
        let (left, right) = (ctx.query.span(o.left_node.span()), ctx.query.span(o.right_node.span()));
        let extreme = |span: Span| {
            let text = ctx.query.text(span).trim_start_matches(['(', ' ', '\n']).to_ascii_lowercase();
            text.strip_prefix("select")
                .is_some_and(|rest| rest.trim_start().starts_with(&format!("{}(", call.lower_name)))
        };
        *o.operator == BinaryOperator::Eq
            && ((left.start == whole.start && extreme(right)) || (right.start == whole.start && extreme(left)))
    });
    let text = ctx.query.text(*argument).trim().to_string();
    let why = format!("a row is compared with the {} of all rows, so its own value is meant", call.lower_name);
    compared.then(|| fixes::replace(whole, text, Applicability::Likely, why))
}

/// Removes the outer aggregate of a block without GROUP BY.
///
/// Such a block has one group, and an aggregate of a single value is that value.
pub(crate) fn unwrap_single_group(call: &FunctionCall<'_>, block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let resolution = ctx.resolution;
    let (outer, whole, argument) = enclosing_aggregate(call, block, ctx)?;
    let inner = nested_calls(block, ctx);
    let free = resolution.references.iter().any(|r| {
        let span = ctx.query.span(r.span);
        r.block == block && contains_span(argument, span) && !inner.iter().any(|i| contains_span(*i, span))
    });
    if resolution.blocks[block].is_grouped
        || free
        || !matches!(outer.lower_name.as_str(), "max" | "min" | "avg" | "sum")
    {
        return None;
    }
    let text = format!("({})", ctx.query.text(argument).trim());
    let why = format!("without GROUP BY there is one group, and the {} of one value is that value", outer.lower_name);
    Some(fixes::replace(whole, text, Applicability::Suggested, why))
}
