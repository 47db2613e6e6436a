//! What the values of a database say about a name that is not there.

use sqlparser::ast::{BinaryOperator, Expr};

use super::column_fixes::Way;
use crate::finding::Applicability;
use crate::mend::{self, qualified};
use crate::near::{is_nearly, words_of};
use crate::rules::Subject;
use crate::rules::value::text_of;
use crate::schema::{Column, Table};
use crate::scope::{Reference, SourceId, Value, place};

/// What a reference is compared with, each with its node.
fn comparisons<'s>(
    reference: &'s Reference<'_>,
    subject: &'s Subject<'_>,
) -> impl Iterator<Item = (Value<'s>, &'s Expr)> {
    subject.facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq).filter_map(|o| {
        let stands = |node| place(node) == reference.place;
        match (stands(o.left_node), stands(o.right_node)) {
            (true, false) => Some((o.right, o.right_node)),
            (false, true) => Some((o.left, o.left_node)),
            _ => None,
        }
    })
}

/// The text that a reference is compared with.
fn literal<'s>(reference: &'s Reference<'_>, subject: &'s Subject<'_>) -> Option<&'s str> {
    comparisons(reference, subject).find_map(|(value, node)| text_of(value, node))
}

/// A name without quotes that is a value of the column it is compared with: `status = cancelled`.
pub(super) fn unquoted(reference: &Reference<'_>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let Some(values) = subject.context.schema.and_then(|schema| schema.values()) else { return };
    if reference.qualifier.is_some() {
        return;
    }
    let owner = comparisons(reference, subject).find_map(|(value, _)| value.column);
    let Some((source, index)) = owner else { return };
    let Some(table) = facts.sources[source].table() else { return };
    let Some(column) = table.columns.get(index) else { return };
    let name = &reference.name.value;
    let Some(held) = values.of(&table.name, &column.name).and_then(|held| held.values.iter().find(|v| *v == name))
    else {
        return;
    };
    let why = format!("`{}` holds the value '{held}', which stands in quotes", column.name);
    let text = format!("'{}'", held.replace('\'', "''"));
    ways.push(Way {
        fix: mend::replace(subject.query.span(reference.place), text, Applicability::Safe, why),
        doubt: 0,
    });
}

/// A column in reach, of another name, that holds the value which the missing one is compared with, where no other one does.
pub(super) fn holding(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let (Some(values), Some(value)) =
        (subject.context.schema.and_then(|schema| schema.values()), literal(reference, subject))
    else {
        return;
    };
    let sources = &facts.blocks[reference.block].sources;
    let mut found = values.holding(value).into_iter().flat_map(|held| {
        let of = |s: &&SourceId| facts.sources[**s].table().is_some_and(|t| t.name.eq_ignore_ascii_case(&held.table));
        sources.iter().filter(of).map(move |&source| (source, held.column.as_str()))
    });
    let (Some((source, column)), None) = (found.next(), found.next()) else { return };
    if owner.is_some_and(|owner| owner != source) {
        return;
    }
    let Some(text) = qualified(subject, source, column) else { return };
    let why = format!("`{column}` is the one column here that holds '{value}'");
    ways.push(Way {
        fix: mend::replace(subject.query.span(reference.place), text, Applicability::Likely, why),
        doubt: 7,
    });
}

/// The column of a table that holds the value which a name is compared with, if the name speaks of the table or of the column:
/// `department = 'Sales'`, `destination_city = 'Munich'`.
pub(super) fn held_by<'t>(reference: &Reference<'_>, table: &'t Table, subject: &Subject<'_>) -> Option<&'t Column> {
    let values = subject.context.schema?.values()?;
    let value = literal(reference, subject)?;
    let name = reference.name.value.as_str();
    let words = words_of(name);
    let mut found = values.holding(value).into_iter().filter(|held| held.table.eq_ignore_ascii_case(&table.name));
    let held = found.next().filter(|_| found.next().is_none())?;
    let of_table = is_nearly(name, &table.name, 0.98);
    let of_column = words.len() > 1 && words.last().is_some_and(|last| is_nearly(last, &held.column, 0.98));
    (of_table || of_column).then(|| table.column(&held.column)).flatten()
}
