//! Fixes that distinguish two uses of a table under the same name.

use sqlparser::ast::{BinaryOperator, Spanned};

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::fixes::score::WEIGHTS;
use crate::resolve::{BinaryOperation, Clause, ColumnBinding, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::text::similarity::identifier_similarity;

/// Uses of one table in the order of FROM, with the alias that each one gets.
struct RepeatedTable {
    sources: Vec<SourceId>,
    aliases: Vec<String>,
}

/// Gives every use except the first its own alias and requalifies the references.
///
/// A reference in an ON clause belongs to the use that the clause joins. Any other reference
/// belongs to the first use, unless the query refers to the same column once per use.
pub(crate) fn alias_fixes(sources: &[SourceId], ctx: &RuleContext<'_>) -> Vec<Fix> {
    let Some(uses) = repeated_table(sources, ctx) else { return Vec::new() };
    let owned: Vec<(&ColumnReference<'_>, usize)> = assign_references(&uses, ctx);
    let mut edits: Vec<Edit> =
        uses.sources[1..].iter().zip(&uses.aliases[1..]).map(|(s, n)| alias_edit(*s, n, ctx)).collect();
    let bare = |r: &ColumnReference<'_>| r.qualifier.is_none();
    for (reference, owner) in owned.iter().filter(|(r, owner)| *owner > 0 || bare(r)) {
        edits.push(Edit { span: ctx.query.span(reference.span), text: qualified_text(&uses, *owner, reference, ctx) });
    }
    let called = ctx.resolution.sources[uses.sources[0]].display_name();
    let why = format!("`{called}` is in FROM {} times, and each needs its own alias", uses.sources.len());
    let fix = |mut edits: Vec<Edit>, why: String| {
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false }
    };
    let mut fixes = Vec::new();
    if let Some(more) = repeat_condition(&uses, &owned, ctx) {
        let all = edits.iter().cloned().chain(more).collect();
        fixes.push(fix(all, format!("{why}; the condition applies to each of them")));
    }
    fixes.push(fix(edits, why));
    fixes
}

fn repeated_table(sources: &[SourceId], ctx: &RuleContext<'_>) -> Option<RepeatedTable> {
    let resolution = ctx.resolution;
    let mut sources = sources.to_vec();
    sources.sort_unstable();
    sources.dedup();
    let first = &resolution.sources[*sources.first()?];
    let alike = |s: &SourceId| {
        let other = &resolution.sources[*s];
        other.block == first.block
            && other.display_name().eq_ignore_ascii_case(first.display_name())
            && other.column_names() == first.column_names()
    };
    if sources.len() < 2 || !sources.iter().all(alike) {
        return None;
    }
    let mut taken: Vec<String> = resolution
        .visible_sources(first.block)
        .iter()
        .map(|&s| resolution.sources[s].display_name().to_lowercase())
        .collect();
    let mut names = vec![first.display_name().to_string()];
    for _ in &sources[1..] {
        let name = fixes::unique_alias(first.display_name(), &taken);
        taken.push(name.to_lowercase());
        names.push(name);
    }
    Some(RepeatedTable { sources, aliases: names })
}

/// Returns the edit that adds an alias after the table name, or replaces the existing alias.
fn alias_edit(source: SourceId, name: &str, ctx: &RuleContext<'_>) -> Edit {
    let source = &ctx.resolution.sources[source];
    let place = ctx.query.span(source.span);
    let name = ctx.context.dialect.quote_identifier(name);
    match source.name.map(|n| ctx.query.span(n.span)) {
        Some(own) if own.start >= place.end => Edit { span: own, text: name },
        _ => Edit { span: Span::new(place.end, place.end), text: format!(" AS {name}") },
    }
}

fn qualified_text(
    uses: &RepeatedTable,
    owner: usize,
    reference: &ColumnReference<'_>,
    ctx: &RuleContext<'_>,
) -> String {
    let column = ctx.query.text(ctx.query.span(reference.name.span));
    format!("{}.{column}", ctx.context.dialect.quote_identifier(&uses.aliases[owner]))
}

/// Assigns every ambiguous reference to one of the uses.
fn assign_references<'s>(uses: &RepeatedTable, ctx: &RuleContext<'s>) -> Vec<(&'s ColumnReference<'s>, usize)> {
    let resolution = ctx.resolution;
    let is_ours = |r: &&ColumnReference<'_>| match &r.binding {
        ColumnBinding::Ambiguous(s) => uses.sources.iter().all(|u| s.contains(u)),
        _ => false,
    };
    let ours: Vec<&ColumnReference<'_>> = resolution.references.iter().filter(is_ours).collect();
    let mut out: Vec<(&ColumnReference<'_>, usize)> = Vec::new();
    for reference in &ours {
        let owner = match reference.clause {
            Clause::On => owner_by_join(uses, reference, &ours, ctx),
            _ => owner_by_alias(uses, reference, ctx).unwrap_or_else(|| owner_by_position(uses, reference, &ours, ctx)),
        };
        out.push((reference, owner));
    }
    out
}

/// Assigns a reference in an ON clause to the use that the clause joins.
///
/// If the clause compares the table with itself, the left operand belongs to the previous use.
fn owner_by_join(
    uses: &RepeatedTable,
    reference: &ColumnReference<'_>,
    ours: &[&ColumnReference<'_>],
    ctx: &RuleContext<'_>,
) -> usize {
    let resolution = ctx.resolution;
    let at = ctx.query.span(reference.span).start;
    let joined = resolution.blocks[resolution.sources[uses.sources[0]].block]
        .sources
        .iter()
        .rev()
        .find(|&&s| ctx.query.span(resolution.sources[s].span).start < at);
    let Some(use_) = joined.and_then(|j| uses.sources.iter().position(|s| s == j)) else { return 0 };
    let with_itself = resolution
        .operations
        .iter()
        .any(|o| o.left_node.span() == reference.span && ours.iter().any(|r| r.span == o.right_node.span()));
    if with_itself { use_.saturating_sub(1) } else { use_ }
}

/// Assigns a reference by the alias of its SELECT item.
///
/// `colour.colour AS hair` belongs to the use that is joined on `hair_colour_id`.
fn owner_by_alias(uses: &RepeatedTable, reference: &ColumnReference<'_>, ctx: &RuleContext<'_>) -> Option<usize> {
    let resolution = ctx.resolution;
    let items = &resolution.blocks[reference.block].items;
    let item = items.iter().find(|i| i.has_alias && i.expression.is_some_and(|e| e.span() == reference.span))?;
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        lower.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 2).map(str::to_string).collect()
    };
    let wanted = words(&item.name?.value);
    let mut fitting = (0..uses.sources.len()).filter(|&i| {
        join_key(uses, i, ctx).is_some_and(|key| {
            let own = words(&key);
            let distinctive_words = own.iter().filter(|w| {
                let elsewhere = |j: usize| join_key(uses, j, ctx).is_some_and(|k| words(&k).contains(w));
                !(0..uses.sources.len()).any(|j| j != i && elsewhere(j))
            });
            distinctive_words
                .into_iter()
                .any(|t| wanted.iter().any(|w| identifier_similarity(w, t) >= WEIGHTS.min_alias_word_similarity))
        })
    });
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// Returns the column of the other table that a use is joined on.
fn join_key(uses: &RepeatedTable, at: usize, ctx: &RuleContext<'_>) -> Option<String> {
    let resolution = ctx.resolution;
    let start = ctx.query.span(resolution.sources[uses.sources[at]].span).start;
    let next = resolution.sources[uses.sources[at]].block;
    let end = resolution.blocks[next]
        .sources
        .iter()
        .map(|&s| ctx.query.span(resolution.sources[s].span).start)
        .filter(|&p| p > start)
        .min()
        .unwrap_or(usize::MAX);
    resolution.operations.iter().filter(|o| o.clause == Clause::On && *o.operator == BinaryOperator::Eq).find_map(|o| {
        let here = ctx.query.span(o.left_node.span()).start;
        if !(start < here && here < end) {
            return None;
        }
        let (source, column) = o.left.column.or(o.right.column)?;
        resolution.sources[source].column_names().get(column).map(|c| c.to_string())
    })
}

/// Assigns references by position if the same column occurs exactly once per use.
fn owner_by_position(
    uses: &RepeatedTable,
    reference: &ColumnReference<'_>,
    ours: &[&ColumnReference<'_>],
    ctx: &RuleContext<'_>,
) -> usize {
    let filters = reference.clause == Clause::Where;
    let alike: Vec<&&ColumnReference<'_>> = ours
        .iter()
        .filter(|r| {
            r.block == reference.block
                && r.clause == reference.clause
                && r.name.value.eq_ignore_ascii_case(&reference.name.value)
        })
        .collect();
    let required = |r: &&&ColumnReference<'_>| !filters || comparison(r, ctx).is_some_and(|o| o.is_conjunct);
    if alike.len() != uses.sources.len() || !alike.iter().all(required) {
        return 0;
    }
    alike.iter().position(|r| r.span == reference.span).unwrap_or(0)
}

fn comparison<'s>(reference: &ColumnReference<'_>, ctx: &RuleContext<'s>) -> Option<&'s BinaryOperation<'s>> {
    let is_reference = |o: &&BinaryOperation<'_>| {
        !o.is_in && (o.left_node.span() == reference.span || o.right_node.span() == reference.span)
    };
    ctx.resolution.operations.iter().find(is_reference)
}

/// Repeats the only condition on the table for each of its uses.
///
/// A table that is joined again and not referenced elsewhere was joined for that condition.
fn repeat_condition(
    uses: &RepeatedTable,
    owned: &[(&ColumnReference<'_>, usize)],
    ctx: &RuleContext<'_>,
) -> Option<Vec<Edit>> {
    let mut asked = owned.iter().filter(|(r, _)| r.clause != Clause::On);
    let (Some((only, 0)), None) = (asked.next(), asked.next()) else { return None };
    let operation = comparison(only, ctx).filter(|o| o.is_conjunct && o.clause == Clause::Where)?;
    operation.left.literal.or(operation.right.literal)?;
    let span = ctx.query.span(operation.left_node.span()).join(ctx.query.span(operation.right_node.span()));
    let (text, name) = (ctx.query.text(span), ctx.query.span(only.span));
    let again = (1..uses.sources.len()).map(|i| {
        let (before, behind) = (&text[..name.start - span.start], &text[name.end - span.start..]);
        format!(" AND {before}{}{behind}", qualified_text(uses, i, only, ctx))
    });
    Some(vec![Edit { span: Span::new(span.end, span.end), text: again.collect() }])
}
