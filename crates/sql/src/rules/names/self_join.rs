//! Tables that point at themselves: an employee's manager is an employee.

use super::column_fixes::Way;
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend::{self, qualified};
use crate::rules::Subject;
use crate::schema::Table;
use crate::scope::{BlockId, Reference, SourceId};

/// The one column of a table that points at a column of the same table.
fn own_key<'t>(table: &'t Table, at: &str) -> Option<&'t str> {
    let mut keys = table.foreign_keys.iter().filter_map(|key| {
        let ([own], [there]) = (key.columns.as_slice(), key.references.as_slice()) else { return None };
        let itself = key.table.eq_ignore_ascii_case(&table.name) && there.eq_ignore_ascii_case(at);
        itself.then_some(own.as_str())
    });
    keys.next().filter(|_| keys.next().is_none())
}

/// Two uses of one table are tied by a column that is not there: the one that points at the other row is meant.
pub(super) fn key_of_itself(
    reference: &Reference<'_>,
    owner: Option<SourceId>,
    subject: &Subject<'_>,
    ways: &mut Vec<Way>,
) {
    let facts = subject.facts;
    let (Some(owner), Some((other, index))) = (owner, mend::partner(subject, reference)) else { return };
    let (Some(table), Some(there)) = (facts.sources[owner].table(), facts.sources[other].table()) else { return };
    if other == owner || !std::ptr::eq(table, there) {
        return;
    }
    let Some(at) = table.columns.get(index) else { return };
    let Some(key) = own_key(table, &at.name) else { return };
    let Some(text) = qualified(subject, owner, key) else { return };
    let why = format!("`{key}` of `{}` points at the `{}` of another row", table.name, at.name);
    ways.push(Way {
        fix: mend::replace(subject.query.span(reference.place), text, Applicability::Likely, why),
        doubt: 2,
    });
}

/// Whether a column is the key of a table that is joined with itself: nobody ties a row to itself.
pub(super) fn is_same_row(reference: &Reference<'_>, source: SourceId, column: &str, subject: &Subject<'_>) -> bool {
    let facts = subject.facts;
    let Some((other, index)) = mend::partner(subject, reference) else { return false };
    let (Some(table), Some(there)) = (facts.sources[source].table(), facts.sources[other].table()) else {
        return false;
    };
    let is_key = matches!(table.primary_key.as_slice(), [key] if key.eq_ignore_ascii_case(column));
    let same = there.columns.get(index).is_some_and(|c| c.name.eq_ignore_ascii_case(column));
    other != source && std::ptr::eq(table, there) && is_key && same
}

/// The table that an alias, which nothing has, must stand for: a key of the query is compared with its column.
pub(super) fn pointed_at<'s>(alias: &str, block: BlockId, subject: &Subject<'s>) -> Option<Pointed<'s>> {
    let (facts, schema) = (subject.facts, subject.context.schema?);
    facts.references.iter().filter(|r| r.block == block).find_map(|r| {
        r.qualifier.filter(|q| q.value.eq_ignore_ascii_case(alias))?;
        let (source, index) = mend::partner(subject, r)?;
        let column = facts.sources[source].table()?.columns.get(index)?.name.as_str();
        let key = facts.sources[source].table()?.foreign_keys.iter().find(|key| {
            let (own, there) = (key.columns.as_slice(), key.references.as_slice());
            matches!((own, there), ([own], [there])
                if own.eq_ignore_ascii_case(column) && there.eq_ignore_ascii_case(&r.name.value))
        })?;
        Some(Pointed { from: source, column, table: schema.table(&key.table)?, there: r.name.value.as_str() })
    })
}

/// Where a key of the query points.
pub(super) struct Pointed<'s> {
    from: SourceId,
    column: &'s str,
    pub table: &'s Table,
    there: &'s str,
}

/// A column that points at its own table is compared with that of an alias that nothing has: the table is joined once more, under
/// that name.
pub(super) fn joined_again(reference: &Reference<'_>, alias: &str, subject: &Subject<'_>, ways: &mut Vec<Way>) {
    let facts = subject.facts;
    let Some(Pointed { from, column, table, there }) = pointed_at(alias, reference.block, subject) else { return };
    let itself = facts.sources[from].table().is_some_and(|own| std::ptr::eq(own, table));
    if !itself || facts.sources[from].block != reference.block {
        return;
    }
    let dialect = subject.context.dialect;
    let (Some(end), Some(left)) = (mend::from_end(subject, reference.block), qualified(subject, from, column)) else {
        return;
    };
    let (name, called, there) = (dialect.quoted(&table.name), dialect.quoted(alias), dialect.quoted(there));
    let text = format!(" JOIN {name} AS {called} ON {left} = {called}.{there}");
    let why = format!("`{column}` points at another row of `{}`", table.name);
    let edits = vec![Edit { span: Span::new(end, end), text }];
    ways.push(Way { fix: Fix { edits, applicability: Applicability::Likely, why, tied: false }, doubt: 0 });
}
