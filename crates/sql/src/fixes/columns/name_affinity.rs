//! Owner that a column name implies: `department_name` is the name of a department.

use crate::fixes::score::WEIGHTS;
use crate::resolve::SourceId;
use crate::rule::RuleContext;
use crate::schema::{Schema, Table};
use crate::text::similarity::{identifier_similarity, identifier_words, is_similar};

/// Owner implied by those words of a name that the candidate column lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameOwner {
    /// The candidate column has all words of the name.
    Unspecified,
    /// The words name the table of the candidate column.
    ThisTable,
    /// The words name another table, or a foreign key that references one.
    OtherTable,
    /// The words match nothing in the schema.
    Unknown,
    /// Each name has words that the other lacks: `book_name` is not `book_id`.
    DifferentWords,
}

impl NameOwner {
    /// Returns the penalty of a candidate column with this owner.
    pub fn penalty(self) -> usize {
        match self {
            NameOwner::Unspecified | NameOwner::ThisTable => 0,
            NameOwner::Unknown => WEIGHTS.unknown_owner,
            NameOwner::DifferentWords => WEIGHTS.conflicting_words,
            NameOwner::OtherTable => WEIGHTS.other_owner,
        }
    }
}

/// Returns the owner that a name implies if it is read as a column of a source.
pub(crate) fn name_owner(name: &str, column: &str, source: SourceId, ctx: &RuleContext<'_>) -> NameOwner {
    let (asked, has) = (identifier_words(name), identifier_words(column));
    let same = |a: &String, b: &String| a == b || is_similar(a, b, WEIGHTS.min_same_name_similarity);
    // An owner is implied only if the name has all words of the column and more.
    if !has.iter().all(|word| asked.iter().any(|w| same(w, word))) {
        let like = identifier_similarity(name, column) >= WEIGHTS.min_whole_name_similarity;
        return if !like && has_conflicting_words(&asked, &has) {
            NameOwner::DifferentWords
        } else {
            NameOwner::Unspecified
        };
    }
    let more: Vec<&String> = asked.iter().filter(|word| !has.iter().any(|h| same(h, word))).collect();
    let (Some(schema), false) = (ctx.context.schema, more.is_empty()) else { return NameOwner::Unspecified };
    let resolution = ctx.resolution;
    let owner_words = more.iter().map(|word| word.as_str()).collect::<Vec<_>>().join("_");
    let is_called = |other: SourceId| resolution.sources[other].display_name().eq_ignore_ascii_case(&owner_words);
    let own = resolution.sources[source].table();
    if is_called(source) || own.is_some_and(|table| is_table_name(&owner_words, &table.name)) {
        return NameOwner::ThisTable;
    }
    let points = own.is_some_and(|table| is_foreign_key_prefix(&owner_words, table));
    let other = resolution.sources.iter().enumerate().any(|(at, _)| at != source && is_called(at));
    if points || other || is_any_table_name(&owner_words, schema) { NameOwner::OtherTable } else { NameOwner::Unknown }
}

/// Returns whether two names share words and their remaining words are dissimilar.
///
/// `stu_id` may be `student_id`.
fn has_conflicting_words(a: &[String], b: &[String]) -> bool {
    let rest = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter()
            .filter(|word| !b.iter().any(|w| w == *word || is_similar(w, word, WEIGHTS.min_same_name_similarity)))
            .cloned()
            .collect()
    };
    let (one, other) = (rest(a, b), rest(b, a));
    let shares = one.len() < a.len();
    let cut = |a: &str, b: &str| a.len().min(b.len()) > 2 && (a.starts_with(b) || b.starts_with(a));
    let alike =
        |x: &String| other.iter().any(|y| cut(x, y) || identifier_similarity(x, y) >= WEIGHTS.min_name_word_similarity);
    shares && !one.is_empty() && !other.is_empty() && !one.iter().any(alike)
}

/// Returns whether a table has the given name or one that ends in it.
///
/// `department` matches `hr_departments`.
fn is_table_name(owner_words: &str, table: &str) -> bool {
    is_similar(owner_words, table, WEIGHTS.min_same_name_similarity)
        || identifier_words(table)
            .last()
            .is_some_and(|last| last.len() > 3 && is_similar(owner_words, last, WEIGHTS.min_same_name_similarity))
}

fn is_any_table_name(owner_words: &str, schema: &Schema) -> bool {
    schema.tables().iter().any(|table| is_table_name(owner_words, &table.name))
}

/// Returns whether a foreign key of a table has this prefix: `manager` matches `manager_id`.
fn is_foreign_key_prefix(owner_words: &str, table: &Table) -> bool {
    let stem = |column: &String| {
        let words = identifier_words(column);
        words.split_last().is_some_and(|(_, stem)| {
            !stem.is_empty() && is_similar(owner_words, &stem.join("_"), WEIGHTS.min_same_name_similarity)
        })
    };
    table.foreign_keys.iter().any(|key| matches!(key.columns.as_slice(), [column] if stem(column)))
}
