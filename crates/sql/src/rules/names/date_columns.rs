//! Columns that hold dates, suggested for a missing column that is called `date`.

use crate::finding::Applicability;
use crate::mend::{self, qualified};
use crate::rules::Subject;
use crate::rules::names::column_fixes::{Way, everywhere};
use crate::schema::{Column, Table, Type};
use crate::scope::{Reference, SourceId};

/// Words that ask for a date and not for a certain one.
const DATE_WORDS: [&str; 5] = ["date", "datetime", "timestamp", "day", "time"];
/// Number of values that show what a column holds.
const MAX_VALUES: usize = 20;
/// Doubt of such a column: less than that of a name with half of the letters.
const DOUBT: usize = 15;
/// What a word of the question takes off the doubt.
const ASKED_FOR: usize = 3;

/// Suggests every column in reach that holds dates, unless something else speaks for another column.
pub(super) fn suggest(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let name = reference.name.value.to_lowercase();
    let last_word = name.rsplit('_').next().unwrap_or_default();
    let has_evidence = ways.iter().any(|way| way.fix.applicability < Applicability::Suggested);
    if !DATE_WORDS.contains(&last_word) || has_evidence {
        return;
    }
    let sources = match owner {
        Some(owner) => vec![owner],
        None => facts.blocks[reference.block].sources.clone(),
    };
    let is_alone = facts.blocks[reference.block].sources.len() == 1 && reference.qualifier.is_none();
    for source in sources {
        let Some(table) = facts.sources[source].table() else { continue };
        for column in table.columns.iter().filter(|column| holds_dates(table, column, subject)) {
            let quoted = subject.context.dialect.quoted(&column.name);
            let text = match reference.qualifier {
                Some(q) => format!("{}.{quoted}", subject.query.text(subject.query.span(q.span))),
                None if is_alone => quoted,
                None => match qualified(subject, source, &column.name) {
                    Some(text) => text,
                    None => continue,
                },
            };
            let doubt = DOUBT - ASKED_FOR * usize::from(mend::asked_for(subject, &column.name));
            let why = format!("`{}` of `{}` holds dates", column.name, table.name);
            let fix = everywhere(reference, source, &text, Applicability::Suggested, why, subject);
            ways.push(Way { fix, doubt });
        }
    }
}

/// Whether a column holds dates: by its type, by the values that are known of it, or else by its name.
fn holds_dates(table: &Table, column: &Column, subject: &Subject<'_>) -> bool {
    if column.kind().is_moment() {
        return true;
    }
    if !matches!(column.kind(), Type::Text | Type::Any) {
        return false;
    }
    let indexed = subject.context.schema.and_then(|schema| schema.values()?.of(&table.name, &column.name));
    let values = indexed.map_or(column.samples.as_slice(), |held| held.values.as_slice());
    match values {
        [] => {
            let name = column.name.to_lowercase();
            let last = name.rsplit('_').next().unwrap_or_default();
            DATE_WORDS.contains(&last) || (name.contains('_') && ["on", "at"].contains(&last))
        }
        values => values.iter().take(MAX_VALUES).all(|value| is_date(value)),
    }
}

/// Whether a text begins with a date: `2024-03-01`.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes[at].is_ascii_digit();
    bytes.len() >= 10
        && [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit)
        && [4, 7].into_iter().all(|at| matches!(bytes[at], b'-' | b'/' | b'.'))
}
