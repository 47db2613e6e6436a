//! Replies that need no model: a greeting, and a description of the data model.

use querymend_sql::Schema;
use querymend_sql::question::question_words;
use querymend_sql::schema::{Column, Table};

/// Reply to small talk if no model is available.
pub const GREETING: &str = "I answer questions about the data in this database. Ask for example which tables there are, or how many rows one has.";

/// Maximum number of tables listed.
const MAX_TABLES: usize = 100;

/// Maximum number of columns listed per table.
const MAX_COLUMNS: usize = 200;

/// Describes the part of a schema that a message names.
///
/// That is its columns, its keys, or the list of tables.
pub fn describe(message: &str, schema: &Schema) -> String {
    let words: Vec<String> = question_words(message).into_iter().map(|w| w.lower).collect();
    let is_mentioned = |name: &str| {
        let parts: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
        let lower = name.to_lowercase();
        words.iter().any(|w| is_same_noun(w, &lower))
            || (parts.len() > 1 && parts.iter().all(|part| words.iter().any(|w| is_same_noun(w, &part.to_lowercase()))))
    };
    let tables: Vec<&Table> = schema.tables().iter().filter(|table| is_mentioned(&table.name)).collect();
    let columns = || schema.tables().iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
    let named: Vec<(&Table, &Column)> =
        columns().filter(|(_, column)| column.name.len() > 2 && is_mentioned(&column.name)).collect();
    match tables.as_slice() {
        [] if !named.is_empty() => {
            named.into_iter().take(MAX_TABLES).map(|(t, c)| describe_column(t, c)).collect::<Vec<_>>().join("\n")
        }
        [] => describe_tables(schema),
        [only] => describe_table(only),
        several => {
            let keys = describe_foreign_keys(several);
            let all = several.iter().take(MAX_TABLES).map(|table| describe_table(table));
            if keys.is_empty() { all.collect::<Vec<_>>().join("\n\n") } else { keys.join("\n") }
        }
    }
}

fn is_same_noun(word: &str, name: &str) -> bool {
    word == name || word.trim_end_matches('s') == name.trim_end_matches('s')
}

fn describe_tables(schema: &Schema) -> String {
    let tables = schema.tables();
    let mut lines = vec![match tables.len() {
        0 => "The database has no tables.".to_string(),
        1 => "The database has one table:".to_string(),
        count => format!("The database has {count} tables:"),
    }];
    for table in tables.iter().take(MAX_TABLES) {
        let columns: Vec<&str> = table.columns.iter().take(MAX_COLUMNS).map(|c| c.name.as_str()).collect();
        lines.push(format!("- {} ({})", table.full_name(), columns.join(", ")));
    }
    if tables.len() > MAX_TABLES {
        lines.push(format!("and {} more; `querymend schema` lists all", tables.len() - MAX_TABLES));
    }
    lines.join("\n")
}

fn describe_table(table: &Table) -> String {
    let comment = table.comment.as_ref().map_or(String::new(), |comment| format!(": {comment}"));
    let mut lines = vec![format!("The table {} has {} columns{comment}", table.full_name(), table.columns.len())];
    for column in table.columns.iter().take(MAX_COLUMNS) {
        let is_key = table.primary_key.iter().any(|key| key.eq_ignore_ascii_case(&column.name));
        let key = if is_key { ", primary key" } else { "" };
        let comment = column.comment.as_ref().map_or(String::new(), |comment| format!(": {comment}"));
        lines.push(
            format!("- {} {}{key}{comment}", column.name, column.type_name.to_lowercase()).trim_end().to_string(),
        );
    }
    lines.extend(describe_foreign_keys(&[table]));
    lines.join("\n")
}

fn describe_column(table: &Table, column: &Column) -> String {
    let kind =
        if column.type_name.is_empty() { "no declared type".to_string() } else { column.type_name.to_lowercase() };
    let comment = column.comment.as_deref().unwrap_or("the database has no comment on it");
    format!("{}.{} ({kind}): {comment}", table.full_name(), column.name)
}

/// Describes the foreign keys between tables, or all of one table.
fn describe_foreign_keys(tables: &[&Table]) -> Vec<String> {
    let is_among = |name: &str| tables.len() == 1 || tables.iter().any(|table| table.name.eq_ignore_ascii_case(name));
    let mut lines = Vec::new();
    for table in tables {
        for key in table.foreign_keys.iter().filter(|key| is_among(&key.table)) {
            let (from, to) = (key.columns.join(", "), key.references.join(", "));
            lines.push(format!("{}.{from} refers to {}.{to}", table.full_name(), key.table));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use querymend_sql::dialect::SQLITE;

    use super::*;

    #[test]
    fn describes_schema_objects_named_in_a_message() {
        let ddl = "CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (customer_id))";
        let schema = Schema::from_ddl(ddl, &SQLITE).unwrap();
        for (message, expected) in [
            (
                "Which tables are there?",
                "The database has 2 tables:\n- customers (customer_id, name)\n- orders (order_id, customer_id)",
            ),
            ("How are orders and customers connected?", "orders.customer_id refers to customers.customer_id"),
            (
                "Describe the table customers",
                "The table customers has 2 columns\n- customer_id integer, primary key\n- name text",
            ),
            ("What does the column name mean?", "customers.name (text): the database has no comment on it"),
        ] {
            assert_eq!(describe(message, &schema), expected, "{message}");
        }
        assert_eq!(describe("Which tables are there?", &Schema::default()), "The database has no tables.");
    }
}
