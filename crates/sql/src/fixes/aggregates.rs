//! Fixes for aggregates in clauses that do not allow them, most certain first.

use sqlparser::ast::{Expr, Spanned};
use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::fixes::nested_aggregates as nested;
use crate::fixes::query_block::{
    SET_OPERATIONS, contains_span, group_by_end, has_clause, insert, likely_fix, nested_calls,
};
use crate::resolve::{BlockId, Clause, ColumnBinding, ColumnReference, FunctionCall};
use crate::rule::RuleContext;
use crate::text::similarity::best_match;

/// Returns all fixes for a misplaced aggregate call.
pub(crate) fn fixes_for_call(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Vec<Fix> {
    let Some(block) = call.block else { return Vec::new() };
    let place = ctx.query.span(call.span);
    let fixes = match call.clause {
        Clause::Select if call.is_inside_aggregate => vec![
            aggregate_per_group(block, ctx),
            order_by_inner_aggregate(call, block, ctx),
            nested::best_of_filtered_groups(call, block, ctx),
            nested::unwrap_extreme(call, ctx),
            nested::unwrap_single_group(call, block, ctx),
        ],
        Clause::Where if !call.is_inside_aggregate => {
            let groups = count_groups(place, block, ctx);
            vec![move_to_having(place, None, block, ctx), groups, compare_with_subquery(call, ctx)]
        }
        Clause::On if !call.is_inside_aggregate => vec![compare_with_subquery(call, ctx)],
        Clause::OrderBy if !call.is_inside_aggregate => vec![fix_order_by(call, block, ctx)],
        Clause::GroupBy if !call.is_inside_aggregate => vec![remove_group_key(place, block, ctx)],
        _ => Vec::new(),
    };
    fixes.into_iter().flatten().collect()
}

/// Returns the fix for an alias that refers to an aggregate of the SELECT list.
pub(crate) fn fix_for_alias(reference: &ColumnReference<'_>, item: usize, ctx: &RuleContext<'_>) -> Option<Fix> {
    let place = ctx.query.span(reference.span);
    match reference.clause {
        Clause::Where => {
            let expression = ctx.resolution.blocks[reference.block].items.get(item)?.expression?;
            // If the dialect does not resolve aliases in HAVING, the aggregate is written out
            // again.
            let seen = ctx.context.dialect.alias_visibility.in_having;
            let written = (!seen).then(|| format!("({expression})"));
            move_to_having(place, written, reference.block, ctx)
        }
        Clause::GroupBy => remove_group_key(place, reference.block, ctx),
        _ => None,
    }
}

/// Returns the source text of the SELECT items without aggregates.
///
/// Returns `None` if one of them is not a plain column.
fn plain_select_items(block: BlockId, ctx: &RuleContext<'_>) -> Option<Vec<String>> {
    let items = &ctx.resolution.blocks[block].items;
    let mut out = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match item.expression? {
            e @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
                out.push(ctx.query.text(ctx.query.span(e.span())).to_string())
            }
            _ if ctx.item_has_aggregate(block, i) => {}
            _ => return None,
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Moves the condition from WHERE to HAVING.
///
/// A block without GROUP BY is grouped by its plain columns, but only for COUNT and SUM: a MIN, MAX
/// or AVG may refer to the whole table.
fn move_to_having(span: Span, written: Option<String>, block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let grouped = ctx.resolution.blocks[block].is_grouped;
    let (word, parts) = fixes::where_conjuncts(ctx, block)?;
    let at = parts.iter().position(|p| contains_span(*p, span))?;
    if has_ungrouped_column(parts[at], block, ctx) {
        return None;
    }
    let whole = |c: &&FunctionCall<'_>| c.is_aggregate && contains_span(parts[at], ctx.query.span(c.span));
    let groups_only =
        ctx.resolution.calls.iter().filter(whole).all(|c| matches!(c.lower_name.as_str(), "count" | "sum"))
            && written.is_none();
    let keys = match grouped {
        true => None,
        false => Some(
            plain_select_items(block, ctx)
                .filter(|items| groups_only && items.len() == ctx.resolution.blocks[block].items.len())?,
        ),
    };
    let mut condition = ctx.query.text(parts[at]).to_string();
    if let Some(written) = written {
        condition.replace_range(span.start - parts[at].start..span.end - parts[at].start, &written);
    }
    // Remove the condition together with the preceding AND, the following AND, or WHERE itself.
    let removed = match (at, parts.get(at + 1)) {
        (0, None) => word.join(parts[0]),
        (0, Some(next)) => Span::new(parts[0].start, next.start),
        _ => Span::new(parts[at - 1].end, parts[at].end),
    };
    let end = group_by_end(block, true, ctx)?;
    let group_by = keys.map_or(String::new(), |keys| format!(" GROUP BY {}", keys.join(", ")));
    let having = if has_clause(block, &[Keyword::HAVING], ctx) { "AND" } else { "HAVING" };
    let edits =
        vec![Edit { span: removed, text: String::new() }, insert(end, format!("{group_by} {having} {condition}"))];
    Some(likely_fix(edits, "aggregates are computed after grouping, where HAVING filters"))
}

/// Returns whether a condition compares a column with an aggregate of the same column.
///
/// `salary > AVG(salary)` is about single rows, and a group has many.
fn has_ungrouped_column(part: Span, block: BlockId, ctx: &RuleContext<'_>) -> bool {
    let resolution = ctx.resolution;
    if !resolution.blocks[block].is_grouped {
        return false;
    }
    let own = resolution.calls.iter().filter(|c| c.is_aggregate && c.block == Some(block));
    let calls: Vec<Span> = own.filter_map(|c| fixes::call_span(ctx, ctx.query.span(c.span)).map(|w| w.0)).collect();
    let inside = |r: &ColumnReference<'_>| calls.iter().any(|c| contains_span(*c, ctx.query.span(r.span)));
    let key = |r: &ColumnReference<'_>| {
        resolution.references.iter().any(|k| k.block == block && k.clause == Clause::GroupBy && k.binding == r.binding)
    };
    let here: Vec<&ColumnReference<'_>> = resolution
        .references
        .iter()
        .filter(|r| r.block == block && contains_span(part, ctx.query.span(r.span)))
        .filter(|r| matches!(r.binding, ColumnBinding::Column(..)))
        .collect();
    here.iter().any(|r| !inside(r) && !key(r) && here.iter().any(|o| inside(o) && o.binding == r.binding))
}

/// Counts the groups that satisfy the condition.
///
/// `SELECT COUNT(user) … WHERE COUNT(badge) > 5` asks how many users have more than five badges:
/// group by user, filter the groups, count the remaining ones.
fn count_groups(span: Span, block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let resolution = ctx.resolution;
    let b = &resolution.blocks[block];
    let ([item], false) = (b.items.as_slice(), b.is_grouped) else { return None };
    let alone = matches!(item.expression?, Expr::Function(_));
    let count =
        resolution.calls.iter().find(|c| c.block == Some(block) && c.clause == Clause::Select && c.is_aggregate)?;
    let (whole, arguments) = fixes::call_span(ctx, ctx.query.span(count.span))?;
    if !alone
        || count.lower_name != "count"
        || count.first_argument.column.is_none()
        || has_clause(block, SET_OPERATIONS, ctx)
    {
        return None;
    }
    let key = ctx.query.text(*arguments.first()?).trim();
    let key = key.get(..9).filter(|w| w.eq_ignore_ascii_case("distinct ")).map_or(key, |_| key[9..].trim());
    let (word, parts) = fixes::where_conjuncts(ctx, block)?;
    let at = parts.iter().position(|p| contains_span(*p, span))?;
    let removed = match (at, parts.get(at + 1)) {
        (0, None) => word.join(parts[0]),
        (0, Some(next)) => Span::new(parts[0].start, next.start),
        _ => Span::new(parts[at - 1].end, parts[at].end),
    };
    let from = fixes::from_keyword(ctx, block)?;
    let end = group_by_end(block, true, ctx)?;
    let edits = vec![
        Edit { span: whole, text: "COUNT(*)".into() },
        insert(from.start, format!("FROM (SELECT {key} ")),
        Edit { span: removed, text: String::new() },
        insert(end, format!(" GROUP BY {key} HAVING {}) AS each_group", ctx.query.text(parts[at]))),
    ];
    Some(likely_fix(edits, format!("each `{key}` is counted once, if its group satisfies the condition")))
}

/// Replaces the aggregate in `x = MAX(x)` with a subquery over the whole table.
fn compare_with_subquery(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (source, _) =
        call.first_argument.column.filter(|_| matches!(call.lower_name.as_str(), "min" | "max" | "avg"))?;
    let table = ctx.resolution.sources[source].table()?;
    let (whole, arguments) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    let argument = ctx.query.text(*arguments.first()?).rsplit('.').next()?.trim().to_string();
    let text = format!(
        "(SELECT {}({argument}) FROM {})",
        call.lower_name.to_uppercase(),
        ctx.context.dialect.quote_identifier(&table.name)
    );
    let why = format!("each row is compared with the {} over all of `{}`", call.lower_name, table.name);
    // In a grouped block, the extreme of each group may be meant.
    let grouped = call.block.is_some_and(|b| ctx.resolution.blocks[b].is_grouped);
    let applicability = if grouped { Applicability::Suggested } else { Applicability::Likely };
    let alone =
        call.block.and_then(|b| fixes::where_conjuncts(ctx, b)).is_some_and(|(_, parts)| parts.contains(&whole));
    if alone && call.clause == Clause::Where {
        // `WHERE MAX(salary)` has no other operand, so compare with the column itself.
        let text = format!("{} = {text}", ctx.query.text(*arguments.first()?).trim());
        return Some(fixes::replace(whole, text, Applicability::Suggested, why));
    }
    Some(fixes::replace(whole, text, applicability, why))
}

/// Computes the inner aggregate per group in a subquery and the outer one over its rows.
///
/// Applies to `SELECT MAX(COUNT(*)) FROM … GROUP BY …`, and only if the SELECT list contains
/// nothing else.
fn aggregate_per_group(block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let resolution = ctx.resolution;
    let inner = nested_calls(block, ctx);
    let free = resolution.references.iter().any(|r| {
        r.block == block
            && r.clause == Clause::Select
            && !inner.iter().any(|i| contains_span(*i, ctx.query.span(r.span)))
    });
    let flat = resolution.calls.iter().any(|c| {
        let whole = fixes::call_span(ctx, ctx.query.span(c.span)).map(|(whole, _)| whole);
        c.is_aggregate
            && !c.is_inside_aggregate
            && c.block == Some(block)
            && c.clause == Clause::Select
            && !whole.is_some_and(|w| inner.iter().any(|i| contains_span(w, *i)))
    });
    let b = &resolution.blocks[block];
    if !b.is_grouped || free || flat || b.items.iter().any(|i| i.expression.is_none()) {
        return None;
    }
    let from = fixes::from_keyword(ctx, block)?;
    let end = group_by_end(block, true, ctx)?;
    let names: Vec<String> =
        (1..=inner.len()).map(|n| if n == 1 { "amount".into() } else { format!("amount_{n}") }).collect();
    let columns: Vec<String> =
        inner.iter().zip(&names).map(|(i, n)| format!("{} AS {n}", ctx.query.text(*i))).collect();
    let mut edits: Vec<Edit> = inner.iter().zip(&names).map(|(i, n)| Edit { span: *i, text: n.clone() }).collect();
    edits.push(insert(from.start, format!("FROM (SELECT {} ", columns.join(", "))));
    edits.push(insert(end, ") AS each_group".into()));
    Some(likely_fix(edits, "the inner aggregate is computed for each group, and the outer one over the groups"))
}

/// Sorts the groups by the inner aggregate and keeps the first one.
///
/// Applies to `SELECT name, MAX(COUNT(*)) FROM … GROUP BY name`.
fn order_by_inner_aggregate(call: &FunctionCall<'_>, block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let inner = nested_calls(block, ctx).into_iter().find(|i| i.start == ctx.query.span(call.span).start)?;
    let calls =
        ctx.resolution.calls.iter().filter(|c| c.is_aggregate && !c.is_inside_aggregate && c.block == Some(block));
    let (outer, whole) = calls.into_iter().find_map(|c| {
        let (whole, arguments) = fixes::call_span(ctx, ctx.query.span(c.span))?;
        let alone = arguments.len() == 1 && contains_span(arguments[0], inner);
        let same = alone && ctx.query.text(arguments[0]).trim() == ctx.query.text(inner);
        same.then_some((c, whole))
    })?;
    let direction = match outer.lower_name.as_str() {
        "max" => " DESC",
        "min" => "",
        _ => return None,
    };
    let keys = plain_select_items(block, ctx)?;
    if has_clause(block, SET_OPERATIONS, ctx) {
        return None;
    }
    let text = ctx.query.text(inner).to_string();
    let mut edits = vec![Edit { span: whole, text: text.clone() }];
    let end = group_by_end(block, true, ctx)?;
    let mut after = String::new();
    if !ctx.resolution.blocks[block].is_grouped {
        after = format!(" GROUP BY {}", keys.join(", "));
    }
    if !has_clause(block, &[Keyword::ORDER, Keyword::LIMIT, Keyword::FETCH], ctx) {
        after.push_str(&format!(" ORDER BY {text}{direction} LIMIT 1"));
    }
    if !after.is_empty() {
        edits.push(insert(end, after));
    }
    Some(likely_fix(
        edits,
        format!("the group with the {} is the first one when groups are sorted by it", outer.lower_name),
    ))
}

/// Fixes an aggregate in the ORDER BY of an ungrouped block.
///
/// MIN and MAX are replaced with their column if the sort direction puts the extreme first. For
/// COUNT or SUM the block is grouped by its plain columns.
fn fix_order_by(call: &FunctionCall<'_>, block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (whole, arguments) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    match call.lower_name.as_str() {
        "min" | "max" => {
            let [argument] = arguments.as_slice() else { return None };
            let after = fixes::tokens_to_end(ctx, ctx.resolution.blocks[block].from_start)
                .into_iter()
                .find(|(_, span, _)| span.start >= whole.end);
            let direction_keyword = after.and_then(|(_, _, token)| fixes::keyword(&token));
            let direction = match (call.lower_name.as_str(), direction_keyword) {
                ("max", Some(Keyword::DESC)) | ("min", Some(Keyword::ASC)) => "",
                ("max", Some(Keyword::ASC)) | ("min", Some(Keyword::DESC)) => return None,
                ("max", _) => " DESC",
                _ => "",
            };
            let text = format!("{}{direction}", ctx.query.text(*argument).trim());
            let why =
                format!("the row with the {} is the first one when rows are sorted by the column", call.lower_name);
            Some(fixes::replace(whole, text, Applicability::Likely, why))
        }
        _ => {
            let keys = plain_select_items(block, ctx)?;
            let end = group_by_end(block, true, ctx)?;
            let text = format!(" GROUP BY {}", keys.join(", "));
            Some(likely_fix(
                vec![insert(end, text)],
                "rows are counted per group, and the selected columns define the groups",
            ))
        }
    }
}

/// Removes an aggregate from GROUP BY.
///
/// If it is the only key, the plain columns of the SELECT list replace it.
fn remove_group_key(place: Span, block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let mut keys: Vec<Span> = Vec::new();
    let (mut open, mut inside) = (None::<Span>, false);
    for (depth, span, token) in fixes::tokens_to_end(ctx, ctx.resolution.blocks[block].from_start) {
        let word = fixes::keyword(&token).filter(|_| depth == 0);
        match word {
            Some(Keyword::GROUP) => {
                inside = true;
                continue;
            }
            Some(Keyword::BY) if inside && open.is_none() => continue,
            Some(k) if inside && fixes::CLAUSES_AFTER_FROM.contains(&k) => break,
            _ => {}
        }
        if inside && depth == 0 && token == sqlparser::tokenizer::Token::Comma {
            keys.extend(open.take());
        } else if inside {
            open = Some(open.map_or(span, |o| o.join(span)));
        }
    }
    keys.extend(open);
    let at = keys.iter().position(|k| contains_span(*k, place))?;
    let why = "GROUP BY takes plain columns; aggregates are computed from the groups";
    if keys.len() == 1 {
        let items = plain_select_items(block, ctx)?;
        return Some(likely_fix(vec![Edit { span: keys[0], text: items.join(", ") }], why));
    }
    let removed =
        if at == 0 { Span::new(keys[0].start, keys[1].start) } else { Span::new(keys[at - 1].end, keys[at].end) };
    Some(likely_fix(vec![Edit { span: removed, text: String::new() }], why))
}

/// Replaces a column inside an aggregate that only the outer query has.
///
/// The replacement is the most similar column of the subquery's own tables.
pub(crate) fn use_own_column(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    let resolution = ctx.resolution;
    let (whole, _) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    let reference = resolution.references.iter().find(|r| {
        let captured =
            matches!(r.binding, ColumnBinding::Column(s, _) if Some(resolution.sources[s].block) != call.block);
        Some(r.block) == call.block && r.qualifier.is_none() && captured && contains_span(whole, ctx.query.span(r.span))
    })?;
    let own = resolution.blocks[reference.block].sources.iter().flat_map(|&s| resolution.sources[s].column_names());
    let near = best_match(&reference.name.value, own)?;
    let alike = |r: &&ColumnReference<'_>| {
        r.block == reference.block && r.qualifier.is_none() && r.name.value == reference.name.value && !r.is_wildcard
    };
    let text = ctx.context.dialect.quote_identifier(near);
    let places = resolution.references.iter().filter(alike).map(|r| ctx.query.span(r.span));
    let edits: Vec<Edit> = places.map(|span| Edit { span, text: text.clone() }).collect();
    let why = format!("`{near}` is the column of the subquery's own tables most similar to `{}`", reference.name.value);
    Some(likely_fix(edits, why))
}
