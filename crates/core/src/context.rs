//! What a model sees of a database: the tables as text, all of them if they fit, else those that the question needs most.

use querymend_sql::schema::{Schema, Table, as_ddl};
use querymend_sql::{Dialect, Policy};

/// The tables that a model is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// Their names.
    pub tables: Vec<String>,
    /// How many there are that may be read.
    pub of: usize,
    /// As text.
    pub text: String,
}

/// Chooses tables. A schema that fits is shown whole: leaving out part of a small one only hurts.
pub fn link(schema: &Schema, question: &str, dialect: &Dialect, policy: &Policy, most_bytes: usize) -> Linked {
    let allowed = |t: &&Table| match &t.schema {
        Some(s) => policy.allows_table(&[s, &t.name]),
        None => policy.allows_table(&[&t.name]),
    };
    let readable: Vec<&Table> = schema.tables().iter().filter(allowed).collect();
    let of = readable.len();
    let texts: Vec<String> = readable.iter().map(|t| as_ddl(t, dialect)).collect();
    let chosen: Vec<usize> = if texts.iter().map(String::len).sum::<usize>() <= most_bytes {
        (0..of).collect()
    } else {
        fitting(&readable, &texts, question, most_bytes)
    };
    Linked {
        tables: chosen.iter().map(|&i| readable[i].full_name()).collect(),
        of,
        text: chosen.iter().map(|&i| texts[i].as_str()).collect::<Vec<_>>().join("").trim_end().to_string(),
    }
}

/// The tables with the most words of the question, and those that their keys point at, as long as there is room.
fn fitting(tables: &[&Table], texts: &[String], question: &str, most_bytes: usize) -> Vec<usize> {
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
    let plain: String = question.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect();
    let plain = plain.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let names_table = schema.tables().iter().any(|t| words(&plain).iter().any(|w| alike(w, &t.name.to_lowercase())));
    REMARKS.contains(&plain.as_str()) && !names_table
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
        let schema = Schema::from_ddl(SHOP, &SQLITE).unwrap();
        let policy = Policy { deny_tables: vec!["secrets".into()], ..Policy::default() };
        let whole = link(&schema, "total of orders", &SQLITE, &policy, 10_000);
        assert_eq!((whole.tables.len(), whole.of), (3, 3));
        assert!(!whole.text.contains("secrets"));
        let part = link(&schema, "What is the total of the orders?", &SQLITE, &policy, 260);
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
