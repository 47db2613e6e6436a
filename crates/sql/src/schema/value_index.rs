//! Immutable index over the values of text columns, to find the value that was meant.
//!
//! For each column, the index knows if its list of values is complete. Only then does it report a
//! value as absent.

mod fold;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use fold::fold;

/// Indexed values of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnValues {
    /// Table name, qualified by its schema if it has one.
    pub table: String,
    /// Column name.
    pub column: String,
    /// Distinct values of the column.
    pub values: Vec<String>,
    /// `true` if `values` is complete.
    pub whole: bool,
    /// `true` if the database compares this column ignoring case.
    pub caseless: bool,
    /// `true` if every row has a value and no two rows have the same one.
    pub unique: bool,
}

/// Text column whose values are not in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotIndexed {
    /// Table name, qualified by its schema if it has one.
    pub table: String,
    /// Column name.
    pub column: String,
    /// Reason that the values are not indexed.
    pub reason: NotIndexedReason,
    /// Error message of the database; absent unless it rejected the read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Reason that the values of a column are not in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotIndexedReason {
    /// Its name or its values look like secrets or personal data.
    Sensitive,
    /// The limit on the total number of rows was reached.
    RowLimit,
    /// The limit on the bytes of its table or on the total bytes was reached.
    ByteLimit,
    /// The database rejected the read.
    Failed,
    /// The database did not answer in time.
    TimedOut,
    /// The database could not be reached.
    Unavailable,
}

impl NotIndexedReason {
    /// Returns whether a retry may succeed without any change.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::TimedOut | Self::Unavailable)
    }

    /// Returns a description of the reason, to follow "not indexed:".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sensitive => "looks like secrets or personal data",
            Self::RowLimit => "the limit `values.total_rows` is reached",
            Self::ByteLimit => "the limit `values.table_bytes` or `values.bytes` is reached",
            Self::Failed => "the database rejected the query",
            Self::TimedOut => "the database did not answer within `values.time`",
            Self::Unavailable => "the database could not be reached",
        }
    }
}

/// Kind of similarity between a value and the search text, closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueMatchKind {
    /// Equal except for case, accents and whitespace around the search text.
    CaseInsensitive,
    /// Equal except for punctuation and whitespace as well.
    Normalized,
    /// Damerau-Levenshtein distance of 1: one character deleted, inserted, replaced or transposed.
    Typo,
    /// The words of one are a subset of the words of the other.
    WordSubset,
}

/// Value of a column that is similar to the search text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimilarValue {
    /// Value as stored in the column.
    pub value: String,
    /// Kind of similarity.
    pub kind: ValueMatchKind,
}

/// Value that a question mentions, in a column that contains it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueMention {
    /// Table name, qualified by its schema if it has one.
    pub table: String,
    /// Column name.
    pub column: String,
    /// Value as stored in the column.
    pub value: String,
    /// Byte offset at which the mention starts in the question.
    pub start: usize,
    /// Byte offset of the end of the mention, exclusive.
    pub end: usize,
    /// `true` if the question spells the value as the column does.
    pub is_exact: bool,
    /// `true` if the mention is unlikely to be an ordinary word: it is quoted, has several words,
    /// or has a capital letter or a digit after the start of the sentence.
    pub is_distinctive: bool,
    /// `true` if the mention is in quotes.
    pub is_quoted: bool,
}

/// Maximum number of consecutive words of a question that are compared with a value.
const MAX_PHRASE_WORDS: usize = 8;
/// Maximum length of a value to search for typos, in characters; longer ones are sentences.
const MAX_TYPO_LENGTH: usize = 40;
/// Minimum length of a value to search for typos, in characters; shorter ones have too many
/// neighbors.
const MIN_TYPO_LENGTH: usize = 4;
/// Maximum number of values that contain a word; a more frequent word is not selective.
const MAX_WORD_FREQUENCY: usize = 400;

/// Position of a value: column and index within the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ValueId {
    column: u32,
    value: u32,
}

/// Index sorted by hash for binary search; it avoids the memory overhead of a map entry per value.
type HashIndex = Vec<(u64, ValueId)>;

/// Index over the values of text columns.
#[derive(Debug, Default)]
pub struct ValueIndex {
    columns: Vec<ColumnValues>,
    not_indexed: Vec<NotIndexed>,
    /// Positions in `columns` by table and column name in lower case.
    column_positions: HashMap<(String, String), usize>,
    /// Index of whole values, folded.
    folded_index: HashIndex,
    /// Index of the words of folded values.
    word_index: HashIndex,
    /// Index of folded values with at most one character deleted (symmetric delete, as in
    /// SymSpell).
    deletion_index: HashIndex,
}

impl ValueIndex {
    /// Builds the index.
    pub fn new(mut columns: Vec<ColumnValues>) -> Self {
        let (mut folded, mut words, mut deletions) = (HashIndex::new(), HashIndex::new(), HashIndex::new());
        let mut column_positions = HashMap::with_capacity(columns.len());
        for (c, column) in columns.iter_mut().enumerate() {
            column.values.sort_unstable();
            column.values.dedup();
            column_positions.insert((column.table.to_lowercase(), column.column.to_lowercase()), c);
            for (v, value) in column.values.iter().enumerate() {
                let id = ValueId { column: c as u32, value: v as u32 };
                let folded_value = fold(value);
                folded.push((hash(&folded_value), id));
                words.extend(folded_value.split(' ').filter(|w| !w.is_empty()).map(|w| (hash(w), id)));
                for_each_deletion(&folded_value, |deletion| deletions.push((deletion, id)));
            }
        }
        for index in [&mut folded, &mut words, &mut deletions] {
            index.sort_unstable();
            index.dedup();
            index.shrink_to_fit();
        }
        Self {
            columns,
            not_indexed: Vec::new(),
            column_positions,
            folded_index: folded,
            word_index: words,
            deletion_index: deletions,
        }
    }

    /// Adds the columns that were not indexed.
    #[must_use]
    pub fn with_not_indexed(mut self, not_indexed: Vec<NotIndexed>) -> Self {
        self.not_indexed = not_indexed;
        self
    }

    /// Returns the text columns that are not indexed, in schema order.
    pub fn not_indexed(&self) -> &[NotIndexed] {
        &self.not_indexed
    }

    /// Returns the columns of some tables that are not indexed because of a limit or an error.
    ///
    /// Sensitive columns are excluded: they are omitted on purpose.
    pub fn not_indexed_of<'v>(&'v self, tables: &'v [String]) -> impl Iterator<Item = &'v NotIndexed> {
        let is_named = |full: &str| {
            let short = full.rsplit('.').next().unwrap_or_default();
            tables.iter().any(|name| name.eq_ignore_ascii_case(full) || name.eq_ignore_ascii_case(short))
        };
        let by_accident = |column: &&NotIndexed| column.reason != NotIndexedReason::Sensitive;
        self.not_indexed.iter().filter(by_accident).filter(move |column| is_named(&column.table))
    }

    /// Returns all indexed columns.
    pub fn columns(&self) -> &[ColumnValues] {
        &self.columns
    }

    /// Returns the values of a column; `None` if the column is not indexed.
    pub fn column(&self, table: &str, column: &str) -> Option<&ColumnValues> {
        self.column_positions.get(&(table.to_lowercase(), column.to_lowercase())).map(|&at| &self.columns[at])
    }

    /// Returns whether the index proves that no row of a column equals a value.
    pub fn is_absent(&self, table: &str, column: &str, value: &str) -> bool {
        let Some(indexed) = self.column(table, column).filter(|indexed| indexed.whole) else { return false };
        let is_present = indexed.values.binary_search_by(|v| v.as_str().cmp(value)).is_ok();
        let lower = value.to_lowercase();
        let in_another_case = || indexed.caseless && indexed.values.iter().any(|v| v.to_lowercase() == lower);
        !(is_present || in_another_case())
    }

    /// Returns up to `limit` values of a column that are similar to a value, closest first.
    pub fn similar_values(&self, table: &str, column: &str, value: &str, limit: usize) -> Vec<SimilarValue> {
        let Some(&at) = self.column_positions.get(&(table.to_lowercase(), column.to_lowercase())) else {
            return Vec::new();
        };
        let folded = fold(value);
        let mut found: Vec<(ValueMatchKind, usize, u32)> = Vec::new();
        let mut add = |kind: ValueMatchKind, distance: usize, id: ValueId| {
            if id.column as usize == at && !found.iter().any(|(_, _, v)| *v == id.value) {
                found.push((kind, distance, id.value));
            }
        };
        let folded_value = |id: &ValueId| fold(&self.columns[at].values[id.value as usize]);
        let in_column = |id: &&ValueId| id.column as usize == at;
        for id in
            entries_of(&self.folded_index, hash(&folded)).filter(in_column).filter(|id| folded_value(id) == folded)
        {
            let stored = &self.columns[at].values[id.value as usize];
            add(
                if fold::is_same_ignoring_accents(stored, value) {
                    ValueMatchKind::CaseInsensitive
                } else {
                    ValueMatchKind::Normalized
                },
                0,
                *id,
            );
        }
        for_each_deletion(&folded, |deletion| {
            for id in entries_of(&self.deletion_index, deletion).filter(in_column) {
                let distance = strsim::damerau_levenshtein(&folded_value(id), &folded);
                if distance == 1 {
                    add(ValueMatchKind::Typo, distance, *id);
                }
            }
        });
        // Each word leads to the values that contain all words of the search text, or whose words
        // are all in the search text.
        let parts: Vec<&str> = folded.split(' ').filter(|w| !w.is_empty()).collect();
        let sharing =
            |w: &&str| entries_of(&self.word_index, hash(w)).filter(in_column).take(MAX_WORD_FREQUENCY + 1).count();
        for word in parts.iter().filter(|w| (1..=MAX_WORD_FREQUENCY).contains(&sharing(w))) {
            for id in entries_of(&self.word_index, hash(word)).filter(in_column) {
                let stored = folded_value(id);
                let both = |a: &[&str], b: &[&str]| a.iter().all(|w| b.contains(w));
                let stored: Vec<&str> = stored.split(' ').collect();
                if both(&parts, &stored) || both(&stored, &parts) {
                    add(ValueMatchKind::WordSubset, stored.len().abs_diff(parts.len()), *id);
                }
            }
        }
        found.sort_unstable();
        let value = |v: u32| self.columns[at].values[v as usize].clone();
        found.into_iter().take(limit).map(|(kind, _, v)| SimilarValue { value: value(v), kind }).collect()
    }

    /// Returns up to `limit` values of a column with a prefix, ignoring case.
    pub fn values_with_prefix(&self, table: &str, column: &str, prefix: &str, limit: usize) -> Vec<&str> {
        let Some(indexed) = self.column(table, column) else { return Vec::new() };
        let start = prefix.to_lowercase();
        let begins = |value: &&str| {
            let head: String = value.chars().take(start.chars().count()).collect();
            head.to_lowercase() == start
        };
        indexed.values.iter().map(String::as_str).filter(begins).take(limit).collect()
    }

    /// Returns the columns that contain a value, ignoring case and accents.
    pub fn columns_with_value(&self, value: &str) -> Vec<&ColumnValues> {
        let folded = fold(value);
        let same = |id: &&ValueId| fold(self.entry(**id).1) == folded;
        entries_of(&self.folded_index, hash(&folded)).filter(same).map(|id| self.entry(*id).0).collect()
    }

    /// Returns whether any value contains a word, ignoring case and accents.
    pub fn has_word(&self, word: &str) -> bool {
        let folded = fold(word);
        let has = |id: &ValueId| fold(self.entry(*id).1).split(' ').any(|part| part == folded);
        !folded.is_empty() && entries_of(&self.word_index, hash(&folded)).any(has)
    }

    /// Returns the values that a question mentions, longest first; mentions within a longer one are
    /// omitted.
    pub fn mentions(&self, question: &str) -> Vec<ValueMention> {
        let words = fold::split_words(question);
        let mut hits: Vec<ValueMention> = Vec::new();
        for length in (1..=MAX_PHRASE_WORDS.min(words.len())).rev() {
            for phrase in words.windows(length) {
                let (start, end) = (phrase[0].start, phrase[length - 1].end);
                if hits.iter().any(|h| h.start < end && start < h.end && (h.start, h.end) != (start, end)) {
                    continue;
                }
                // Few phrases are values: build the string only after a hash match.
                let between = |n: usize| (n > 0).then_some(' ');
                let letters =
                    phrase.iter().enumerate().flat_map(|(n, w)| between(n).into_iter().chain(w.folded.chars()));
                let mut found = entries_of(&self.folded_index, hash_chars(letters.clone())).peekable();
                if found.peek().is_none() {
                    continue;
                }
                let folded: String = letters.collect();
                if folded.chars().count() < 2 || (length == 1 && fold::is_stop_word(&folded)) {
                    continue;
                }
                let text = &question[start..end];
                let is_quoted = question[..start].ends_with(['\'', '"', '`', '“', '‘'])
                    && question[end..].starts_with(['\'', '"', '`', '”', '’']);
                let is_distinctive =
                    |w: &fold::FoldedWord| w.start > 0 && (w.is_capitalized || w.folded.chars().any(char::is_numeric));
                let is_distinctive_phrase = is_quoted || length > 1 || phrase.iter().any(is_distinctive);
                for id in found {
                    let (column, value) = self.entry(*id);
                    if fold(value) == folded {
                        hits.push(ValueMention {
                            table: column.table.clone(),
                            column: column.column.clone(),
                            value: value.to_string(),
                            start,
                            end,
                            is_exact: value == text,
                            is_distinctive: is_distinctive_phrase,
                            is_quoted,
                        });
                    }
                }
            }
        }
        hits
    }

    fn entry(&self, id: ValueId) -> (&ColumnValues, &str) {
        let column = &self.columns[id.column as usize];
        (column, &column.values[id.value as usize])
    }
}

/// Estimates the memory of a value including its index entries, in bytes.
pub fn estimated_bytes(value: &str) -> usize {
    // Each character has an index entry of 16 bytes, and so has each word.
    value.len() * 17 + 80
}

/// Returns all entries with a hash.
fn entries_of(index: &HashIndex, key: u64) -> impl Iterator<Item = &ValueId> {
    let from = index.partition_point(|(k, _)| *k < key);
    index[from..].iter().take_while(move |(k, _)| *k == key).map(|(_, id)| id)
}

/// Calls `call` with the hash of a text and of each text with one of its characters deleted.
///
/// Two texts at a Damerau-Levenshtein distance of 1 share such a hash.
fn for_each_deletion(folded: &str, mut call: impl FnMut(u64)) {
    let letters: Vec<char> = folded.chars().collect();
    if !(MIN_TYPO_LENGTH..=MAX_TYPO_LENGTH).contains(&letters.len()) {
        return;
    }
    call(hash(folded));
    for deleted in 0..letters.len() {
        let rest = letters.iter().enumerate().filter(|(i, _)| *i != deleted).map(|(_, c)| *c);
        call(hash_chars(rest));
    }
}

fn hash(text: &str) -> u64 {
    hash_chars(text.chars())
}

/// FNV-1a hash over characters. Matches are always verified against the text itself.
fn hash_chars(letters: impl Iterator<Item = char>) -> u64 {
    letters.fold(0xcbf2_9ce4_8422_2325, |hash, c| (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> ValueIndex {
        let column_values = |table: &str, column: &str, values: &[&str], whole: bool, caseless: bool| ColumnValues {
            table: table.into(),
            column: column.into(),
            values: values.iter().map(|v| v.to_string()).collect(),
            whole,
            caseless,
            unique: false,
        };
        ValueIndex::new(vec![
            column_values("products", "category", &["Electronics", "Books", "Home & Garden", "Café"], true, false),
            column_values("customers", "country", &["Germany", "France", "United Kingdom"], false, false),
            column_values("orders", "status", &["Paid", "Open"], true, true),
            column_values("products", "name", &["Garden Hose", "Desk Lamp", "Books"], true, false),
        ])
    }

    #[test]
    fn reports_absence_only_for_fully_indexed_columns() {
        let values = shop();
        for (table, column, value, absent) in [
            ("products", "category", "Electronics", false),
            ("Products", "CATEGORY", "electronics", true),
            ("products", "category", "Toys", true),
            ("customers", "country", "Spain", false),
            ("orders", "status", "paid", false),
            ("orders", "status", "late", true),
            ("orders", "unknown", "late", false),
        ] {
            assert_eq!(values.is_absent(table, column, value), absent, "{table}.{column} {value}");
        }
    }

    #[test]
    fn finds_similar_values_for_misspelled_literals() {
        let values = shop();
        for (value, near) in [
            ("electronics", Some(("Electronics", ValueMatchKind::CaseInsensitive))),
            (" Electronics ", Some(("Electronics", ValueMatchKind::CaseInsensitive))),
            ("cafe", Some(("Café", ValueMatchKind::CaseInsensitive))),
            ("Home-Garden", Some(("Home & Garden", ValueMatchKind::Normalized))),
            ("home and garden", Some(("Home & Garden", ValueMatchKind::WordSubset))),
            ("Elektronics", Some(("Electronics", ValueMatchKind::Typo))),
            ("Book", Some(("Books", ValueMatchKind::Typo))),
            ("Garden", Some(("Home & Garden", ValueMatchKind::WordSubset))),
            ("Toys", None),
        ] {
            let found = values.similar_values("products", "category", value, 3);
            assert_eq!(found.first().map(|n| (n.value.as_str(), n.kind)), near, "{value}");
        }
        assert_eq!(values.values_with_prefix("products", "name", "gard", 5), ["Garden Hose"]);
        assert_eq!(
            values.columns_with_value("books").iter().map(|h| h.column.as_str()).collect::<Vec<_>>(),
            ["category", "name"]
        );
    }

    #[test]
    fn finds_values_mentioned_in_a_question() {
        let values = shop();
        let hits = |question: &str| -> Vec<String> {
            values
                .mentions(question)
                .iter()
                .map(|h| format!("{}.{} {} {}", h.table, h.column, h.value, h.is_distinctive))
                .collect()
        };
        assert_eq!(
            hits("Which customers from the united kingdom bought a desk lamp?"),
            ["customers.country United Kingdom true", "products.name Desk Lamp true"]
        );
        assert_eq!(hits("how many books were sold?"), ["products.category Books false", "products.name Books false"]);
        assert_eq!(hits("What is 'Electronics'?"), ["products.category Electronics true"]);
        assert!(hits("Which orders are the largest?").is_empty());
    }
}
