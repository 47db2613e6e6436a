//! The tables, columns and keys that a user may read, in four or five queries however many there are.

use std::collections::{HashMap, HashSet};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind};

use super::address::Server;
use super::lock::Family;
use super::pool::{Done, Work, done};
use super::refusal::Fault;
use crate::{Error, catalogue};

/// So many labels of an ENUM are kept as samples; more are no small set of values any more.
const MOST_LABELS: usize = 50;

/// Reads what information_schema says about one database, or about all that are not the server's own.
pub(super) struct Describe<'a>(pub(super) &'a Server);

/// What it said, row by row.
pub(super) struct Described {
    tables: Vec<Row>,
    columns: Vec<Row>,
    unique: Vec<Row>,
    foreign: Vec<Row>,
    json: Vec<Row>,
}

impl Work for Describe<'_> {
    type Outcome = Described;

    async fn run(&self, connection: &mut Conn, family: Family) -> Result<Done<Described>, Fault> {
        let within = |column: &str| match self.0.database {
            Some(_) => format!("{column} = DATABASE()"),
            None => format!("{column} NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')"),
        };
        let here = within("TABLE_SCHEMA");
        // Views and tables alike; but not MariaDB's sequences, from which one cannot read without moving them on.
        let tables = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, TABLE_COMMENT FROM information_schema.TABLES \
             WHERE {here} AND TABLE_TYPE IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED') ORDER BY TABLE_SCHEMA, TABLE_NAME"
        );
        let columns = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_COMMENT \
             FROM information_schema.COLUMNS WHERE {here} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
        );
        // A part of a key that is an expression has no column; such a key says nothing about the others.
        let unique = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
             WHERE {here} AND NON_UNIQUE = 0 ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
        );
        let foreign = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, \
             REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE \
             WHERE {here} AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA AND REFERENCED_TABLE_NAME IS NOT NULL \
             ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"
        );
        // MariaDB keeps JSON in a LONGTEXT and has each value checked.
        let json = format!(
            "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS \
             WHERE {} AND CHECK_CLAUSE = CONCAT('json_valid(`', CONSTRAINT_NAME, '`)')",
            within("CONSTRAINT_SCHEMA")
        );
        let limit = catalogue::limit();
        done(Described {
            tables: connection.query(tables + &limit).await?,
            columns: connection.query(columns + &limit).await?,
            unique: connection.query(unique + &limit).await?,
            foreign: connection.query(foreign + &limit).await?,
            json: if family == Family::MariaDb { connection.query(json + &limit).await? } else { Vec::new() },
        })
    }
}

/// Puts the tables together. Those without columns are left out: views of what is gone.
pub(super) fn schema(described: Described, server: &Server) -> Result<Schema, Error> {
    let Described { tables, columns, unique, foreign, json } = &described;
    for said in [tables, columns, unique, foreign, json] {
        catalogue::fits(said.len(), &server.name)?;
    }
    let mut tables = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    for row in described.tables {
        let [Some(schema), Some(name), Some(kind), comment] = texts(row) else { continue };
        let kind = if kind == "VIEW" { TableKind::View } else { TableKind::Table };
        // The comment of a view is the word VIEW, or what is wrong with it.
        let comment = comment.filter(|comment| kind == TableKind::Table && !comment.is_empty());
        places.insert((schema.clone(), name.clone()), tables.len());
        let schema = server.database.is_none().then_some(schema);
        tables.push(Table { name, schema, kind, comment, ..Table::default() });
    }
    let json: HashSet<[Option<String>; 3]> = described.json.into_iter().map(texts).collect();
    for row in described.columns {
        let [Some(schema), Some(table), Some(name), Some(kind), nullable, comment] = texts(row) else { continue };
        let Some(&place) = places.get(&(schema.clone(), table.clone())) else { continue };
        let is_json = json.contains(&[Some(schema), Some(table), Some(name.clone())]);
        let mut column = Column::new(name, if is_json { "json".to_string() } else { kind });
        column.samples = labels(&column.type_name);
        column.nullable = nullable.as_deref() != Some("NO");
        column.comment = comment.filter(|comment| !comment.is_empty());
        tables[place].columns.push(column);
    }
    for key in keys(described.unique) {
        let Some(&place) = places.get(&key.table) else { continue };
        let columns: Option<Vec<String>> = key.parts.into_iter().map(|[column]| column).collect();
        match columns {
            Some(columns) if key.name == "PRIMARY" => tables[place].primary_key = columns,
            Some(columns) if !tables[place].unique.contains(&columns) => tables[place].unique.push(columns),
            _ => {}
        }
    }
    for key in keys(described.foreign) {
        let mut found = ForeignKey { columns: vec![], table: String::new(), references: vec![], inferred: false };
        for [column, table, reference] in key.parts {
            found.columns.extend(column);
            found.table = table.unwrap_or_default();
            found.references.extend(reference);
        }
        let Some(&place) = places.get(&key.table) else { continue };
        // What the user may not read is not there for them.
        if places.contains_key(&(key.table.0, found.table.clone())) {
            tables[place].foreign_keys.push(found);
        }
    }
    tables.retain(|table| !table.columns.is_empty());
    Schema::new(tables).map_err(|error| {
        Error::unavailable(
            format!("the tables of {} cannot be understood: {error}", server.name),
            "this is not how MySQL describes tables; what does information_schema say?",
        )
    })
}

/// A key: the database and the table that it belongs to, its name, and what is said of each of its columns.
struct Key<const N: usize> {
    table: (String, String),
    name: String,
    parts: Vec<[Option<String>; N]>,
}

/// Gathers the rows that belong to one key, which stand together.
fn keys<const N: usize>(rows: Vec<Row>) -> Vec<Key<N>> {
    let mut keys: Vec<Key<N>> = Vec::new();
    for row in rows {
        let mut values = row.unwrap().into_iter().map(text);
        let mut next = || values.next().flatten();
        let (Some(schema), Some(table), Some(name)) = (next(), next(), next()) else { continue };
        let (table, part) = ((schema, table), std::array::from_fn(|_| next()));
        match keys.last_mut() {
            Some(key) if key.table == table && key.name == name => key.parts.push(part),
            _ => keys.push(Key { table, name, parts: vec![part] }),
        }
    }
    keys
}

/// The values of a row as texts; fewer columns than asked for are none.
pub(super) fn texts<const N: usize>(row: Row) -> [Option<String>; N] {
    let mut values = row.unwrap().into_iter();
    std::array::from_fn(|_| values.next().and_then(text))
}

fn text(value: mysql_async::Value) -> Option<String> {
    match value {
        mysql_async::Value::Bytes(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The labels of `enum('a','it''s')` or of a set: all that a column can hold.
fn labels(kind: &str) -> Vec<String> {
    let inner =
        kind.strip_prefix("enum(").or_else(|| kind.strip_prefix("set(")).and_then(|rest| rest.strip_suffix(')'));
    let mut labels = Vec::new();
    let mut rest = inner.unwrap_or_default();
    while let Some(text) = rest.strip_prefix('\'') {
        let mut label = String::new();
        let mut characters = text.char_indices().peekable();
        let end = loop {
            match characters.next() {
                Some((_, '\'')) if matches!(characters.peek(), Some((_, '\''))) => {
                    characters.next();
                    label.push('\'');
                }
                Some((at, '\'')) => break at + 1,
                Some((_, c)) => label.push(c),
                None => return Vec::new(),
            }
        };
        labels.push(label);
        rest = text[end..].trim_start_matches(',');
    }
    if labels.len() > MOST_LABELS { Vec::new() } else { labels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_a_column_can_hold() {
        assert_eq!(labels("enum('new','it''s, done','ü')"), ["new", "it's, done", "ü"]);
        assert_eq!(labels("set('a','b')"), ["a", "b"]);
        assert!(labels("varchar(20)").is_empty() && labels("enum('a").is_empty() && labels("enum('a)").is_empty());
    }
}
