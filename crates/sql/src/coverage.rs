//! Finds words of a question that no table, column, value or definition of the database covers.

use std::collections::HashSet;

use crate::question::{self, QuestionWord, question_words};
use crate::schema::Schema;
use crate::schema::value_index::ValueIndex;
use crate::text::semantic_similarity::{Similarity, name_similarity};

/// Minimum similarity at which a name may cover a word.
///
/// Related is enough: declining a question that has an answer costs more than answering with low
/// confidence.
///
/// Share declined of 6,726 Spider training questions, of 507 Spider questions on other databases,
/// of 283 answerable and of 244 unanswerable questions in `datasets/unanswerable`: see
/// docs/measurements/abstaining.md. Measured by `cargo run -p querymend --example abstaining --
/// --data DIR`.
pub const MIN_RELATED_SIMILARITY: f32 = 0.45;

/// Minimum similarity at which a table is reported as close to a missing subject.
const MIN_CLOSE_SIMILARITY: f32 = 0.2;

/// Maximum number of close tables that are reported.
const MAX_CLOSEST_TABLES: usize = 3;

/// Suffixes of key columns that may be appended without a separator.
const KEY_ENDINGS: &[&str] = &["id", "no", "num", "code", "key", "name"];

/// Capitalized words that a query writes as a number.
const DATE_WORDS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "christmas",
    "eve",
];

/// Minimum length of an acronym in letters.
const MIN_ACRONYM_LENGTH: usize = 3;
const MAX_ACRONYM_LENGTH: usize = 5;

/// Maximum number of different words in names and comments: larger schemas are not compared.
const MAX_VOCABULARY_WORDS: usize = 5_000;

/// Subject of a question that the database lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSubject {
    /// Subject in the words of the question: `employees`.
    pub subject: String,
    /// Tables with the most similar names, the most similar first; may be empty.
    pub closest: Vec<String>,
}

impl MissingSubject {
    /// Returns one sentence with the missing subject and the closest table.
    pub fn message(&self) -> String {
        match self.closest.first() {
            Some(table) => format!("this database has no {}; closest table: {table}", self.subject),
            None => format!("this database has no {}", self.subject),
        }
    }
}

/// Returns the subject of a question if nothing in the database covers it.
///
/// `definitions` are texts that explain terms: evidence, remembered questions. Returns `None`
/// without an attached [`Similarity`], before the values are indexed, and for questions that follow
/// no known pattern.
pub fn missing_subject(question: &str, definitions: &[&str], schema: &Schema) -> Option<MissingSubject> {
    find_missing(question, &SchemaVocabulary::new(schema, definitions)?)
}

/// Returns whether no name covers the subject of a question.
///
/// Only values may cover it then, so it is worth waiting until they are indexed.
pub fn is_subject_unnamed(question: &str, definitions: &[&str], schema: &Schema) -> bool {
    let vocabulary = SchemaVocabulary::with_values(schema, definitions, None);
    vocabulary.is_some_and(|vocabulary| find_missing(question, &vocabulary).is_some())
}

fn find_missing(question: &str, vocabulary: &SchemaVocabulary<'_>) -> Option<MissingSubject> {
    let words = question_words(question);
    let mut phrase = question::subject(&words)?;
    // The subject of `gate numbers` is the gate, unless there is a column for numbers.
    if let Some((measure, before)) = phrase.split_last().filter(|(head, _)| question::is_measure(head)) {
        phrase = Some(before).filter(|before| !before.is_empty() && !vocabulary.covers(&measure.lower))?;
    }
    let (head, before) = phrase.split_last()?;
    let is_misspelt = phrase.iter().any(|w| question::is_misspelt_quantifier(&w.lower));
    if is_misspelt || question::is_measure(head) || head.is_capitalized() {
        return None;
    }
    // `miles per gallon` is covered by `MPG`.
    if vocabulary.has_acronym(&words, &head.lower) {
        return None;
    }
    // `order lines` is covered by `orders`, even if nothing covers `lines`.
    if before.iter().any(|w| vocabulary.has_name(&w.lower)) || vocabulary.covers(&head.lower) {
        return None;
    }
    let subject = phrase.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
    Some(MissingSubject { closest: vocabulary.closest(&head.lower), subject })
}

/// Returns the words that qualify the subject and that nothing covers.
///
/// An example is `unpaid` in "Which orders are unpaid?".
pub fn uncovered_qualifiers(question: &str, definitions: &[&str], schema: &Schema) -> Vec<String> {
    let Some(vocabulary) = SchemaVocabulary::new(schema, definitions) else { return Vec::new() };
    let words = question_words(question);
    let is_uncovered = |w: &&QuestionWord| !vocabulary.covers(&w.lower) && !question::is_misspelt_quantifier(&w.lower);
    question::qualifiers(&words).into_iter().filter(is_uncovered).map(|w| w.text.clone()).collect()
}

/// Returns whether the name of a table or column contains a word.
pub(crate) fn is_named(word: &str, schema: &Schema) -> bool {
    let wanted = stem(&word.to_lowercase());
    let has = |name: &str| name_words(name).iter().any(|other| stem(other) == wanted);
    schema.tables().iter().any(|table| has(&table.name) || table.columns.iter().any(|column| has(&column.name)))
}

/// Returns the proper names in a question that no name or value of the database contains.
///
/// A proper name is a run of capitalized words that does not begin a sentence.
pub fn unknown_proper_names(question: &str, definitions: &[&str], schema: &Schema) -> Vec<String> {
    let Some(vocabulary) = SchemaVocabulary::new(schema, definitions) else { return Vec::new() };
    let words = question_words(question);
    let begins = |at: usize| at == 0 || matches!(words[at - 1].lower.as_str(), "." | "?" | "!" | ":" | "\"" | "'");
    // Words in capitals are acronyms or SQL, which definitions often quote.
    let is_title = |word: &QuestionWord| {
        let is_date = DATE_WORDS.contains(&word.lower.as_str());
        word.is_capitalized() && word.text.contains(char::is_lowercase) && !is_date
    };
    let is_name = |at: usize| is_title(&words[at]) && words[at].lower.len() > 2 && !begins(at);
    let mut names: Vec<Vec<&str>> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if is_name(at) {
            match names.last_mut().filter(|_| at > 0 && is_name(at - 1)) {
                Some(run) => run.push(&word.text),
                None => names.push(vec![&word.text]),
            }
        }
    }
    let is_unknown = |run: &Vec<&str>| run.iter().all(|w| !vocabulary.covers(&w.to_lowercase()));
    names.into_iter().filter(is_unknown).map(|run| run.join(" ")).collect()
}

/// Vocabulary of a database.
struct SchemaVocabulary<'s> {
    /// Names of tables and columns, split into words.
    names: Vec<String>,
    /// Words of the names and comments.
    words: Vec<String>,
    /// Stems of `words`.
    stems: HashSet<String>,
    /// Stems of the words of definitions.
    definition_stems: HashSet<String>,
    tables: Vec<&'s str>,
    /// Index of the values; `None` before they are read.
    values: Option<&'s ValueIndex>,
    similarity: &'s dyn Similarity,
}

impl<'s> SchemaVocabulary<'s> {
    fn new(schema: &'s Schema, definitions: &[&str]) -> Option<Self> {
        let values = schema.value_index()?;
        Self::with_values(schema, definitions, Some(values))
    }

    fn with_values(schema: &'s Schema, definitions: &[&str], values: Option<&'s ValueIndex>) -> Option<Self> {
        let similarity = schema.similarity()?;
        let tables = schema.tables();
        let columns = || tables.iter().flat_map(|t| &t.columns);
        let names = tables.iter().map(|t| t.name.as_str()).chain(columns().map(|c| c.name.as_str()));
        let mut names: Vec<String> = names.map(|name| name_words(name).join(" ")).collect();
        names.sort_unstable();
        names.dedup();
        let comments = tables.iter().filter_map(|t| t.comment.as_deref());
        let comments = comments.chain(columns().filter_map(|c| c.comment.as_deref())).flat_map(name_words);
        let mut words: Vec<String> =
            names.iter().flat_map(|n| n.split(' ')).map(str::to_string).chain(comments).collect();
        words.sort_unstable();
        words.dedup();
        words.retain(|word| !word.is_empty());
        if tables.is_empty() || words.len() > MAX_VOCABULARY_WORDS {
            return None;
        }
        let stems = words.iter().flat_map(|word| [stem(word), singular(word)]).collect();
        let defined = definitions.iter().flat_map(|text| name_words(text)).map(|word| stem(&word)).collect();
        let tables = tables.iter().map(|t| t.name.as_str()).collect();
        Some(Self { names, words, stems, definition_stems: defined, tables, values, similarity })
    }

    /// Returns whether a name, a value or a definition covers the word.
    fn covers(&self, word: &str) -> bool {
        let whole = self.definition_stems.contains(&stem(word))
            || self.has_name(word)
            || self.has_value(word)
            || self.max_similarity(word) >= MIN_RELATED_SIMILARITY;
        let parts = || word.split('-').filter(|part| part.len() > 3 && part.len() < word.len());
        whole || parts().any(|part| self.covers(part)) || negated_word(word).is_some_and(|rest| self.covers(rest))
    }

    /// Returns whether a word is spelled like a word of a name, or similarly.
    fn has_name(&self, word: &str) -> bool {
        let one = singular(word);
        self.stems.contains(&stem(word))
            || self.stems.contains(&one)
            || self.words.iter().any(|name| is_spelled_like(&one, name))
    }

    /// Returns whether a name contains the acronym of consecutive words of the question.
    ///
    /// The given word must be one of them.
    fn has_acronym(&self, question: &[QuestionWord], word: &str) -> bool {
        let runs = (MIN_ACRONYM_LENGTH..=MAX_ACRONYM_LENGTH).flat_map(|length| question.windows(length));
        runs.filter(|run| run.iter().any(|w| w.lower == word)).any(|run| {
            let initials: String = run.iter().filter_map(|w| w.lower.chars().next()).collect();
            self.words.contains(&initials)
        })
    }

    fn has_value(&self, word: &str) -> bool {
        let one = singular(word);
        let forms = [word, &one, &format!("{one}s")];
        self.values.is_some_and(|values| forms.iter().any(|form| values.has_word(form)))
    }

    fn max_similarity(&self, word: &str) -> f32 {
        let names = self.names.iter().chain(&self.words);
        names.map(|name| name_similarity(self.similarity, word, name)).fold(0.0, f32::max)
    }

    /// Returns the tables whose names are most similar to a word.
    fn closest(&self, word: &str) -> Vec<String> {
        let score = |table: &&'s str| name_similarity(self.similarity, word, &name_words(table).join(" "));
        let mut scored: Vec<(f32, &str)> = self.tables.iter().map(|table| (score(table), *table)).collect();
        scored.retain(|(score, _)| *score >= MIN_CLOSE_SIMILARITY);
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(MAX_CLOSEST_TABLES).map(|(_, table)| table.to_string()).collect()
    }
}

/// Returns whether a singular word is a spelling variant of a word of a name.
///
/// Variants share a prefix, contain or abbreviate each other, or differ by a typo
/// (Damerau-Levenshtein).
fn is_spelled_like(word: &str, name: &str) -> bool {
    let shared = word.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
    let (length, other) = (word.chars().count(), name.chars().count());
    let begins_alike = shared >= 5 && shared + 2 >= length.min(other) && length.abs_diff(other) <= 5;
    let holds = other >= 4 && length > other + 1 && (word.starts_with(name) || word.ends_with(name));
    let is_part = length >= 4 && name.contains(word);
    let is_abbreviated = (3..=4).contains(&other) && word.starts_with(name);
    // `custid` abbreviates `customer`.
    let bare = KEY_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|bare| bare.len() >= 3);
    let is_abbreviated = is_abbreviated || bare.is_some_and(|bare| word.starts_with(bare));
    let far = || strsim::damerau_levenshtein(word, &singular(name));
    let is_misspelt = || length >= 5 && length.abs_diff(other) <= 3 && far() <= if length >= 7 { 2 } else { 1 };
    begins_alike || holds || is_part || is_abbreviated || is_misspelt()
}

/// Returns the word that a negated adjective negates: `paid` for `unpaid`.
fn negated_word(word: &str) -> Option<&str> {
    let rest = ["un", "in", "non-", "non"].iter().find_map(|prefix| word.strip_prefix(prefix))?;
    (rest.len() > 3).then_some(rest)
}

/// Splits a name or a text into lower-case words: `OrderItems2` into `order` and `items`.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lowercase = false;
    for c in name.chars() {
        if !c.is_alphabetic() || (after_lowercase && c.is_uppercase()) {
            words.push(String::new());
        }
        after_lowercase = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the singular of a regular plural and of a few irregular ones.
pub(crate) fn singular(word: &str) -> String {
    const IRREGULAR: &[(&str, &str)] = &[
        ("people", "person"),
        ("men", "man"),
        ("women", "woman"),
        ("children", "child"),
        ("criteria", "criterion"),
        ("wives", "wife"),
        ("lives", "life"),
        ("series", "series"),
        ("species", "species"),
    ];
    if let Some((_, one)) = IRREGULAR.iter().find(|(many, _)| *many == word) {
        return (*one).to_string();
    }
    if word.len() < 4 {
        return word.to_string();
    }
    if let Some(rest) = word.strip_suffix("ies") {
        return format!("{rest}y");
    }
    let sibilant = |rest: &&str| ["ss", "x", "ch", "sh", "z"].iter().any(|end| rest.ends_with(end));
    if let Some(rest) = word.strip_suffix("es").filter(sibilant) {
        return rest.to_string();
    }
    let is_plural = |rest: &&str| !rest.ends_with(['s', 'u', 'i']);
    word.strip_suffix('s').filter(is_plural).unwrap_or(word).to_string()
}

/// Returns the common stem of the forms of a word: `book` for `booking`, `booked` and `books`.
fn stem(word: &str) -> String {
    let one = singular(word);
    for ending in ["ing", "ed", "er", "or", "ion", "ment", "al"] {
        if let Some(rest) = one.strip_suffix(ending).filter(|rest| rest.len() >= 4) {
            return rest.trim_end_matches('e').to_string();
        }
    }
    if one.len() > 3 { one.trim_end_matches('e').to_string() } else { one }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dialect::SQLITE;
    use crate::schema::value_index::ColumnValues;

    /// Similarity with two related pairs of words.
    struct Synonyms;

    impl Similarity for Synonyms {
        fn similarity(&self, left: &str, right: &str) -> f32 {
            match (left.trim_end_matches('s'), right.trim_end_matches('s')) {
                ("client", "customer") => 0.6,
                ("employee", "customer") => 0.4,
                _ => 0.0,
            }
        }
    }

    fn shop() -> Schema {
        let ddl = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, country TEXT);
                   CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INT, status TEXT, is_paid INT)";
        let schema = Schema::from_ddl(ddl, &SQLITE).unwrap();
        let held = ColumnValues {
            table: "orders".into(),
            column: "status".into(),
            values: vec!["late".into(), "Gift card".into()],
            ..ColumnValues::default()
        };
        schema.set_value_index(Arc::new(ValueIndex::new(vec![held])));
        schema.set_similarity(Arc::new(Synonyms));
        schema
    }

    #[test]
    fn reports_a_subject_that_nothing_covers() {
        let schema = shop();
        for (question, missing) in [
            ("List all employees", Some("this database has no employees; closest table: customers")),
            ("Which invoices are open?", Some("this database has no invoices")),
            ("List all customers", None),
            ("How many clients are there?", None),
            ("How many custmers are there?", None),
            ("Which gift cards were sold?", None),
            ("How many order lines are there?", None),
            ("What is the total revenue?", None),
            ("How many differnt customers are there?", None),
            ("Who bought the most?", None),
            ("Tell me about Zanzibar", None),
        ] {
            let found = missing_subject(question, &[], &schema).map(|missing| missing.message());
            assert_eq!(found.as_deref(), missing, "{question}");
        }
        assert_eq!(missing_subject("List all employees", &["an employee is a customer of the firm"], &schema), None);
    }

    #[test]
    fn concludes_nothing_without_values_or_similarity() {
        let schema = Schema::from_ddl("CREATE TABLE orders (order_id INT)", &SQLITE).unwrap();
        assert_eq!(missing_subject("List all employees", &[], &schema), None);
        schema.set_similarity(Arc::new(Synonyms));
        assert_eq!(missing_subject("List all employees", &[], &schema), None);
        schema.set_value_index(Arc::default());
        assert!(missing_subject("List all employees", &[], &schema).is_some());
    }

    #[test]
    fn reports_qualifiers_that_nothing_covers() {
        let schema = shop();
        for (question, uncovered) in [
            ("Which orders are vegan?", &["vegan"][..]),
            ("Which orders are unpaid?", &[]),
            ("Which orders are late?", &[]),
            ("How many left-handed customers are there?", &["left-handed"]),
        ] {
            assert_eq!(uncovered_qualifiers(question, &[], &schema), uncovered, "{question}");
        }
    }

    #[test]
    fn reports_proper_names_that_nothing_covers() {
        let schema = shop();
        for (question, unknown) in [
            ("How many orders did Zoltan Kurz place?", &["Zoltan Kurz"][..]),
            ("Which orders are Late?", &[]),
            ("How many Customers are there? Show them.", &[]),
        ] {
            assert_eq!(unknown_proper_names(question, &[], &schema), unknown, "{question}");
        }
    }
}
