//! Fixes for conditions on window functions.
//!
//! Windows are evaluated last, so a condition on them belongs in an outer query.

use sqlparser::ast::{Distinct, Expr, SelectItem, SetExpr, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::fixes::query_block::{contains_span, insert};
use crate::resolve::{BlockId, Clause, ColumnBinding, ColumnReference};
use crate::rule::RuleContext;

/// Keywords of the clauses that follow grouping.
const CLAUSES_AFTER_GROUPING: &[Keyword] = &[
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::WINDOW,
];

/// Moves conditions on window functions, or on their aliases, from WHERE to an outer query.
///
/// Applies to `… WHERE RANK() OVER (…) <= 3`.
pub(crate) fn rewrite_where(block: BlockId, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (word, parts) = fixes::where_conjuncts(ctx, block)?;
    let moved: Vec<Span> = parts.iter().copied().filter(|p| has_window_reference(*p, block, ctx)).collect();
    if moved.is_empty() {
        return None;
    }
    let kept: Vec<&str> = parts.iter().filter(|p| !moved.contains(p)).map(|p| ctx.query.text(*p)).collect();
    let clause = word.join(*parts.last()?);
    let text = if kept.is_empty() { String::new() } else { format!("WHERE {}", kept.join(" AND ")) };
    let end = fixes::clause_end(ctx, ctx.resolution.blocks[block].from_start, CLAUSES_AFTER_GROUPING)?;
    let mut edits = vec![Edit { span: clause, text }];
    // Also remove the whitespace before an empty clause.
    if kept.is_empty() {
        let before = ctx.query.source[..clause.start].trim_end().len();
        edits[0].span.start = before;
    }
    wrap_in_subquery(block, &moved, edits, end, ctx)
}

/// Rewrites `… QUALIFY RANK() OVER (…) <= 3` as the WHERE of an outer query.
pub(crate) fn rewrite_qualify(condition: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let blocks = 0..ctx.resolution.blocks.len();
    blocks.rev().find_map(|block| {
        let start = ctx.resolution.blocks[block].from_start;
        let rest = fixes::tokens_to_end(ctx, start);
        let at = rest.iter().position(|(depth, span, token)| {
            *depth == 0 && fixes::keyword(token) == Some(Keyword::QUALIFY) && span.end <= condition.start
        })?;
        let last = |(depth, _, token): &&(usize, Span, Token)| {
            *depth == 0 && fixes::keyword(token).is_some_and(|k| CLAUSES_AFTER_GROUPING.contains(&k))
        };
        let own: Vec<_> = rest[at + 1..].iter().take_while(|t| !last(t)).collect();
        let whole = own.first()?.1.join(own.last()?.1);
        if !contains_span(whole, condition) {
            return None;
        }
        let removed = Span::new(ctx.query.source[..rest[at].1.start].trim_end().len(), whole.end);
        wrap_in_subquery(block, &[whole], vec![Edit { span: removed, text: String::new() }], whole.end, ctx)
    })
}

/// Rewrites `SELECT DISTINCT ON (a) …` with ROW_NUMBER to keep the first row of each group.
pub(crate) fn rewrite_distinct_on(select_word: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let resolution = ctx.resolution;
    let block = (0..resolution.blocks.len())
        .find(|&b| ctx.query.span(resolution.blocks[b].select_span).start == select_word.start)?;
    let b = &resolution.blocks[block];
    let statement = ctx.query.statements.first()?;
    let sqlparser::ast::Statement::Query(query) = statement else { return None };
    let SetExpr::Select(select) = &*query.body else { return None };
    // Only the top-level query is supported, since the spans of its parts are known.
    let Some(Distinct::On(keys)) = &select.distinct else { return None };
    let plain = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    if b.is_grouped || b.has_aggregates || keys.is_empty() || !keys.iter().all(plain) {
        return None;
    }
    let outputs = output_names(block, ctx)?;
    let tokens = fixes::significant_tokens(ctx);
    let at = tokens.iter().position(|(span, _)| span.start == select_word.start)?;
    let open = at + 3;
    let close = (open..tokens.len()).find(|&i| tokens[i].1 == Token::RParen)?;
    (tokens.get(open)?.1 == Token::LParen).then_some(())?;
    let keys = ctx.query.text(Span::new(tokens[open].0.end, tokens[close].0.start)).trim();
    let end = fixes::clause_end(ctx, b.from_start, CLAUSES_AFTER_GROUPING)?;
    let rest = fixes::tokens_to_end(ctx, b.from_start);
    let after: Vec<_> = rest.iter().filter(|(depth, span, _)| *depth == 0 && span.start >= end).collect();
    let order = after.iter().position(|(_, _, t)| fixes::keyword(t) == Some(Keyword::ORDER));
    let sorted = match order {
        None => String::new(),
        Some(at) => {
            let first = after.get(at + 2)?.1;
            let stop = |t: &Token| matches!(fixes::keyword(t), Some(Keyword::LIMIT | Keyword::OFFSET | Keyword::FETCH));
            let all = rest.iter().filter(|(_, span, _)| span.start >= first.start);
            let last = all.take_while(|(depth, _, t)| *depth > 0 || !stop(t)).last()?.1;
            ctx.query.text(first.join(last)).to_string()
        }
    };
    // The window can sort by columns only, and the outer query by the output of the block only.
    let own = resolution.references.iter().filter(|r| r.block == block && r.clause == Clause::OrderBy);
    let columns = own.clone().all(|r| matches!(r.binding, ColumnBinding::Column(..)));
    let number = sorted.split(',').any(|t| t.trim().starts_with(|c: char| c.is_ascii_digit()));
    let renamed = rename_outer_references(block, end, &outputs, ctx)?;
    if !columns || number {
        return None;
    }
    let name = unique_name("place", &outputs);
    let inside = if sorted.is_empty() { String::new() } else { format!(" ORDER BY {sorted}") };
    let from = fixes::from_keyword(ctx, block)?;
    let first = ctx.query.span(select.projection.first().map(SelectItem::span)?);
    let mut edits = vec![
        Edit {
            span: Span::new(select_word.start, first.start),
            text: format!("SELECT {} FROM (SELECT ", outputs.join(", ")),
        },
        insert(
            ctx.query.source[..from.start].trim_end().len(),
            format!(", ROW_NUMBER() OVER (PARTITION BY {keys}{inside}) AS {name}"),
        ),
        insert(end, format!(") AS ranked WHERE {name} = 1")),
    ];
    edits.extend(renamed);
    let why = "DISTINCT ON keeps the first row of each group, which ROW_NUMBER() counts as 1".to_string();
    Some(Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false })
}

/// Wraps a block in an outer query with the conditions on windows.
fn wrap_in_subquery(
    block: BlockId,
    moved: &[Span],
    mut edits: Vec<Edit>,
    end: usize,
    ctx: &RuleContext<'_>,
) -> Option<Fix> {
    let b = &ctx.resolution.blocks[block];
    let outputs = output_names(block, ctx);
    let listed: Vec<String> = outputs.clone().unwrap_or_else(|| item_names(block, ctx));
    let mut added: Vec<(String, String)> = Vec::new();
    let mut conditions: Vec<String> = Vec::new();
    for part in moved {
        let windows = window_calls(*part, block, ctx);
        let mut text = String::new();
        let mut at = part.start;
        for window in &windows {
            let call = ctx.query.text(*window).to_string();
            let known = added.iter().find(|(c, _)| *c == call).map(|(_, name)| name.clone());
            let name = known.unwrap_or_else(|| {
                let wanted = if added.is_empty() { "place".to_string() } else { format!("place_{}", added.len() + 1) };
                let name = unique_name(&wanted, &listed);
                added.push((call, name.clone()));
                name
            });
            text.push_str(ctx.query.text(Span::new(at, window.start)));
            text.push_str(&name);
            at = window.end;
        }
        text.push_str(ctx.query.text(Span::new(at, part.end)));
        // The outer query sees only the output of the block.
        let strange = ctx.resolution.references.iter().any(|r| {
            let span = ctx.query.span(r.span);
            contains_span(*part, span)
                && !windows.iter().any(|w| contains_span(*w, span))
                && (r.qualifier.is_some() || !listed.iter().any(|o| is_same_name(o, &r.name.value)))
        });
        if strange {
            return None;
        }
        conditions.push(text);
    }
    edits.extend(rename_outer_references(block, end, &listed, ctx)?);
    if b.is_distinct && !added.is_empty() {
        return None;
    }
    let head = match added.is_empty() {
        true => "*".to_string(),
        false => outputs?.join(", "),
    };
    edits.push(insert(ctx.query.span(b.select_span).start, format!("SELECT {head} FROM (")));
    if !added.is_empty() {
        let from = fixes::from_keyword(ctx, block)?;
        let more: Vec<String> = added.iter().map(|(call, name)| format!(", {call} AS {name}")).collect();
        edits.push(insert(ctx.query.source[..from.start].trim_end().len(), more.concat()));
    }
    edits.push(insert(end, format!(") AS ranked WHERE {}", conditions.join(" AND "))));
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let why = "the window is computed in a subquery, and its result is filtered around it".to_string();
    Some(Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false })
}

/// Renames references after `end`, in ORDER BY, to output names of the block.
///
/// `e.name` becomes `name`. Returns `None` if a column is not part of the output.
fn rename_outer_references(block: BlockId, end: usize, outputs: &[String], ctx: &RuleContext<'_>) -> Option<Vec<Edit>> {
    let resolution = ctx.resolution;
    let after = |place| ctx.query.span(place).start >= end;
    if resolution.calls.iter().any(|c| c.block == Some(block) && c.has_over && after(c.span)) {
        return None;
    }
    let mut edits = Vec::new();
    for reference in resolution.references.iter().filter(|r| r.block == block && after(r.span)) {
        let given = outputs.iter().any(|o| is_same_name(o, &reference.name.value));
        if reference.qualifier.is_none() && given {
            continue;
        }
        // A SELECT item that is this very column.
        let name = resolution.blocks[block].items.iter().find_map(|item| {
            let place = ctx.query.span(crate::resolve::expr_span(item.expression?));
            let same = |r: &&ColumnReference<'_>| {
                ctx.query.span(r.span) == place && r.binding == reference.binding && r.clause == Clause::Select
            };
            resolution.references.iter().find(same).and(item.name)
        })?;
        let once = outputs.iter().filter(|o| is_same_name(o, &name.value)).count() == 1;
        (once && matches!(reference.binding, ColumnBinding::Column(..))).then_some(())?;
        let text = ctx.context.dialect.quote_identifier(&name.value);
        edits.push(Edit { span: ctx.query.span(reference.span), text });
    }
    Some(edits)
}

fn is_same_name(written: &str, name: &str) -> bool {
    written.trim_matches(['"', '`', '[', ']']).eq_ignore_ascii_case(name)
}

/// Returns the quoted names of the items of a block that have one.
fn item_names(block: BlockId, ctx: &RuleContext<'_>) -> Vec<String> {
    let items = ctx.resolution.blocks[block].items.iter().filter_map(|i| i.name);
    items.map(|n| ctx.context.dialect.quote_identifier(&n.value)).collect()
}

/// Returns the output names of a block if every item has a unique name.
///
/// A wildcard over a single table is expanded.
fn output_names(block: BlockId, ctx: &RuleContext<'_>) -> Option<Vec<String>> {
    let b = &ctx.resolution.blocks[block];
    let mut out: Vec<String> = Vec::new();
    for item in &b.items {
        match (item.name, item.expression) {
            (Some(name), Some(_)) => out.push(ctx.context.dialect.quote_identifier(&name.value)),
            (_, None) => {
                let [source] = b.sources.as_slice() else { return None };
                let table = ctx.resolution.sources[*source].table()?;
                out.extend(table.columns.iter().map(|c| ctx.context.dialect.quote_identifier(&c.name)));
            }
            (None, Some(_)) => return None,
        }
    }
    let twice = (1..out.len()).any(|i| out[..i].iter().any(|o| o.eq_ignore_ascii_case(&out[i])));
    (!out.is_empty() && !twice).then_some(out)
}

fn unique_name(wanted: &str, taken: &[String]) -> String {
    let mut name = wanted.to_string();
    while taken.iter().any(|t| is_same_name(t, &name)) {
        name.push('_');
    }
    name
}

/// Returns the spans of window function calls in a part of a block, including OVER (…).
fn window_calls(part: Span, block: BlockId, ctx: &RuleContext<'_>) -> Vec<Span> {
    let calls = ctx.resolution.calls.iter().filter(|c| c.has_over && c.block == Some(block));
    let mut spans: Vec<Span> = calls.filter_map(|c| window_call_span(ctx.query.span(c.span), ctx)).collect();
    spans.retain(|s| contains_span(part, *s));
    spans.sort();
    let all = spans.clone();
    spans.retain(|s| !all.iter().any(|o| o != s && contains_span(*o, *s)));
    spans
}

/// Returns the span of a call including its OVER (…).
fn window_call_span(call: Span, ctx: &RuleContext<'_>) -> Option<Span> {
    let tokens = fixes::significant_tokens(ctx);
    let start = tokens.iter().position(|(span, _)| span.start == call.start)?;
    let over = (start..tokens.len()).find(|&i| fixes::keyword(&tokens[i].1) == Some(Keyword::OVER))?;
    if tokens.get(over + 1)?.1 != Token::LParen {
        return None;
    }
    let mut depth = 0usize;
    for (span, token) in &tokens[over + 1..] {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(Span::new(call.start, span.end));
        }
    }
    None
}

/// Returns whether a condition calls a window function or refers to the alias of one.
fn has_window_reference(part: Span, block: BlockId, ctx: &RuleContext<'_>) -> bool {
    let names = ctx.resolution.references.iter().any(|r| {
        let item = match r.binding {
            ColumnBinding::Alias(item) | ColumnBinding::AliasNotVisible(item) => item,
            _ => return false,
        };
        r.block == block && contains_span(part, ctx.query.span(r.span)) && item_has_window(block, item, ctx)
    });
    names || !window_calls(part, block, ctx).is_empty()
}

/// Returns whether an item of a SELECT list calls a window function.
pub(crate) fn item_has_window(block: BlockId, item: usize, ctx: &RuleContext<'_>) -> bool {
    let expression = ctx.resolution.blocks[block].items.get(item).and_then(|i| i.expression);
    expression.is_some_and(|e| {
        let span = ctx.query.span(crate::resolve::expr_span(e));
        ctx.resolution.calls.iter().any(|c| {
            let call = ctx.query.span(c.span);
            c.has_over && c.block == Some(block) && span.start <= call.start && call.end <= span.end
        })
    })
}
