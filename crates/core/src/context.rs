//! What a model sees of a database: the tables as text, all of them if they fit, else those that the question needs most.

pub mod values;

use std::sync::Arc;

use querymend_sql::schema::{Schema, Table, as_ddl};
use querymend_sql::{Dialect, Policy};

/// The tables that a model is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linked {
    /// Their names.
    pub tables: Vec<String>,
    /// How many there are that may be read.
    pub of: usize,
    /// As text.
    pub text: String,
}

/// The tables of a database with their text. The text is the same for every question, so it is written once.
#[derive(Debug, Default)]
pub struct Tables {
    schema: Arc<Schema>,
    /// Which of them may be read, each with its text.
    readable: Vec<(usize, String)>,
    whole: Linked,
    /// The length of all texts.
    bytes: usize,
}

impl Tables {
    /// Those of a schema that the policy allows to be read.
    pub fn new(schema: Arc<Schema>, dialect: &Dialect, policy: &Policy) -> Self {
        let allowed = |t: &Table| match &t.schema {
            Some(s) => policy.allows_table(&[s, &t.name]),
            None => policy.allows_table(&[&t.name]),
        };
        let all = schema.tables().iter().enumerate().filter(|(_, t)| allowed(t));
        let readable: Vec<(usize, String)> = all.map(|(i, t)| (i, as_ddl(t, dialect))).collect();
        let bytes = readable.iter().map(|(_, text)| text.len()).sum();
        let mut tables = Self { schema, readable, whole: Linked::default(), bytes };
        tables.whole = tables.linked(0..tables.readable.len());
        tables
    }

    /// All of them, as queries are held against.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Chooses tables. A schema that fits is shown whole: leaving out part of a small one only hurts.
    pub fn link(&self, question: &str, most_bytes: usize) -> Linked {
        if self.bytes <= most_bytes {
            return self.whole.clone();
        }
        let tables: Vec<&Table> = self.readable.iter().map(|(i, _)| &self.schema.tables()[*i]).collect();
        let texts: Vec<&str> = self.readable.iter().map(|(_, text)| text.as_str()).collect();
        self.linked(fitting(&tables, &texts, question, most_bytes))
    }

    fn linked(&self, chosen: impl IntoIterator<Item = usize>) -> Linked {
        let mut linked = Linked { of: self.readable.len(), ..Linked::default() };
        for (i, text) in chosen.into_iter().map(|c| &self.readable[c]) {
            linked.tables.push(self.schema.tables()[*i].full_name());
            linked.text.push_str(text);
        }
        linked.text.truncate(linked.text.trim_end().len());
        linked
    }
}

/// The tables with the most words of the question, and those that their keys point at, as long as there is room.
fn fitting(tables: &[&Table], texts: &[&str], question: &str, most_bytes: usize) -> Vec<usize> {
    let words = words(question);
    let mut order: Vec<(usize, usize)> = tables.iter().enumerate().map(|(i, t)| (score(t, &words), i)).collect();
    order.sort_by_key(|(score, i)| (usize::MAX - score, *i));
    let mut chosen: Vec<usize> = Vec::new();
    let mut room = most_bytes;
    let take = |i: usize, room: &mut usize, chosen: &mut Vec<usize>| {
        if !chosen.contains(&i) && texts[i].len() <= *room {
            *room -= texts[i].len();
            chosen.push(i);
        }
    };
    for (score, i) in order {
        if score == 0 && !chosen.is_empty() {
            break;
        }
        take(i, &mut room, &mut chosen);
        for key in &tables[i].foreign_keys {
            if let Some(there) = tables.iter().position(|t| t.name.eq_ignore_ascii_case(&key.table)) {
                take(there, &mut room, &mut chosen);
            }
        }
    }
    chosen.sort_unstable();
    chosen
}

fn score(table: &Table, words: &[String]) -> usize {
    let hits = |name: &str| {
        let lower = name.to_lowercase();
        let parts: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|p| p.len() > 2).collect();
        words.iter().filter(|w| parts.iter().any(|p| alike(p, w))).count()
    };
    4 * hits(&table.name) + table.columns.iter().map(|c| hits(&c.name)).sum::<usize>()
}

fn alike(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long == short || (short.len() > 3 && long.starts_with(short))
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|w| w.chars().count() > 2).map(str::to_string).collect()
}

/// No remark is longer, with room for punctuation.
const LONGEST_REMARK: usize = 32;

/// Whether a message is a remark that no data is needed for: a greeting, thanks, a question about the assistant itself.
/// Only plain cases count; whatever else is said is taken for a question about the data.
pub fn is_remark(question: &str, schema: &Schema) -> bool {
    const REMARKS: &[&str] = &[
        "hello",
        "hi",
        "hey",
        "good morning",
        "good afternoon",
        "good evening",
        "thanks",
        "thank you",
        "thanks a lot",
        "thank you very much",
        "ok",
        "okay",
        "great",
        "cool",
        "nice",
        "bye",
        "goodbye",
        "who are you",
        "what are you",
        "what can you do",
        "what can i ask",
        "how are you",
        "help",
        "hallo",
        "danke",
        "merci",
        "bonjour",
        "hola",
        "gracias",
    ];
    if question.len() > LONGEST_REMARK {
        return false;
    }
    let plain: String = question.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect();
    let plain = plain.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words(&plain);
    let names_table = || schema.tables().iter().any(|t| words.iter().any(|w| alike(w, &t.name.to_lowercase())));
    REMARKS.contains(&plain.as_str()) && !names_table()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;
    use querymend_sql::dialect::SQLITE;

    const SHOP: &str = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total REAL);
        CREATE TABLE suppliers (id INTEGER PRIMARY KEY, name TEXT, rating INTEGER);
        CREATE TABLE secrets (word TEXT);";

    #[test]
    fn q01_a_schema_that_fits_is_shown_whole_and_a_large_one_in_part() {
        let schema = Arc::new(Schema::from_ddl(SHOP, &SQLITE).unwrap());
        let policy = Policy { deny_tables: vec!["secrets".into()], ..Policy::default() };
        let tables = Tables::new(schema, &SQLITE, &policy);
        let whole = tables.link("total of orders", 10_000);
        assert_eq!((whole.tables.len(), whole.of), (3, 3));
        assert!(!whole.text.contains("secrets"));
        let part = tables.link("What is the total of the orders?", 260);
        assert_eq!(part.tables, ["customers", "orders"]);
        assert!(part.text.len() <= 260);
    }

    #[test]
    fn c06_only_plain_remarks_are_remarks() {
        let schema = Schema::from_ddl(SHOP, &SQLITE).unwrap();
        for (said, remark) in [
            ("Hello!", true),
            ("thanks a lot", true),
            ("What can you do?", true),
            ("orders", false),
            ("How many customers are there?", false),
            ("hi, how many orders are there", false),
            ("", false),
        ] {
            assert_eq!(is_remark(said, &schema), remark, "{said}");
        }
    }
}
