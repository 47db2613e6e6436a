//! Generates sample questions from the schema alone, for users who are new to a database.

use std::collections::HashMap;

use querymend_sql::Schema;
use querymend_sql::schema::{Column, Table, Type};

/// Maximum number of sample questions.
pub const MAX_QUESTIONS: usize = 8;

/// Generates questions of different kinds about the most connected tables, simplest first.
pub fn generate(schema: &Schema) -> Vec<String> {
    let mut referred: HashMap<&str, usize> = HashMap::new();
    for key in schema.tables().iter().flat_map(|table| &table.foreign_keys) {
        *referred.entry(key.table.as_str()).or_default() += 1;
    }
    let mut tables: Vec<&Table> = schema.tables().iter().filter(|table| !is_junction_table(table)).collect();
    // The tables with the most foreign keys, in either direction, are central to a database.
    let weight = |table: &Table| referred.get(table.name.as_str()).unwrap_or(&0) + table.foreign_keys.len();
    tables.sort_by_key(|table| std::cmp::Reverse(weight(table)));
    let kinds: [fn(&Table, &Schema) -> Option<String>; 5] =
        [count_question, highest_question, per_parent_question, per_year_question, average_question];
    // Rotate the kinds of questions over the tables.
    let mut questions: Vec<String> = Vec::new();
    for turn in 0..kinds.len() {
        for (at, table) in tables.iter().enumerate().take(2 * MAX_QUESTIONS) {
            let question = kinds[(at + turn) % kinds.len()](table, schema);
            if let Some(question) = question.filter(|question| !questions.contains(question)) {
                questions.push(question);
            }
            if questions.len() == MAX_QUESTIONS {
                return questions;
            }
        }
    }
    questions
}

fn count_question(table: &Table, _: &Schema) -> Option<String> {
    Some(format!("How many {} are there?", plural(&table.name)))
}

fn highest_question(table: &Table, _: &Schema) -> Option<String> {
    label_column(table)?;
    let figure = measure_column(table)?;
    Some(format!("Which {} has the highest {}?", singular(&table.name), readable_name(&figure.name)))
}

fn per_parent_question(table: &Table, schema: &Schema) -> Option<String> {
    let key = table.foreign_keys.iter().find(|key| key.columns.len() == 1 && key.table != table.name)?;
    label_column(schema.table(&key.table)?)?;
    Some(format!("How many {} does each {} have?", plural(&table.name), singular(&key.table)))
}

fn per_year_question(table: &Table, _: &Schema) -> Option<String> {
    let moment = table.columns.iter().find(|column| column.kind().is_date_or_timestamp())?;
    Some(format!("How many {} are there for each year of {}?", plural(&table.name), readable_name(&moment.name)))
}

fn average_question(table: &Table, _: &Schema) -> Option<String> {
    Some(format!("What is the average {} of all {}?", readable_name(&measure_column(table)?.name), plural(&table.name)))
}

/// Returns whether the table only relates rows of other tables.
fn is_junction_table(table: &Table) -> bool {
    let keys: usize = table.foreign_keys.iter().map(|key| key.columns.len()).sum();
    table.foreign_keys.len() > 1 && keys + 1 >= table.columns.len()
}

/// Returns the column that identifies a row to people.
fn label_column(table: &Table) -> Option<&Column> {
    table.columns.iter().find(|column| {
        let lower = column.name.to_lowercase();
        column.kind() == Type::Text && (lower.contains("name") || lower.contains("title"))
    })
}

/// Returns a numeric column with a magnitude: neither a key nor an identifier.
fn measure_column(table: &Table) -> Option<&Column> {
    let keyed = |name: &String| {
        table.primary_key.contains(name) || table.foreign_keys.iter().any(|key| key.columns.contains(name))
    };
    let is_identifier = |lower: &str| {
        let last = lower.rsplit('_').next().unwrap_or(lower);
        lower.ends_with("id") || matches!(last, "code" | "number" | "no" | "zip" | "phone" | "year" | "key")
    };
    let mut columns = table.columns.iter().filter(|column| column.kind().is_numeric());
    columns.find(|column| !keyed(&column.name) && !is_identifier(&column.name.to_lowercase()))
}

/// Converts a name to lowercase words.
fn readable_name(name: &str) -> String {
    let mut text = String::new();
    let mut last = ' ';
    for c in name.chars().take(80) {
        let begins = c.is_uppercase() && last.is_lowercase();
        if (begins || !c.is_alphanumeric()) && !text.ends_with(' ') && !text.is_empty() {
            text.push(' ');
        }
        if c.is_alphanumeric() {
            text.extend(c.to_lowercase());
        }
        last = c;
    }
    text.trim_end().to_string()
}

fn plural(name: &str) -> String {
    let text = readable_name(name);
    match text.as_str() {
        _ if text.ends_with('s') || text.ends_with("people") || text.ends_with("children") => text,
        _ if text.ends_with('y') && !text.ends_with(['a', 'e', 'o', 'u']) && !ends_with_vowel_y(&text) => {
            format!("{}ies", &text[..text.len() - 1])
        }
        _ if text.ends_with("ch") || text.ends_with("sh") || text.ends_with('x') => format!("{text}es"),
        _ => format!("{text}s"),
    }
}

fn ends_with_vowel_y(text: &str) -> bool {
    text.chars().rev().nth(1).is_some_and(|c| "aeiou".contains(c))
}

fn singular(name: &str) -> String {
    let text = readable_name(name);
    if let Some(stem) = text.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    for end in ["ches", "shes", "xes", "sses"] {
        if text.ends_with(end) {
            return text[..text.len() - 2].to_string();
        }
    }
    match text.strip_suffix('s') {
        Some(stem) if !stem.ends_with(['s', 'u', 'i']) => stem.to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use querymend_sql::dialect::SQLITE;

    use super::*;

    #[test]
    fn generates_sample_questions_of_several_kinds() {
        let ddl = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, full_name TEXT, zip INTEGER);
                   CREATE TABLE categories (id INTEGER PRIMARY KEY, title TEXT, rank INTEGER);
                   CREATE TABLE orderLines (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(customer_id),
                                            ordered_on DATE, total REAL);
                   CREATE TABLE likes (customer_id INTEGER REFERENCES customers(customer_id),
                                       category_id INTEGER REFERENCES categories(id));";
        let schema = Schema::from_ddl(ddl, &SQLITE).unwrap();
        let asked = generate(&schema);
        assert!(asked.len() <= MAX_QUESTIONS && asked.len() >= 5, "{asked:?}");
        for expected in [
            "How many customers are there?",
            "How many order lines does each customer have?",
            "How many order lines are there for each year of ordered on?",
            "What is the average total of all order lines?",
            "Which category has the highest rank?",
        ] {
            assert!(asked.iter().any(|question| question == expected), "{expected}: {asked:?}");
        }
        // Zip codes are not measures, and junction tables are skipped.
        assert!(asked.iter().all(|question| !question.contains("zip") && !question.contains("likes")), "{asked:?}");
    }

    #[test]
    fn converts_identifiers_to_readable_nouns() {
        let pairs = [
            ("orderItems", "order items", "order item"),
            ("city", "cities", "city"),
            ("BOX", "boxes", "box"),
            ("status", "status", "status"),
            ("day", "days", "day"),
            ("addresses", "addresses", "address"),
            ("__", "s", ""),
        ];
        for (name, several, single) in pairs {
            assert_eq!((plural(name).as_str(), singular(name).as_str()), (several, single), "{name}");
        }
        assert!(generate(&Schema::default()).is_empty());
    }
}
