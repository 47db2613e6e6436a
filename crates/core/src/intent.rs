//! Classifies the intent of a message before any SQL is drafted.
//!
//! The intents are a question about the data, small talk, a question about the data model, and a
//! request to change data.
//!
//! Softmax regression on vectors of the built-in embedder. `scripts/intent.py train` writes the
//! weights from `datasets/intent/phrases.tsv`; `scripts/intent.py measure` prints the figures of
//! docs/measurements/intent.md.

mod canned_reply;

use std::sync::OnceLock;

use querymend_model::StaticEmbedder;
use querymend_sql::Schema;
use querymend_sql::question::question_words;

pub use canned_reply::{GREETING, describe};

/// Intent of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Asks for rows of the database.
    Data,
    /// Expects a text reply: a greeting, thanks, a question about the assistant or about SQL.
    Chat,
    /// Asks about the tables, columns and keys of the database.
    DataModel,
    /// Asks to change the data.
    Write,
}

/// Minimum probability to classify a message as anything but a question about the data.
///
/// At 0.7, 6 of 9,239 questions about data are misclassified (0.07 %): docs/measurements/intent.md.
const MIN_PROBABILITY: f32 = 0.7;

/// Minimum probability of small talk that names a table or begins like a question.
///
/// Example: "Why is "order" written in quotes?".
const MIN_SURE_PROBABILITY: f32 = 0.9;

/// Maximum length of a message that is not about the data, in bytes.
const MAX_MESSAGE_BYTES: usize = 300;

/// Polite openings before the first significant word: "could you please delete …". Keep in sync
/// with `scripts/intent.py`.
#[rustfmt::skip]
const OPENINGS: &[&str] = &[
    "and", "can", "could", "d", "i", "just", "kindly", "let", "like", "now", "ok", "okay", "please", "s", "so", "then", "to", "us",
    "want", "well", "will", "would", "you",
];

/// Words that begin a question but never a request to change data.
#[rustfmt::skip]
const INTERROGATIVES: &[&str] = &[
    "are", "did", "do", "does", "has", "have", "how", "is", "was", "were", "what", "when", "where", "which", "who", "whose", "why",
];

/// Classifies the intent of a message.
pub fn classify(message: &str, schema: &Schema) -> Intent {
    if message.len() > MAX_MESSAGE_BYTES || !is_in_known_script(message) {
        return Intent::Data;
    }
    let Some((intent, probability)) = most_likely(message) else { return Intent::Data };
    if probability < MIN_PROBABILITY {
        return Intent::Data;
    }
    let words = question_words(message);
    let names_table = |name: &str| schema.tables().iter().any(|table| is_same_noun(&table.name.to_lowercase(), name));
    let speaks_of_table = || words.iter().any(|w| w.lower.len() > 2 && names_table(&w.lower));
    let first = first_word(message);
    let is_data = match intent {
        Intent::Data => true,
        Intent::Chat => {
            let may_ask = INTERROGATIVES.binary_search(&first.as_str()).is_ok() || speaks_of_table();
            let mentions_value = || schema.value_index().is_some_and(|values| !values.mentions(message).is_empty());
            ends_with_question(message) || (probability < MIN_SURE_PROBABILITY && may_ask) || mentions_value()
        }
        // The database itself may have these tables: a restaurant has tables, a newspaper has
        // columns.
        Intent::DataModel => names_table("table") || names_table("column"),
        // "orders" and "order items of today" begin with a noun; "order two lamps" is
        // indistinguishable from them.
        Intent::Write => INTERROGATIVES.binary_search(&first.as_str()).is_ok() || names_table(&first),
    };
    if is_data { Intent::Data } else { intent }
}

/// Returns whether a message uses only the script that the classifier was trained on.
///
/// That is Latin letters, without braces or bidirectional control characters.
fn is_in_known_script(message: &str) -> bool {
    let is_foreign = |c: char| (c.is_alphabetic() && c > '\u{24f}') || matches!(c, '{' | '}' | '\u{202a}'..='\u{202e}');
    message.contains(char::is_alphabetic) && !message.contains(is_foreign)
}

/// Returns whether a question about the data follows other sentences.
///
/// Example: "Thanks! And which tags are there?".
fn ends_with_question(message: &str) -> bool {
    let mut sentences = message.split(['.', '!', '?']).map(str::trim).filter(|sentence| !sentence.is_empty()).rev();
    let (last, before) = (sentences.next(), sentences.next());
    let is_chat = |(intent, probability): (Intent, f32)| intent == Intent::Chat && probability >= MIN_PROBABILITY;
    before.is_some() && last.is_some_and(|last| !most_likely(last).is_some_and(is_chat))
}

/// Returns whether two nouns are equal up to a plural `s`.
fn is_same_noun(left: &str, right: &str) -> bool {
    left.trim_end_matches('s') == right.trim_end_matches('s')
}

/// Returns the first word after polite openings, in lowercase.
fn first_word(message: &str) -> String {
    let lower = message.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.find(|word| OPENINGS.binary_search(word).is_err()).unwrap_or_default().to_string()
}

/// Returns the most likely intent with its probability.
///
/// `None` if the embedder or the weights cannot be loaded.
fn most_likely(message: &str) -> Option<(Intent, f32)> {
    let (embedder, weights) = (StaticEmbedder::builtin().ok()?, load_weights()?);
    let mut vector = embedder.vector(message);
    vector.extend(embedder.topic(&first_word(message)));
    vector.push(1.0);
    let score = |row: &Vec<f32>| row.iter().zip(&vector).map(|(weight, feature)| weight * feature).sum::<f32>();
    let scores: Vec<(Intent, f32)> = weights.iter().map(|(intent, row)| (*intent, score(row))).collect();
    let largest = scores.iter().map(|(_, score)| *score).fold(f32::MIN, f32::max);
    let total: f32 = scores.iter().map(|(_, score)| (score - largest).exp()).sum();
    let (intent, score) = scores.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((intent, (score - largest).exp() / total))
}

/// One weight per feature for each intent.
type IntentWeights = Vec<(Intent, Vec<f32>)>;

/// Loads the trained weights: one line per intent with its name and one weight per feature.
fn load_weights() -> Option<&'static IntentWeights> {
    static WEIGHTS: OnceLock<Option<IntentWeights>> = OnceLock::new();
    let read = || {
        let line = |line: &str| {
            let mut cells = line.split('\t');
            let intent = match cells.next()? {
                "data" => Intent::Data,
                "chat" => Intent::Chat,
                "model" => Intent::DataModel,
                "write" => Intent::Write,
                _ => return None,
            };
            Some((intent, cells.map(str::parse).collect::<Result<Vec<f32>, _>>().ok()?))
        };
        include_str!("intent/weights.tsv").lines().map(line).collect()
    };
    WEIGHTS.get_or_init(read).as_ref()
}

#[cfg(test)]
mod tests {
    use querymend_sql::dialect::SQLITE;

    use super::*;

    const SHOP: &str = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (customer_id), total REAL)";

    #[test]
    fn weights_match_embedder_dimensions() {
        let features = StaticEmbedder::builtin().unwrap();
        let expected = features.vector("x").len() + features.topic("x").len() + 1;
        let weights = load_weights().unwrap();
        assert_eq!(weights.len(), 4);
        assert!(weights.iter().all(|(_, row)| row.len() == expected));
        assert!(OPENINGS.is_sorted() && INTERROGATIVES.is_sorted());
    }

    #[test]
    fn classifies_intents() {
        let schema = Schema::from_ddl(SHOP, &SQLITE).unwrap();
        for (message, expected) in [
            ("hello there", Intent::Chat),
            ("thanks, that is all", Intent::Chat),
            ("What can you do?", Intent::Chat),
            ("What is SQL?", Intent::Chat),
            ("What does a LEFT JOIN do?", Intent::Chat),
            ("which tables are there?", Intent::DataModel),
            ("What columns does the orders table have?", Intent::DataModel),
            ("delete all products", Intent::Write),
            ("set all prices to zero", Intent::Write),
            ("Could you please remove the order 12?", Intent::Write),
            ("which orders were deleted?", Intent::Data),
            ("How many orders were cancelled?", Intent::Data),
            ("hi, how many orders are there", Intent::Data),
            ("How many customers are there?", Intent::Data),
            ("orders", Intent::Data),
            ("Thanks! And which tags are there?", Intent::Data),
            ("Thanks a lot! Bye.", Intent::Chat),
            ("", Intent::Data),
            ("Сколько товаров?", Intent::Data),
            ("\u{0}🦀", Intent::Data),
        ] {
            assert_eq!(classify(message, &schema), expected, "{message}");
        }
    }

    #[test]
    fn classifies_long_messages_as_data_questions() {
        assert_eq!(classify(&"delete everything ".repeat(1_000), &Schema::default()), Intent::Data);
    }

    #[test]
    fn classifies_question_about_a_table_named_tables_as_data() {
        let schema = Schema::from_ddl("CREATE TABLE tables (seats INT)", &SQLITE).unwrap();
        assert_eq!(classify("which tables are there?", &schema), Intent::Data);
    }
}
