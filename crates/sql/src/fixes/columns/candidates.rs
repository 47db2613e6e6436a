//! Fixes for references to columns that do not resolve, most certain first.

use crate::finding::{Applicability, Fix};
use crate::fixes::columns::evidence::{contradicts_filter, is_self_comparison, ownership_evidence};
use crate::fixes::columns::name_affinity::{NameOwner, name_owner};
use crate::fixes::columns::scored_fix::{ScoredFix, replace_all_uses};
use crate::fixes::columns::{cte_columns, date_columns, missing_table, self_reference, value_evidence};
use crate::fixes::score::WEIGHTS;
use crate::fixes::{self, qualified_column};
use crate::resolve::{ColumnBinding, ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::text::similarity::{has_extra_words, identifier_similarity, is_negation, is_similar, is_typo};

/// Maximum number of fixes offered for one reference; more are not helpful.
const MAX_FIXES: usize = 6;

/// Returns all fixes for a column missing from its source, or from every visible source.
pub(crate) fn fixes_for_column(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
) -> Vec<Fix> {
    let mut scored_fixes = Vec::new();
    // Column names in USING cannot be qualified.
    let before = ctx.query.source[..ctx.query.span(reference.span).start].trim_end().trim_end_matches('(').trim_end();
    if before.len() >= 5 && before.get(before.len() - 5..).is_some_and(|w| w.eq_ignore_ascii_case("using")) {
        return Vec::new();
    }
    cte_columns::suggest_projection(reference, owner, ctx, &mut scored_fixes);
    value_evidence::suggest_quoted_value(reference, ctx, &mut scored_fixes);
    value_evidence::suggest_column_with_value(reference, owner, ctx, &mut scored_fixes);
    self_reference::suggest_self_reference(reference, owner, ctx, &mut scored_fixes);
    suggest_same_name(reference, owner, ctx, &mut scored_fixes);
    suggest_similar_names(reference, owner, ctx, &mut scored_fixes);
    suggest_foreign_keys(reference, owner, ctx, &mut scored_fixes);
    missing_table::join_along_keys(reference, ctx, &mut scored_fixes);
    missing_table::add_from(reference, ctx, &mut scored_fixes);
    missing_table::join_missing_table(reference, None, ctx, &mut scored_fixes);
    missing_table::switch_table(reference, owner, ctx, &mut scored_fixes);
    date_columns::suggest_date_columns(reference, owner, ctx, &mut scored_fixes);
    rank_fixes(scored_fixes)
}

/// Returns all fixes for a reference whose qualifier matches no source in FROM.
pub(crate) fn fixes_for_qualifier(reference: &ColumnReference<'_>, ctx: &RuleContext<'_>) -> Vec<Fix> {
    let mut scored_fixes = Vec::new();
    let resolution = ctx.resolution;
    let Some(qualifier) = reference.qualifier else { return Vec::new() };
    let span = ctx.query.span(reference.span);
    let compared_column = fixes::compared_column(ctx, reference);
    for source in resolution.visible_sources(reference.block) {
        let table = resolution.sources[source].table();
        let is_table = table.is_some_and(|t| t.name.eq_ignore_ascii_case(&qualifier.value));
        if is_table && let Some(text) = requalify(reference, source, ctx) {
            let why = format!("`{}` is called `{}` here", qualifier.value, resolution.sources[source].display_name());
            // A condition that no foreign key backs may refer to another table.
            let comparison_penalty =
                compared_column.map_or(0, |p| fixes::comparison_penalty(ctx, Some(p), source, &reference.name.value));
            let applicability = if comparison_penalty == 0 { Applicability::Safe } else { Applicability::Likely };
            scored_fixes
                .push(ScoredFix { fix: fixes::replace(span, text, applicability, why), penalty: comparison_penalty });
        }
    }
    if !reference.is_wildcard && (scored_fixes.is_empty() || compared_column.is_some()) {
        let renamed = scored_fixes.len();
        suggest_same_name(reference, None, ctx, &mut scored_fixes);
        // The alias belongs to some table, and this one is only a guess.
        for candidate in &mut scored_fixes[renamed..] {
            candidate.fix.applicability = Applicability::Likely;
            if renamed > 0 && candidate.penalty >= WEIGHTS.unknown_qualifier {
                candidate.penalty -= WEIGHTS.unknown_qualifier_bonus;
            }
        }
        if renamed == 0 {
            missing_table::add_from(reference, ctx, &mut scored_fixes);
            cte_columns::suggest_cte_source(reference, ctx, &mut scored_fixes);
            self_reference::add_self_join(reference, &qualifier.value, ctx, &mut scored_fixes);
            missing_table::join_missing_table(reference, Some(&qualifier.value), ctx, &mut scored_fixes);
        }
    }
    rank_fixes(scored_fixes)
}

fn requalify(reference: &ColumnReference<'_>, source: SourceId, ctx: &RuleContext<'_>) -> Option<String> {
    if reference.is_wildcard {
        return qualified_column(ctx, source, "x")
            .map(|q| format!("{}.*", q.trim_end_matches(".x").trim_end_matches(".`x`")));
    }
    let names = ctx.resolution.sources[source].column_names();
    let column = names.iter().find(|c| c.eq_ignore_ascii_case(&reference.name.value))?;
    qualified_column(ctx, source, column)
}

fn rank_fixes(mut scored_fixes: Vec<ScoredFix>) -> Vec<Fix> {
    scored_fixes.sort_by_key(|c| c.penalty);
    let alone = scored_fixes.len() == 1;
    // Keep one fix per set of edits, even if several reasons led to it.
    let mut candidates: Vec<ScoredFix> = Vec::new();
    for candidate in scored_fixes {
        if !candidates.iter().any(|c| c.fix.edits == candidate.fix.edits) {
            candidates.push(candidate);
        }
    }
    let penalties: Vec<usize> = candidates.iter().map(|c| c.penalty).collect();
    let mut fixes: Vec<Fix> = candidates.into_iter().map(|c| c.fix).take(MAX_FIXES).collect();
    for (i, fix) in fixes.iter_mut().enumerate() {
        fix.is_tied_with_previous = i > 0 && penalties[i] == penalties[i - 1];
        // Only a fix without a rival counts as proved.
        if i > 0 || !alone {
            fix.applicability = fix.applicability.max(Applicability::Likely);
        }
    }
    fixes
}

/// Suggests columns of the same name in other visible sources.
fn suggest_same_name(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let name = reference.name.value.as_str();
    let span = ctx.query.span(reference.span);
    let compared_column = fixes::compared_column(ctx, reference);
    for (n, source) in resolution.visible_sources(reference.block).into_iter().enumerate() {
        if Some(source) == owner {
            continue;
        }
        for column in resolution.sources[source].column_names() {
            // Other spellings of the same name count; similar names do not.
            if !is_similar(name, column, WEIGHTS.min_same_name_similarity)
                || is_self_comparison(reference, source, column, ctx)
                || contradicts_filter(reference, source, column, ctx)
            {
                continue;
            }
            let Some(text) = qualified_column(ctx, source, column) else { continue };
            let inner = resolution.sources[source].block == reference.block;
            let why = format!("`{}` has the column `{column}`", resolution.sources[source].display_name());
            let comparison_penalty = fixes::comparison_penalty(ctx, compared_column, source, column);
            // A foreign key between this column and one of the inner query suggests a correlated
            // subquery.
            let correlates = !inner
                && comparison_penalty == 0
                && compared_column.is_some_and(|(p, _)| resolution.sources[p].block == reference.block);
            let penalty = comparison_penalty
                + n.min(WEIGHTS.max_source_position)
                + WEIGHTS.other_spelling * usize::from(!is_similar(name, column, 1.0))
                + WEIGHTS.outer_source * usize::from(!inner)
                + WEIGHTS.unknown_qualifier
                    * usize::from(reference.binding == ColumnBinding::UnknownQualifier && !correlates);
            let penalty_with_evidence =
                penalty.saturating_add_signed(-ownership_evidence(reference, source, column, ctx));
            // In a comparison each use has its own partner; elsewhere the same name always means
            // the same column.
            let fix = match compared_column {
                Some(_) => fixes::replace(span, text, Applicability::Safe, why),
                None => replace_all_uses(reference, source, &text, Applicability::Safe, why, ctx),
            };
            scored_fixes.push(ScoredFix { fix, penalty: penalty_with_evidence });
        }
    }
}

/// Suggests columns of a similar name in the named source, or in all visible sources.
fn suggest_similar_names(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let name = reference.name.value.as_str();
    let compared_column = fixes::compared_column(ctx, reference);
    let is_known_name = ctx.context.schema.is_some_and(|s| s.tables().iter().any(|t| t.column(name).is_some()));
    let candidates: Vec<SourceId> = match owner {
        Some(owner) => vec![owner],
        None => resolution.visible_sources(reference.block),
    };
    for source in candidates {
        let key = resolution.sources[source].table().and_then(|t| match t.primary_key.as_slice() {
            [key] => Some(key.as_str()),
            _ => None,
        });
        for column in resolution.sources[source].column_names() {
            let similarity = identifier_similarity(name, column);
            let is_key = name.eq_ignore_ascii_case("id") && key == Some(column);
            if similarity < WEIGHTS.min_candidate_similarity && !is_key
                || is_self_comparison(reference, source, column, ctx)
                || self_reference::is_same_row(reference, source, column, ctx)
            {
                continue;
            }
            let text = match reference.qualifier {
                Some(q) => format!(
                    "{}.{}",
                    ctx.query.text(ctx.query.span(q.span)),
                    ctx.context.dialect.quote_identifier(column)
                ),
                None => match qualified_column(ctx, source, column) {
                    Some(text) if resolution.blocks[reference.block].sources.len() > 1 => text,
                    _ => ctx.context.dialect.quote_identifier(column),
                },
            };
            let mentioned = usize::from(fixes::question_mentions(ctx, column));
            let comparison_penalty = if compared_column.is_some() {
                fixes::comparison_penalty(ctx, compared_column, source, column)
            } else {
                0
            };
            // A one-letter difference is a typo whatever the column is compared with, unless that
            // is a column of the same table. A name that some table has is not a typo.
            let is_typo_of_column = similarity >= WEIGHTS.min_typo_similarity
                && column.len() > 3
                && is_typo(&name.to_lowercase(), &column.to_lowercase())
                && !is_known_name;
            let mismatch_penalty = if is_typo_of_column && comparison_penalty < WEIGHTS.same_source_comparison {
                0
            } else {
                comparison_penalty
            };
            let owned = name_owner(name, column, source, ctx);
            let is_linked =
                compared_column.is_some() && fixes::comparison_penalty(ctx, compared_column, source, column) == 0;
            let penalty = mismatch_penalty
                + owned.penalty()
                + match similarity {
                    _ if is_typo_of_column => WEIGHTS.typo,
                    l if l >= WEIGHTS.min_same_name_similarity || is_key => WEIGHTS.same_name,
                    _ if owned == NameOwner::ThisTable && !is_known_name => WEIGHTS.owner_in_name,
                    _ if is_linked => WEIGHTS.linked_column,
                    l if l >= WEIGHTS.min_close_column_similarity => {
                        WEIGHTS.close_column - WEIGHTS.close_column_mention_bonus * mentioned
                    }
                    l if l >= WEIGHTS.min_similar_column_similarity => {
                        WEIGHTS.similar_column - WEIGHTS.similar_column_mention_bonus * mentioned
                    }
                    l => {
                        WEIGHTS.distant_column
                            - (l * WEIGHTS.distant_column_similarity_bonus) as usize
                            - WEIGHTS.distant_column_mention_bonus * mentioned
                    }
                };
            // Half of the letters are not evidence, so something else must support the column.
            let is_spelled_alike =
                similarity >= WEIGHTS.min_similar_column_similarity && !has_extra_words(name, column);
            let has_evidence = is_spelled_alike
                || is_typo_of_column
                || is_key
                || is_linked
                || mentioned > 0
                || owned == NameOwner::ThisTable;
            let applicability = match owned {
                NameOwner::OtherTable | NameOwner::DifferentWords => Applicability::Suggested,
                _ if !has_evidence || is_negation(name, column) => Applicability::Suggested,
                NameOwner::Unspecified | NameOwner::ThisTable if similarity >= WEIGHTS.min_safe_column_similarity => {
                    Applicability::Safe
                }
                NameOwner::Unspecified | NameOwner::ThisTable | NameOwner::Unknown => Applicability::Likely,
            };
            let why = format!(
                "`{column}` is the column of `{}` most similar to `{name}`",
                resolution.sources[source].display_name()
            );
            scored_fixes
                .push(ScoredFix { fix: replace_all_uses(reference, source, &text, applicability, why, ctx), penalty });
        }
    }
}

/// Suggests a foreign key column if the name is the column that the key references.
///
/// Both hold the same value.
fn suggest_foreign_keys(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let name = reference.name.value.as_str();
    let candidates = match owner {
        Some(owner) => vec![owner],
        None => resolution.blocks[reference.block].sources.clone(),
    };
    for source in candidates {
        let Some(table) = resolution.sources[source].table() else { continue };
        for key in &table.foreign_keys {
            let ([own], [there]) = (key.columns.as_slice(), key.references.as_slice()) else { continue };
            if !is_similar(name, there, WEIGHTS.min_same_name_similarity) || name.eq_ignore_ascii_case("id") {
                continue;
            }
            let Some(text) = qualified_column(ctx, source, own) else { continue };
            let single = resolution.blocks[reference.block].sources.len() == 1 && reference.qualifier.is_none();
            let text = if single { ctx.context.dialect.quote_identifier(own) } else { text };
            let comparison_penalty = match fixes::compared_column(ctx, reference) {
                Some(partner) => fixes::comparison_penalty(ctx, Some(partner), source, own),
                None => 0,
            };
            let why = format!("`{}.{own}` holds the `{there}` of `{}`", table.name, key.table);
            let penalty =
                comparison_penalty + WEIGHTS.foreign_key_column + WEIGHTS.inferred_key * usize::from(key.inferred);
            let applicability = if key.inferred { Applicability::Likely } else { Applicability::Safe };
            scored_fixes
                .push(ScoredFix { fix: replace_all_uses(reference, source, &text, applicability, why, ctx), penalty });
        }
    }
}
