//! Fix of a column reference with its penalty.

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::resolve::{ColumnBinding, ColumnReference, ProjectionItem, SourceId, expr_span};
use crate::rule::RuleContext;

/// Fix of a reference with its penalty; lower is better.
pub(crate) struct ScoredFix {
    pub fix: Fix,
    pub penalty: usize,
}

/// Replaces every use of the name in the block.
///
/// An unchanged use that the outer query can also resolve would silently change its meaning.
pub(crate) fn replace_all_uses(
    reference: &ColumnReference<'_>,
    source: SourceId,
    text: &str,
    applicability: Applicability,
    why: String,
    ctx: &RuleContext<'_>,
) -> Fix {
    let own = ctx.resolution.sources[source].block == reference.block;
    let mut spans: Vec<Span> = if own { other_uses(reference, ctx) } else { Vec::new() };
    spans.push(ctx.query.span(reference.span));
    spans.sort_by_key(|s| s.start);
    spans.dedup();
    let named = |span: Span| match is_output_name(reference, span, ctx) {
        true => format!("{text} AS {}", ctx.context.dialect.quote_identifier(&reference.name.value)),
        false => text.to_string(),
    };
    let edits = spans.into_iter().map(|span| Edit { span, text: named(span) }).collect();
    Fix { edits, applicability, why, is_tied_with_previous: false }
}

/// Returns other uses in the block that are unresolved too or that bind to an outer query.
pub(crate) fn other_uses(reference: &ColumnReference<'_>, ctx: &RuleContext<'_>) -> Vec<Span> {
    let resolution = ctx.resolution;
    let alike = |r: &&ColumnReference<'_>| {
        let captured = matches!(r.binding, ColumnBinding::Column(s, _) if resolution.sources[s].block != r.block);
        let same = r.name.value.eq_ignore_ascii_case(&reference.name.value)
            && r.qualifier.map(|q| &q.value) == reference.qualifier.map(|q| &q.value);
        r.block == reference.block && same && !r.is_wildcard && (r.binding == reference.binding || captured)
    };
    resolution.references.iter().filter(alike).map(|r| ctx.query.span(r.span)).collect()
}

/// Returns whether a SELECT item is a bare name and an outer query reads the column by that name.
pub(crate) fn is_output_name(reference: &ColumnReference<'_>, span: Span, ctx: &RuleContext<'_>) -> bool {
    let resolution = ctx.resolution;
    let item =
        |i: &ProjectionItem<'_>| !i.has_alias && i.expression.is_some_and(|e| ctx.query.span(expr_span(e)) == span);
    let asked = |r: &ColumnReference<'_>| {
        let listed = match r.binding {
            ColumnBinding::Column(s, _) => resolution.sources[s].table().is_none(),
            _ => false,
        };
        listed && r.block != reference.block && r.name.value.eq_ignore_ascii_case(&reference.name.value)
    };
    resolution.blocks[reference.block].items.iter().any(item) && resolution.references.iter().any(asked)
}
