//! What text columns really hold, and which of it was meant: an index that is built once and then only read.
//!
//! It holds what it was given and knows of each column whether that is all of it. Only then does it say that a value is
//! absent: of a column that is known in part, absence means nothing.

mod fold;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use fold::fold;

/// What is known of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The table, with its schema where it has one.
    pub table: String,
    /// The column.
    pub column: String,
    /// Values that it holds, each once.
    pub values: Vec<String>,
    /// These are all of them.
    pub whole: bool,
    /// The database takes `a` and `A` for equal in this column.
    pub caseless: bool,
    /// No two rows have the same value, and every row has one.
    pub unique: bool,
}

/// A text column whose values are not in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotIndexed {
    /// The table, with its schema where it has one.
    pub table: String,
    /// The column.
    pub column: String,
    /// Why its values are not in the index.
    pub reason: NotIndexedReason,
    /// What the database said, where it refused to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Why the values of a column are not in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotIndexedReason {
    /// Its name or its values look like secrets or personal data.
    Sensitive,
    /// The limit on rows in all was reached.
    RowLimit,
    /// The limit on bytes of its table or in all was reached.
    ByteLimit,
    /// The database refused to be read.
    Failed,
    /// The database did not answer in time.
    TimedOut,
    /// The database could not be reached.
    Unavailable,
}

impl NotIndexedReason {
    /// Whether reading again may succeed with nothing changed.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::TimedOut | Self::Unavailable)
    }

    /// Returns the reason in words, to follow "not indexed:".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sensitive => "looks like secrets or personal data",
            Self::RowLimit => "the limit `values.total_rows` is reached",
            Self::ByteLimit => "the limit `values.table_bytes` or `values.bytes` is reached",
            Self::Failed => "the database refused",
            Self::TimedOut => "the database did not answer within `values.time`",
            Self::Unavailable => "the database could not be reached",
        }
    }
}

/// How a value is like the one that was looked for, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alike {
    /// The same but for case, accents and spaces around what was looked for.
    Same,
    /// The same but for punctuation and spaces too.
    Folded,
    /// One letter was dropped, added, changed or swapped with its neighbour.
    Slip,
    /// The words of the one are words of the other.
    Part,
}

/// A value of a column that is like the one that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// As the column holds it.
    pub value: String,
    /// How.
    pub alike: Alike,
}

/// A value that a question mentions, in a column that holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hit {
    /// The table, with its schema where it has one.
    pub table: String,
    /// The column.
    pub column: String,
    /// As the column holds it.
    pub value: String,
    /// Where the question mentions it, in bytes.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// The question spells it as the column does.
    pub exact: bool,
    /// It cannot be a word like any other: it is in quotes, or has several words, a capital or a digit within the sentence.
    pub named: bool,
    /// It is in quotes.
    pub quoted: bool,
}

/// Words of a question that are compared with values, at most so many together.
const LONGEST_PHRASE: usize = 8;
/// Longer values are not searched for slips: they are sentences.
const LONGEST_SLIP: usize = 40;
/// Shorter ones are a letter away from too many others.
const SHORTEST_SLIP: usize = 4;
/// A word that stands in more values than this tells nothing.
const MOST_SHARING: usize = 400;

/// One value of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    column: u32,
    value: u32,
}

/// Sorted, so that it is searched by halving, without the memory of a map for each value.
type Index = Vec<(u64, Spot)>;

/// What columns hold.
#[derive(Debug, Default)]
pub struct Values {
    columns: Vec<Held>,
    not_indexed: Vec<NotIndexed>,
    /// By table and column in lower case.
    places: HashMap<(String, String), usize>,
    /// The whole value, folded.
    folded: Index,
    /// Its words.
    words: Index,
    /// The value with none or one of its letters left out.
    slips: Index,
}

impl Values {
    /// Puts them in order.
    pub fn new(mut columns: Vec<Held>) -> Self {
        let (mut folded, mut words, mut slips) = (Index::new(), Index::new(), Index::new());
        let mut places = HashMap::with_capacity(columns.len());
        for (c, held) in columns.iter_mut().enumerate() {
            held.values.sort_unstable();
            held.values.dedup();
            places.insert((held.table.to_lowercase(), held.column.to_lowercase()), c);
            for (v, value) in held.values.iter().enumerate() {
                let spot = Spot { column: c as u32, value: v as u32 };
                let plain = fold(value);
                folded.push((hash(&plain), spot));
                words.extend(plain.split(' ').filter(|w| !w.is_empty()).map(|w| (hash(w), spot)));
                each_slip(&plain, |slip| slips.push((slip, spot)));
            }
        }
        for index in [&mut folded, &mut words, &mut slips] {
            index.sort_unstable();
            index.dedup();
            index.shrink_to_fit();
        }
        Self { columns, not_indexed: Vec::new(), places, folded, words, slips }
    }

    /// With the columns that were left out.
    #[must_use]
    pub fn with_not_indexed(mut self, not_indexed: Vec<NotIndexed>) -> Self {
        self.not_indexed = not_indexed;
        self
    }

    /// Returns the text columns that were left out, in the order of the schema.
    pub fn not_indexed(&self) -> &[NotIndexed] {
        &self.not_indexed
    }

    /// Returns the columns of some tables that a limit or a failure left out; sensitive columns are left out on purpose.
    pub fn not_indexed_of<'v>(&'v self, tables: &'v [String]) -> impl Iterator<Item = &'v NotIndexed> {
        let is_named = |full: &str| {
            let short = full.rsplit('.').next().unwrap_or_default();
            tables.iter().any(|name| name.eq_ignore_ascii_case(full) || name.eq_ignore_ascii_case(short))
        };
        let by_accident = |column: &&NotIndexed| column.reason != NotIndexedReason::Sensitive;
        self.not_indexed.iter().filter(by_accident).filter(move |column| is_named(&column.table))
    }

    /// What is known of each column.
    pub fn columns(&self) -> &[Held] {
        &self.columns
    }

    /// What is known of a column; nothing if it is not one whose values are kept.
    pub fn of(&self, table: &str, column: &str) -> Option<&Held> {
        self.places.get(&(table.to_lowercase(), column.to_lowercase())).map(|&at| &self.columns[at])
    }

    /// Whether it is known that no row of a column is equal to the value.
    pub fn absent(&self, table: &str, column: &str, value: &str) -> bool {
        let Some(held) = self.of(table, column).filter(|held| held.whole) else { return false };
        let there = held.values.binary_search_by(|v| v.as_str().cmp(value)).is_ok();
        let lower = value.to_lowercase();
        let in_another_case = || held.caseless && held.values.iter().any(|v| v.to_lowercase() == lower);
        !(there || in_another_case())
    }

    /// Values of a column that are like this one, the closest first, at most so many.
    pub fn near(&self, table: &str, column: &str, value: &str, most: usize) -> Vec<Near> {
        let Some(&at) = self.places.get(&(table.to_lowercase(), column.to_lowercase())) else { return Vec::new() };
        let plain = fold(value);
        let mut found: Vec<(Alike, usize, u32)> = Vec::new();
        let mut add = |alike: Alike, far: usize, spot: Spot| {
            if spot.column as usize == at && !found.iter().any(|(_, _, v)| *v == spot.value) {
                found.push((alike, far, spot.value));
            }
        };
        let here = |spot: &Spot| fold(&self.columns[at].values[spot.value as usize]);
        let in_column = |spot: &&Spot| spot.column as usize == at;
        for spot in find(&self.folded, hash(&plain)).filter(in_column).filter(|s| here(s) == plain) {
            let held = &self.columns[at].values[spot.value as usize];
            add(if fold::is_same(held, value) { Alike::Same } else { Alike::Folded }, 0, *spot);
        }
        each_slip(&plain, |slip| {
            for spot in find(&self.slips, slip).filter(in_column) {
                let far = strsim::damerau_levenshtein(&here(spot), &plain);
                if far == 1 {
                    add(Alike::Slip, far, *spot);
                }
            }
        });
        // Its rarest word leads to all that hold every one of its words; a value of one word may also be one of its words.
        let parts: Vec<&str> = plain.split(' ').filter(|w| !w.is_empty()).collect();
        let sharing = |w: &&str| find(&self.words, hash(w)).filter(in_column).take(MOST_SHARING + 1).count();
        for word in parts.iter().filter(|w| (1..=MOST_SHARING).contains(&sharing(w))) {
            for spot in find(&self.words, hash(word)).filter(in_column) {
                let held = here(spot);
                let both = |a: &[&str], b: &[&str]| a.iter().all(|w| b.contains(w));
                let held: Vec<&str> = held.split(' ').collect();
                if both(&parts, &held) || both(&held, &parts) {
                    add(Alike::Part, held.len().abs_diff(parts.len()), *spot);
                }
            }
        }
        found.sort_unstable();
        let value = |v: u32| self.columns[at].values[v as usize].clone();
        found.into_iter().take(most).map(|(alike, _, v)| Near { value: value(v), alike }).collect()
    }

    /// Values of a column that begin like this, whatever the case, at most so many.
    pub fn beginning(&self, table: &str, column: &str, start: &str, most: usize) -> Vec<&str> {
        let Some(held) = self.of(table, column) else { return Vec::new() };
        let start = start.to_lowercase();
        let begins = |value: &&str| {
            let head: String = value.chars().take(start.chars().count()).collect();
            head.to_lowercase() == start
        };
        held.values.iter().map(String::as_str).filter(begins).take(most).collect()
    }

    /// The columns that hold a value, but for its case and accents.
    pub fn holding(&self, value: &str) -> Vec<&Held> {
        let plain = fold(value);
        let same = |spot: &&Spot| fold(self.at(**spot).1) == plain;
        find(&self.folded, hash(&plain)).filter(same).map(|spot| self.at(*spot).0).collect()
    }

    /// Returns whether a value contains a word, but for its case and accents.
    pub fn has_word(&self, word: &str) -> bool {
        let plain = fold(word);
        let has = |spot: &Spot| fold(self.at(*spot).1).split(' ').any(|held| held == plain);
        !plain.is_empty() && find(&self.words, hash(&plain)).any(has)
    }

    /// The values that a question mentions, the longest first; a shorter one within a longer one is left out.
    pub fn hits(&self, question: &str) -> Vec<Hit> {
        let words = fold::words(question);
        let mut hits: Vec<Hit> = Vec::new();
        for length in (1..=LONGEST_PHRASE.min(words.len())).rev() {
            for phrase in words.windows(length) {
                let (start, end) = (phrase[0].start, phrase[length - 1].end);
                if hits.iter().any(|h| h.start < end && start < h.end && (h.start, h.end) != (start, end)) {
                    continue;
                }
                // Hardly any phrase is a value: it is put together when something has its key.
                let between = |n: usize| (n > 0).then_some(' ');
                let letters =
                    phrase.iter().enumerate().flat_map(|(n, w)| between(n).into_iter().chain(w.plain.chars()));
                let mut found = find(&self.folded, hash_of(letters.clone())).peekable();
                if found.peek().is_none() {
                    continue;
                }
                let plain: String = letters.collect();
                if plain.chars().count() < 2 || (length == 1 && fold::is_common(&plain)) {
                    continue;
                }
                let said = &question[start..end];
                let quoted = question[..start].ends_with(['\'', '"', '`', '“', '‘'])
                    && question[end..].starts_with(['\'', '"', '`', '”', '’']);
                let telling = |w: &fold::Word| w.start > 0 && (w.capital || w.plain.chars().any(char::is_numeric));
                let named = quoted || length > 1 || phrase.iter().any(telling);
                for spot in found {
                    let (held, value) = self.at(*spot);
                    if fold(value) == plain {
                        hits.push(Hit {
                            table: held.table.clone(),
                            column: held.column.clone(),
                            value: value.to_string(),
                            start,
                            end,
                            exact: value == said,
                            named,
                            quoted,
                        });
                    }
                }
            }
        }
        hits
    }

    fn at(&self, spot: Spot) -> (&Held, &str) {
        let held = &self.columns[spot.column as usize];
        (held, &held.values[spot.value as usize])
    }
}

/// About how many bytes a value takes, with its entries in the index.
pub fn cost(value: &str) -> usize {
    // Each of its letters has an entry of sixteen bytes, and so have its words.
    value.len() * 17 + 80
}

/// All entries of a key.
fn find(index: &Index, key: u64) -> impl Iterator<Item = &Spot> {
    let from = index.partition_point(|(k, _)| *k < key);
    index[from..].iter().take_while(move |(k, _)| *k == key).map(|(_, spot)| spot)
}

/// Calls with the key of a text, and of each text that is left when one letter is taken out. Two texts that are one letter
/// apart share such a key.
fn each_slip(plain: &str, mut call: impl FnMut(u64)) {
    let letters: Vec<char> = plain.chars().collect();
    if !(SHORTEST_SLIP..=LONGEST_SLIP).contains(&letters.len()) {
        return;
    }
    call(hash(plain));
    for left_out in 0..letters.len() {
        let rest = letters.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, c)| *c);
        call(hash_of(rest));
    }
}

fn hash(text: &str) -> u64 {
    hash_of(text.chars())
}

/// FNV-1a over letters. What is found by it is always compared with the text itself.
fn hash_of(letters: impl Iterator<Item = char>) -> u64 {
    letters.fold(0xcbf2_9ce4_8422_2325, |hash, c| (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> Values {
        let held = |table: &str, column: &str, values: &[&str], whole: bool, caseless: bool| Held {
            table: table.into(),
            column: column.into(),
            values: values.iter().map(|v| v.to_string()).collect(),
            whole,
            caseless,
            unique: false,
        };
        Values::new(vec![
            held("products", "category", &["Electronics", "Books", "Home & Garden", "Café"], true, false),
            held("customers", "country", &["Germany", "France", "United Kingdom"], false, false),
            held("orders", "status", &["Paid", "Open"], true, true),
            held("products", "name", &["Garden Hose", "Desk Lamp", "Books"], true, false),
        ])
    }

    #[test]
    fn f11_absence_is_only_told_of_columns_that_are_known_whole() {
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
            assert_eq!(values.absent(table, column, value), absent, "{table}.{column} {value}");
        }
    }

    #[test]
    fn f11_the_value_that_was_meant_is_found() {
        let values = shop();
        for (value, near) in [
            ("electronics", Some(("Electronics", Alike::Same))),
            (" Electronics ", Some(("Electronics", Alike::Same))),
            ("cafe", Some(("Café", Alike::Same))),
            ("Home-Garden", Some(("Home & Garden", Alike::Folded))),
            ("home and garden", Some(("Home & Garden", Alike::Part))),
            ("Elektronics", Some(("Electronics", Alike::Slip))),
            ("Book", Some(("Books", Alike::Slip))),
            ("Garden", Some(("Home & Garden", Alike::Part))),
            ("Toys", None),
        ] {
            let found = values.near("products", "category", value, 3);
            assert_eq!(found.first().map(|n| (n.value.as_str(), n.alike)), near, "{value}");
        }
        assert_eq!(values.beginning("products", "name", "gard", 5), ["Garden Hose"]);
        assert_eq!(values.holding("books").iter().map(|h| h.column.as_str()).collect::<Vec<_>>(), ["category", "name"]);
    }

    #[test]
    fn f11_the_values_that_a_question_mentions_are_found() {
        let values = shop();
        let hits = |question: &str| -> Vec<String> {
            values.hits(question).iter().map(|h| format!("{}.{} {} {}", h.table, h.column, h.value, h.named)).collect()
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
