//! Clauses and spans of query blocks, shared by the aggregate fixes.

use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::resolve::{BlockId, Clause};
use crate::rule::RuleContext;

pub(crate) fn likely_fix(mut edits: Vec<Edit>, why: impl Into<String>) -> Fix {
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    Fix { edits, applicability: Applicability::Likely, why: why.into(), is_tied_with_previous: false }
}

pub(crate) fn insert(at: usize, text: String) -> Edit {
    Edit { span: Span::new(at, at), text }
}

pub(crate) fn contains_span(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Returns the end offset of WHERE and GROUP BY, and of HAVING if `having_too` is set.
pub(crate) fn group_by_end(block: BlockId, having_too: bool, ctx: &RuleContext<'_>) -> Option<usize> {
    let inside = |k: Keyword| matches!(k, Keyword::WHERE | Keyword::GROUP) || (having_too && k == Keyword::HAVING);
    let stops: Vec<Keyword> = fixes::CLAUSES_AFTER_FROM.iter().copied().filter(|k| !inside(*k)).collect();
    fixes::clause_end(ctx, ctx.resolution.blocks[block].from_start, &stops)
}

/// Returns whether one of the keywords follows the FROM clause of a block at its top level.
pub(crate) fn has_clause(block: BlockId, words: &[Keyword], ctx: &RuleContext<'_>) -> bool {
    fixes::tokens_to_end(ctx, ctx.resolution.blocks[block].from_start)
        .iter()
        .any(|(depth, _, token)| *depth == 0 && fixes::keyword(token).is_some_and(|k| words.contains(&k)))
}

pub(crate) const SET_OPERATIONS: &[Keyword] = &[Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];

/// Returns the full spans of aggregate calls nested directly in another aggregate.
pub(crate) fn nested_calls(block: BlockId, ctx: &RuleContext<'_>) -> Vec<Span> {
    let calls =
        ctx.resolution.calls.iter().filter(|c| {
            c.is_aggregate && c.is_inside_aggregate && c.block == Some(block) && c.clause == Clause::Select
        });
    let mut spans: Vec<Span> =
        calls.filter_map(|c| fixes::call_span(ctx, ctx.query.span(c.span)).map(|(whole, _)| whole)).collect();
    spans.sort();
    let all = spans.clone();
    spans.retain(|s| !all.iter().any(|o| o != s && contains_span(*o, *s)));
    spans
}
