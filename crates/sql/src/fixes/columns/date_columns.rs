//! Suggests columns that hold dates for a missing column named like `date`.

use crate::finding::Applicability;
use crate::fixes::columns::scored_fix::{ScoredFix, replace_all_uses};
use crate::fixes::score::WEIGHTS;
use crate::fixes::{self, qualified_column};
use crate::resolve::{ColumnReference, SourceId};
use crate::rule::RuleContext;
use crate::schema::{Column, Table, Type};

/// Generic names for a date.
const DATE_WORDS: [&str; 5] = ["date", "datetime", "timestamp", "day", "time"];
/// Maximum number of sampled values that are checked per column.
const MAX_SAMPLED_VALUES: usize = 20;

/// Suggests every visible column that holds dates unless another candidate has evidence.
pub(crate) fn suggest_date_columns(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    ctx: &RuleContext<'_>,
    scored_fixes: &mut Vec<ScoredFix>,
) {
    let resolution = ctx.resolution;
    let name = reference.name.value.to_lowercase();
    let last_word = name.rsplit('_').next().unwrap_or_default();
    let has_evidence = scored_fixes.iter().any(|candidate| candidate.fix.applicability < Applicability::Suggested);
    if !DATE_WORDS.contains(&last_word) || has_evidence {
        return;
    }
    let sources = match owner {
        Some(owner) => vec![owner],
        None => resolution.blocks[reference.block].sources.clone(),
    };
    let is_alone = resolution.blocks[reference.block].sources.len() == 1 && reference.qualifier.is_none();
    for source in sources {
        let Some(table) = resolution.sources[source].table() else { continue };
        for column in table.columns.iter().filter(|column| holds_dates(table, column, ctx)) {
            let quoted = ctx.context.dialect.quote_identifier(&column.name);
            let text = match reference.qualifier {
                Some(q) => format!("{}.{quoted}", ctx.query.text(ctx.query.span(q.span))),
                None if is_alone => quoted,
                None => match qualified_column(ctx, source, &column.name) {
                    Some(text) => text,
                    None => continue,
                },
            };
            let mentioned = usize::from(fixes::question_mentions(ctx, &column.name));
            let penalty = WEIGHTS.date_column - WEIGHTS.date_column_mention_bonus * mentioned;
            let why = format!("`{}` of `{}` holds dates", column.name, table.name);
            let fix = replace_all_uses(reference, source, &text, Applicability::Suggested, why, ctx);
            scored_fixes.push(ScoredFix { fix, penalty });
        }
    }
}

/// Returns whether a column holds dates, by its type, its known values or else its name.
fn holds_dates(table: &Table, column: &Column, ctx: &RuleContext<'_>) -> bool {
    if column.kind().is_date_or_timestamp() {
        return true;
    }
    if !matches!(column.kind(), Type::Text | Type::Any) {
        return false;
    }
    let indexed = ctx.context.schema.and_then(|schema| schema.value_index()?.column(&table.name, &column.name));
    let values = indexed.map_or(column.samples.as_slice(), |column| column.values.as_slice());
    match values {
        [] => {
            let name = column.name.to_lowercase();
            let last = name.rsplit('_').next().unwrap_or_default();
            DATE_WORDS.contains(&last) || (name.contains('_') && ["on", "at"].contains(&last))
        }
        values => values.iter().take(MAX_SAMPLED_VALUES).all(|value| is_date(value)),
    }
}

/// Returns whether a text begins with a date such as `2024-03-01`.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes[at].is_ascii_digit();
    bytes.len() >= 10
        && [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit)
        && [4, 7].into_iter().all(|at| matches!(bytes[at], b'-' | b'/' | b'.'))
}
