//! Whose column a name says that it is: `department_name` is the name of a department.

use crate::near::{is_nearly, likeness, words_of};
use crate::rules::Subject;
use crate::schema::{Schema, Table};
use crate::scope::SourceId;

/// What the words of a name that a column lacks say about whose column is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owned {
    /// Nothing: the column has all words of the name.
    Unsaid,
    /// That it is this table's.
    Here,
    /// That it is another's: a table is called so, or a key here points at it.
    Elsewhere,
    /// They are words that nothing is called.
    Unknown,
    /// Each has words that the other has not: `book_name` is no `book_id`.
    Otherwise,
}

impl Owned {
    /// What it adds to the doubt about the column.
    pub fn doubt(self) -> usize {
        match self {
            Owned::Unsaid | Owned::Here => 0,
            Owned::Unknown => 1,
            Owned::Otherwise => 6,
            Owned::Elsewhere => 12,
        }
    }
}

/// Whose a name says that it is, if it is taken for a column of a source.
pub(super) fn owner_in(name: &str, column: &str, source: SourceId, subject: &Subject<'_>) -> Owned {
    let (asked, has) = (words_of(name), words_of(column));
    let same = |a: &String, b: &String| a == b || is_nearly(a, b, 0.98);
    // Only where a name is a column's and more.
    if !has.iter().all(|word| asked.iter().any(|w| same(w, word))) {
        let like = likeness(name, column) >= 0.8;
        return if !like && differ(&asked, &has) { Owned::Otherwise } else { Owned::Unsaid };
    }
    let more: Vec<&String> = asked.iter().filter(|word| !has.iter().any(|h| same(h, word))).collect();
    let (Some(schema), false) = (subject.context.schema, more.is_empty()) else { return Owned::Unsaid };
    let facts = subject.facts;
    let said = more.iter().map(|word| word.as_str()).collect::<Vec<_>>().join("_");
    let is_called = |other: SourceId| facts.sources[other].called().eq_ignore_ascii_case(&said);
    let own = facts.sources[source].table();
    if is_called(source) || own.is_some_and(|table| is_named(&said, &table.name)) {
        return Owned::Here;
    }
    let points = own.is_some_and(|table| points_at(&said, table));
    let other = facts.sources.iter().enumerate().any(|(at, _)| at != source && is_called(at));
    if points || other || names_table(&said, schema) { Owned::Elsewhere } else { Owned::Unknown }
}

/// Whether two names share words, and what they do not share is not alike either: `stu_id` may be `student_id`.
fn differ(a: &[String], b: &[String]) -> bool {
    let rest = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|word| !b.iter().any(|w| w == *word || is_nearly(w, word, 0.98))).cloned().collect()
    };
    let (one, other) = (rest(a, b), rest(b, a));
    let shares = one.len() < a.len();
    let cut = |a: &str, b: &str| a.len().min(b.len()) > 2 && (a.starts_with(b) || b.starts_with(a));
    let alike = |x: &String| other.iter().any(|y| cut(x, y) || likeness(x, y) >= 0.7);
    shares && !one.is_empty() && !other.is_empty() && !one.iter().any(alike)
}

/// Whether a table has that name, or one that ends in it: `department` is `hr_departments` as well.
fn is_named(said: &str, table: &str) -> bool {
    is_nearly(said, table, 0.98)
        || words_of(table).last().is_some_and(|last| last.len() > 3 && is_nearly(said, last, 0.98))
}

fn names_table(said: &str, schema: &Schema) -> bool {
    schema.tables().iter().any(|table| is_named(said, &table.name))
}

/// Whether a key of a table is called so: `manager` where `manager_id` points at somebody.
fn points_at(said: &str, table: &Table) -> bool {
    let stem = |column: &String| {
        let words = words_of(column);
        words.split_last().is_some_and(|(_, stem)| !stem.is_empty() && is_nearly(said, &stem.join("_"), 0.98))
    };
    table.foreign_keys.iter().any(|key| matches!(key.columns.as_slice(), [column] if stem(column)))
}
