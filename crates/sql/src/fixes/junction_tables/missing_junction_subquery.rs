//! Fixes for an unknown junction table in nested subqueries.
//!
//! An example is `id IN (SELECT a_id FROM a_b WHERE b_id IN (SELECT id FROM b …))`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::missing_junction::{is_plain_key_name, many_to_one_edges};
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes::{self, keyword};
use crate::resolve::{BlockId, ColumnBinding, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::schema::{Schema, Table, join_graph};
use crate::text::similarity::identifier_similarity;

/// Nested subqueries around and inside the query of the unknown table.
struct NestedLookup<'s> {
    /// Column of the outer query that is compared, and its table.
    outer: (&'s ColumnReference<'s>, &'s Table),
    /// Column that the subquery on the unknown table projects.
    projected: &'s ColumnReference<'s>,
    filtered: &'s ColumnReference<'s>,
    /// Column that the innermost query projects, and its table.
    inner: (&'s ColumnReference<'s>, &'s Table),
    /// Span from the SELECT of the unknown table to that of the innermost query.
    opening: Span,
    /// Closing parenthesis of the innermost query; `None` if other tokens follow it.
    closing: Option<Span>,
}

/// Returns fixes with a junction table of the schema, then one with a direct foreign key.
pub(crate) fn nested_junction_fixes(unknown: SourceId, ctx: &RuleContext<'_>, schema: &Schema) -> Vec<Fix> {
    let Some(lookup) = nested_lookup(unknown, ctx) else { return Vec::new() };
    let (here, there) = (lookup.outer.1, lookup.inner.1);
    if std::ptr::eq(here, there) {
        return Vec::new();
    }
    let other = |t: &&Table| !std::ptr::eq(*t, here) && !std::ptr::eq(*t, there);
    let tables = schema.tables().iter().filter(other);
    let mut out: Vec<Fix> = tables.filter_map(|t| replace_with_junction(unknown, t, &lookup, ctx, schema)).collect();
    out.extend(remove_junction(unknown, &lookup, ctx, schema));
    out
}

/// Returns the references of a block except wildcards.
fn block_references<'s>(block: BlockId, ctx: &RuleContext<'s>) -> Vec<&'s ColumnReference<'s>> {
    ctx.resolution.references.iter().filter(|r| r.block == block && !r.is_wildcard).collect()
}

fn nested_lookup<'s>(unknown: SourceId, ctx: &RuleContext<'s>) -> Option<NestedLookup<'s>> {
    let resolution = ctx.resolution;
    let block = resolution.sources[unknown].block;
    if resolution.blocks[block].sources.len() != 1 {
        return None;
    }
    let tokens = fixes::significant_tokens(ctx);
    let span = |r: &ColumnReference<'_>| ctx.query.span(r.span);
    // `x IN (` or `x = (` precedes the SELECT of a subquery.
    let asked_by = |inner: BlockId| -> Option<(usize, &'s ColumnReference<'s>)> {
        let start = ctx.query.span(resolution.blocks[inner].select_span).start;
        let at = tokens.iter().position(|(s, _)| s.start == start)?;
        let (open, operator) = (&tokens.get(at.checked_sub(1)?)?.1, &tokens.get(at.checked_sub(2)?)?.1);
        let compares = *operator == Token::Eq || keyword(operator) == Some(Keyword::IN);
        let mut before = at.checked_sub(3)?;
        if keyword(&tokens[before].1) == Some(Keyword::NOT) {
            before = before.checked_sub(1)?;
        }
        let end = tokens[before].0.end;
        let reference = resolution.references.iter().find(|r| span(r).end == end)?;
        (*open == Token::LParen && compares).then_some((at, reference))
    };
    let given = |block: BlockId| -> Option<&'s ColumnReference<'s>> {
        let [item] = resolution.blocks[block].items.as_slice() else { return None };
        let place = crate::resolve::expr_span(item.expression?);
        resolution.references.iter().find(|r| r.block == block && r.span == place)
    };
    let table = |r: &ColumnReference<'_>| match (&r.binding, resolution.blocks[r.block].sources.as_slice()) {
        (ColumnBinding::Column(source, _) | ColumnBinding::NotInSource(source), _) => {
            resolution.sources[*source].table()
        }
        (ColumnBinding::Unresolved, [only]) => resolution.sources[*only].table(),
        _ => None,
    };
    let (select, outside) = asked_by(block)?;
    let mut inner = (0..resolution.blocks.len()).filter(|&b| resolution.blocks[b].parent == Some(block));
    let (inner, None) = (inner.next()?, inner.next()) else { return None };
    let (within, by) = asked_by(inner)?;
    let inside = given(inner)?;
    if by.block != block || outside.block == block {
        return None;
    }
    let depth_at = |from: usize| {
        let mut depth = 0usize;
        (from..tokens.len()).find(|&i| match tokens[i].1 {
            Token::LParen => {
                depth += 1;
                false
            }
            Token::RParen if depth == 0 => true,
            Token::RParen => {
                depth -= 1;
                false
            }
            _ => false,
        })
    };
    let close = depth_at(within)?;
    let alone = tokens.get(close + 1).is_some_and(|(_, t)| *t == Token::RParen);
    Some(NestedLookup {
        outer: (outside, table(outside)?),
        projected: given(block)?,
        filtered: by,
        inner: (inside, table(inside)?),
        opening: Span::new(tokens[select].0.start, tokens[within].0.start),
        closing: alone.then_some(tokens[close].0),
    })
}

/// Returns the edit that renames a column and keeps its qualifier.
fn rename_column(reference: &ColumnReference<'_>, column: &str, ctx: &RuleContext<'_>) -> Edit {
    Edit { span: ctx.query.span(reference.name.span), text: ctx.context.dialect.quote_identifier(column) }
}

/// Replaces the unknown table with one that has foreign keys to both tables.
fn replace_with_junction(
    unknown: SourceId,
    table: &Table,
    lookup: &NestedLookup<'_>,
    ctx: &RuleContext<'_>,
    schema: &Schema,
) -> Option<Fix> {
    let source = &ctx.resolution.sources[unknown];
    let others = block_references(source.block, ctx);
    if others.iter().any(|r| r.span != lookup.projected.span && r.span != lookup.filtered.span) {
        return None;
    }
    let key = |to: &Table, asked: &str| {
        let fitting = many_to_one_edges(schema, table, to).into_iter().filter(|l| l.columns.len() == 1);
        let links: Vec<_> = fitting.map(|l| (l.columns[0].0.to_string(), l.columns[0].1.to_string())).collect();
        links.into_iter().min_by_key(|(own, _)| ((1.0 - identifier_similarity(asked, own)) * 100.0) as usize)
    };
    let (own_outside, there_outside) = key(lookup.outer.1, &lookup.projected.name.value)?;
    let (own_inside, there_inside) = key(lookup.inner.1, &lookup.filtered.name.value)?;
    if own_outside == own_inside {
        return None;
    }
    let dialect = ctx.context.dialect;
    let mut edits = vec![
        rename_column(lookup.outer.0, &there_outside, ctx),
        rename_column(lookup.projected, &own_outside, ctx),
        Edit { span: ctx.query.span(source.span), text: dialect.quote_identifier(&table.name) },
        rename_column(lookup.filtered, &own_inside, ctx),
        rename_column(lookup.inner.0, &there_inside, ctx),
    ];
    // Without an alias, the table name qualifies its columns.
    let own = |q: &&sqlparser::ast::Ident| q.value.eq_ignore_ascii_case(source.display_name());
    let place = ctx.query.span(source.span);
    if source.name.is_none_or(|n| ctx.query.span(n.span).start < place.end) {
        let qualifiers = [lookup.projected, lookup.filtered].into_iter().filter_map(|r| r.qualifier).filter(own);
        edits.extend(
            qualifiers.map(|q| Edit { span: ctx.query.span(q.span), text: dialect.quote_identifier(&table.name) }),
        );
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let (here, there) = (&lookup.outer.1.name, &lookup.inner.1.name);
    let why = format!("`{}` is the table that has the keys of `{here}` and `{there}`", table.name);
    Some(Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false })
}

/// Removes the subquery in between if a single foreign key connects the two tables.
fn remove_junction(
    unknown: SourceId,
    lookup: &NestedLookup<'_>,
    ctx: &RuleContext<'_>,
    schema: &Schema,
) -> Option<Fix> {
    let (here, there) = (lookup.outer.1, lookup.inner.1);
    let links = join_graph::edges_between(schema, here, &[there]);
    let [link] = links.as_slice() else { return None };
    let [(own, other)] = link.columns.as_slice() else { return None };
    if block_references(ctx.resolution.sources[unknown].block, ctx).len() != 2 || link.inferred {
        return None;
    }
    let mut edits = vec![
        rename_column(lookup.outer.0, own, ctx),
        Edit { span: lookup.opening, text: String::new() },
        rename_column(lookup.inner.0, other, ctx),
        Edit { span: lookup.closing?, text: String::new() },
    ];
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let plain = is_plain_key_name(own, other, &[here, there]);
    let applicability = if plain { Applicability::Likely } else { Applicability::Suggested };
    let why =
        format!("`{}` and `{}` are linked directly by a foreign key, without a junction table", here.name, there.name);
    Some(Fix { edits, applicability, why, is_tied_with_previous: false })
}
