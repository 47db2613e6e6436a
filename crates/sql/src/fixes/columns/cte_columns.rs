//! Fixes for references to CTEs and derived tables: missing projections and misspelled names.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes::columns::scored_fix::ScoredFix;
use crate::fixes::score::WEIGHTS;
use crate::fixes::{self, keyword};
use crate::resolve::{BlockId, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::text::similarity::identifier_similarity;

/// Adds a column to the SELECT list of a CTE or derived table if exactly one of its sources has it.
pub(crate) fn suggest_projection(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    // The extra column would change the result of a wildcard.
    if resolution.blocks.iter().any(|block| block.items.iter().any(|item| item.expression.is_none())) {
        return;
    }
    let sources = match owner {
        Some(owner) => vec![owner],
        None => resolution.blocks[reference.block].sources.clone(),
    };
    for source in sources.into_iter().filter(|&s| resolution.sources[s].table().is_none()) {
        let Some(inner) = source_block(source, ctx) else { continue };
        let block = &resolution.blocks[inner];
        if block.is_grouped || block.has_aggregates || block.is_distinct || is_set_operand(inner, ctx) {
            continue;
        }
        let mut having = block.sources.iter().filter_map(|&s| {
            let names = resolution.sources[s].column_names();
            let column = names.into_iter().find(|c| c.eq_ignore_ascii_case(&reference.name.value))?;
            Some((s, column.to_string()))
        });
        let (Some((from, column)), None) = (having.next(), having.next()) else { continue };
        let text = match block.sources.len() {
            1 => Some(ctx.context.dialect.quote_identifier(&column)),
            _ => fixes::qualified_column(ctx, from, &column),
        };
        let (Some(text), Some(word)) = (text, fixes::from_keyword(ctx, inner)) else { continue };
        let end = ctx.query.source[..word.start].trim_end().len();
        let edits = vec![Edit { span: Span::new(end, end), text: format!(", {text}") }];
        let called = resolution.sources[source].display_name();
        let why = format!("`{called}` reads a table that has the column `{column}`, and must select it");
        scored_fixes.push(ScoredFix {
            fix: Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false },
            penalty: WEIGHTS.missing_projection,
        });
    }
}

/// Returns the block that defines a source that is not a stored table.
fn source_block(source: SourceId, ctx: &RuleContext<'_>) -> Option<BlockId> {
    let (resolution, query) = (ctx.resolution, ctx.query);
    let start = |block: BlockId| query.span(resolution.blocks[block].select_span).start;
    let first_behind = |at: usize| (0..resolution.blocks.len()).filter(|&b| start(b) > at).min_by_key(|&b| start(b));
    let place = resolution.sources[source].span;
    if let Some(used) = resolution.tables.iter().find(|table| table.span == place) {
        let name = used.name.0.last()?.as_ident()?;
        let with = resolution.ctes.iter().find(|cte| cte.value.eq_ignore_ascii_case(&name.value))?;
        let end = query.span(with.span).end;
        // Column aliases of a CTE are not resolved.
        let renamed = query.source[end..].trim_start().starts_with('(');
        return if renamed { None } else { first_behind(end) };
    }
    // The parentheses of a derived table precede its alias.
    let tokens = fixes::significant_tokens(ctx);
    let name = tokens.iter().position(|(span, _)| *span == query.span(place))?;
    let mut close = name.checked_sub(1)?;
    if keyword(&tokens[close].1) == Some(Keyword::AS) {
        close = close.checked_sub(1)?;
    }
    let mut depth = 0usize;
    let open = (0..=close).rev().find(|&at| {
        match tokens[at].1 {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    (open < close).then(|| first_behind(tokens[open].0.start)).flatten()
}

/// Returns whether a block is an operand of UNION, EXCEPT or INTERSECT.
fn is_set_operand(block: BlockId, ctx: &RuleContext<'_>) -> bool {
    let sets = [Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];
    fixes::tokens_to_end(ctx, ctx.resolution.blocks[block].select_span.start)
        .iter()
        .any(|(depth, _, token)| *depth == 0 && keyword(token).is_some_and(|word| sets.contains(&word)))
}

/// Adds a CTE to FROM if its columns are used and a condition joins it.
pub(crate) fn suggest_cte_source(
    reference: &ColumnReference<'_>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let Some(qualifier) = reference.qualifier else { return };
    let Some(name) = resolution.ctes.iter().find(|cte| cte.value.eq_ignore_ascii_case(&qualifier.value)) else {
        return;
    };
    let its = |r: &&ColumnReference<'_>| {
        r.block == reference.block && r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(&qualifier.value))
    };
    let tied = resolution.references.iter().filter(its).any(|r| fixes::compared_column(ctx, r).is_some());
    let Some(end) = fixes::from_clause_end(ctx, reference.block).filter(|_| tied) else { return };
    let text = format!(", {}", ctx.context.dialect.quote_identifier(&name.value));
    let why = format!("`{}` is a CTE that the query references but does not read", name.value);
    let edits = vec![Edit { span: Span::new(end, end), text }];
    scored_fixes.push(ScoredFix {
        fix: Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false },
        penalty: WEIGHTS.missing_cte,
    });
}

/// Returns the only CTE with a name similar to that of an unknown table.
pub(crate) fn similar_cte<'s>(name: &str, ctx: &RuleContext<'s>) -> Option<&'s str> {
    let lower = name.to_lowercase();
    let is_like = |cte: &str| {
        let cte = cte.to_lowercase();
        let cut = cte.len().min(lower.len()) > 3 && (cte.starts_with(&lower) || lower.starts_with(&cte));
        cut || identifier_similarity(&lower, &cte) >= WEIGHTS.min_cte_similarity
    };
    let mut like = ctx.resolution.ctes.iter().filter(|cte| is_like(&cte.value));
    like.next().filter(|_| like.next().is_none()).map(|cte| cte.value.as_str())
}
