//! Questions that a database can be asked, for people who see it for the first time: made from its tables alone.

use std::collections::HashMap;

use querymend_sql::Schema;
use querymend_sql::schema::{Column, Table, Type};

/// How many are suggested.
pub const MOST: usize = 8;

/// Questions about the tables that most others refer to, of different kinds, the plainest first.
pub fn questions(schema: &Schema) -> Vec<String> {
    let mut referred: HashMap<&str, usize> = HashMap::new();
    for key in schema.tables().iter().flat_map(|table| &table.foreign_keys) {
        *referred.entry(key.table.as_str()).or_default() += 1;
    }
    let mut tables: Vec<&Table> = schema.tables().iter().filter(|table| !is_link(table)).collect();
    // What others refer to and what refers to others is what a database is about.
    let weight = |table: &Table| referred.get(table.name.as_str()).unwrap_or(&0) + table.foreign_keys.len();
    tables.sort_by_key(|table| std::cmp::Reverse(weight(table)));
    let kinds: [fn(&Table, &Schema) -> Option<String>; 5] = [count, highest, for_each, each_year, average];
    // In turns: a kind of question for one table, the next kind for the next.
    let mut asked: Vec<String> = Vec::new();
    for turn in 0..kinds.len() {
        for (at, table) in tables.iter().enumerate().take(2 * MOST) {
            let question = kinds[(at + turn) % kinds.len()](table, schema);
            if let Some(question) = question.filter(|question| !asked.contains(question)) {
                asked.push(question);
            }
            if asked.len() == MOST {
                return asked;
            }
        }
    }
    asked
}

fn count(table: &Table, _: &Schema) -> Option<String> {
    Some(format!("How many {} are there?", many(&table.name)))
}

fn highest(table: &Table, _: &Schema) -> Option<String> {
    name_of(table)?;
    let figure = figure(table)?;
    Some(format!("Which {} has the highest {}?", one(&table.name), words(&figure.name)))
}

fn for_each(table: &Table, schema: &Schema) -> Option<String> {
    let key = table.foreign_keys.iter().find(|key| key.columns.len() == 1 && key.table != table.name)?;
    name_of(schema.table(&key.table)?)?;
    Some(format!("How many {} does each {} have?", many(&table.name), one(&key.table)))
}

fn each_year(table: &Table, _: &Schema) -> Option<String> {
    let moment = table.columns.iter().find(|column| column.kind().is_moment())?;
    Some(format!("How many {} are there for each year of {}?", many(&table.name), words(&moment.name)))
}

fn average(table: &Table, _: &Schema) -> Option<String> {
    Some(format!("What is the average {} of all {}?", words(&figure(table)?.name), many(&table.name)))
}

/// A table that only says which rows of others belong together.
fn is_link(table: &Table) -> bool {
    let keys: usize = table.foreign_keys.iter().map(|key| key.columns.len()).sum();
    table.foreign_keys.len() > 1 && keys + 1 >= table.columns.len()
}

/// The column that people know a row by.
fn name_of(table: &Table) -> Option<&Column> {
    table.columns.iter().find(|column| {
        let lower = column.name.to_lowercase();
        column.kind() == Type::Text && (lower.contains("name") || lower.contains("title"))
    })
}

/// A column with figures that can be compared: no key, no number that only names something.
fn figure(table: &Table) -> Option<&Column> {
    let keyed = |name: &String| {
        table.primary_key.contains(name) || table.foreign_keys.iter().any(|key| key.columns.contains(name))
    };
    let names = |lower: &str| {
        let last = lower.rsplit('_').next().unwrap_or(lower);
        lower.ends_with("id") || matches!(last, "code" | "number" | "no" | "zip" | "phone" | "year" | "key")
    };
    let mut columns = table.columns.iter().filter(|column| column.kind().is_numeric());
    columns.find(|column| !keyed(&column.name) && !names(&column.name.to_lowercase()))
}

/// A name as people write it.
fn words(name: &str) -> String {
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

fn many(name: &str) -> String {
    let text = words(name);
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

fn one(name: &str) -> String {
    let text = words(name);
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
    fn a_database_suggests_questions_of_several_kinds() {
        let ddl = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, full_name TEXT, zip INTEGER);
                   CREATE TABLE categories (id INTEGER PRIMARY KEY, title TEXT, rank INTEGER);
                   CREATE TABLE orderLines (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(customer_id),
                                            ordered_on DATE, total REAL);
                   CREATE TABLE likes (customer_id INTEGER REFERENCES customers(customer_id),
                                       category_id INTEGER REFERENCES categories(id));";
        let schema = Schema::from_ddl(ddl, &SQLITE).unwrap();
        let asked = questions(&schema);
        assert!(asked.len() <= MOST && asked.len() >= 5, "{asked:?}");
        for expected in [
            "How many customers are there?",
            "How many order lines does each customer have?",
            "How many order lines are there for each year of ordered on?",
            "What is the average total of all order lines?",
            "Which category has the highest rank?",
        ] {
            assert!(asked.iter().any(|question| question == expected), "{expected}: {asked:?}");
        }
        // A zip code is no figure, and a table of pairs is not asked about.
        assert!(asked.iter().all(|question| !question.contains("zip") && !question.contains("likes")), "{asked:?}");
    }

    #[test]
    fn names_are_written_as_people_write_them() {
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
            assert_eq!((many(name).as_str(), one(name).as_str()), (several, single), "{name}");
        }
        assert!(questions(&Schema::default()).is_empty());
    }
}
