//! Reads the tables, columns and keys that a user may read.
//!
//! It takes four or five queries, regardless of the number of tables.

use std::collections::{HashMap, HashSet};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind};

use super::address::MySqlServer;
use super::errors::MySqlError;
use super::pool::{Completed, MySqlOperation, completed};
use super::read_only::MySqlFlavor;
use crate::{Error, introspection_limits};

/// Maximum number of ENUM labels that are kept as samples. Larger types have none.
const MAX_ENUM_LABELS: usize = 50;

/// Reads `information_schema` for one database, or for all except the system databases.
pub(super) struct MySqlCatalogQuery<'a>(pub(super) &'a MySqlServer);

/// Rows of the catalog queries.
pub(super) struct MySqlCatalogRows {
    tables: Vec<Row>,
    columns: Vec<Row>,
    unique: Vec<Row>,
    foreign: Vec<Row>,
    json: Vec<Row>,
}

impl MySqlOperation for MySqlCatalogQuery<'_> {
    type Output = MySqlCatalogRows;

    async fn run(&self, connection: &mut Conn, flavor: MySqlFlavor) -> Result<Completed<MySqlCatalogRows>, MySqlError> {
        let within = |column: &str| match self.0.database {
            Some(_) => format!("{column} = DATABASE()"),
            None => format!("{column} NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')"),
        };
        let here = within("TABLE_SCHEMA");
        // Excludes MariaDB's sequences, because reading a sequence can advance it.
        let tables = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, TABLE_COMMENT FROM information_schema.TABLES \
             WHERE {here} AND TABLE_TYPE IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED') ORDER BY TABLE_SCHEMA, TABLE_NAME"
        );
        let columns = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_COMMENT \
             FROM information_schema.COLUMNS WHERE {here} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
        );
        // A key part that is an expression has no column, and such a key does not make the others
        // unique.
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
        // MariaDB stores JSON as LONGTEXT with a `json_valid` check constraint.
        let json = format!(
            "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.CHECK_CONSTRAINTS \
             WHERE {} AND CHECK_CLAUSE = CONCAT('json_valid(`', CONSTRAINT_NAME, '`)')",
            within("CONSTRAINT_SCHEMA")
        );
        let limit = introspection_limits::limit_clause();
        completed(MySqlCatalogRows {
            tables: connection.query(tables + &limit).await?,
            columns: connection.query(columns + &limit).await?,
            unique: connection.query(unique + &limit).await?,
            foreign: connection.query(foreign + &limit).await?,
            json: if flavor == MySqlFlavor::MariaDb { connection.query(json + &limit).await? } else { Vec::new() },
        })
    }
}

/// Builds the schema. Tables without columns are omitted: views of tables that do not exist.
pub(super) fn build_schema(catalog: MySqlCatalogRows, server: &MySqlServer) -> Result<Schema, Error> {
    let MySqlCatalogRows { tables, columns, unique, foreign, json } = &catalog;
    for catalog_rows in [tables, columns, unique, foreign, json] {
        introspection_limits::check_catalog_size(catalog_rows.len(), &server.name)?;
    }
    let mut tables = Vec::new();
    let mut table_index: HashMap<(String, String), usize> = HashMap::new();
    for row in catalog.tables {
        let [Some(schema), Some(name), Some(kind), comment] = text_columns(row) else { continue };
        let kind = if kind == "VIEW" { TableKind::View } else { TableKind::Table };
        // The comment of a view is the text `VIEW` or an error message.
        let comment = comment.filter(|comment| kind == TableKind::Table && !comment.is_empty());
        table_index.insert((schema.clone(), name.clone()), tables.len());
        let schema = server.database.is_none().then_some(schema);
        tables.push(Table { name, schema, kind, comment, ..Table::default() });
    }
    let json: HashSet<[Option<String>; 3]> = catalog.json.into_iter().map(text_columns).collect();
    for row in catalog.columns {
        let [Some(schema), Some(table), Some(name), Some(kind), nullable, comment] = text_columns(row) else {
            continue;
        };
        let Some(&place) = table_index.get(&(schema.clone(), table.clone())) else { continue };
        let is_json = json.contains(&[Some(schema), Some(table), Some(name.clone())]);
        let mut column = Column::new(name, if is_json { "json".to_string() } else { kind });
        column.samples = enum_labels(&column.type_name);
        column.nullable = nullable.as_deref() != Some("NO");
        column.comment = comment.filter(|comment| !comment.is_empty());
        tables[place].columns.push(column);
    }
    for key in group_keys(catalog.unique) {
        let Some(&place) = table_index.get(&key.table) else { continue };
        let columns: Option<Vec<String>> = key.parts.into_iter().map(|[column]| column).collect();
        match columns {
            Some(columns) if key.name == "PRIMARY" => tables[place].primary_key = columns,
            Some(columns) if !tables[place].unique.contains(&columns) => tables[place].unique.push(columns),
            _ => {}
        }
    }
    for key in group_keys(catalog.foreign) {
        let mut found = ForeignKey { columns: vec![], table: String::new(), references: vec![], inferred: false };
        for [column, table, reference] in key.parts {
            found.columns.extend(column);
            found.table = table.unwrap_or_default();
            found.references.extend(reference);
        }
        let Some(&place) = table_index.get(&key.table) else { continue };
        // Tables that the user may not read do not exist in the schema.
        if table_index.contains_key(&(key.table.0, found.table.clone())) {
            tables[place].foreign_keys.push(found);
        }
    }
    tables.retain(|table| !table.columns.is_empty());
    Schema::new(tables).map_err(|error| {
        Error::unavailable(
            format!("the schema of {} cannot be read: {error}", server.name),
            "information_schema has unexpected content: is it another kind of server?",
        )
    })
}

/// Key, as its table (with its database), its name and the properties of each column.
struct IndexKey<const N: usize> {
    table: (String, String),
    name: String,
    parts: Vec<[Option<String>; N]>,
}

/// Groups consecutive rows of the same key.
fn group_keys<const N: usize>(rows: Vec<Row>) -> Vec<IndexKey<N>> {
    let mut keys: Vec<IndexKey<N>> = Vec::new();
    for row in rows {
        let mut values = row.unwrap().into_iter().map(to_text);
        let mut next = || values.next().flatten();
        let (Some(schema), Some(table), Some(name)) = (next(), next(), next()) else { continue };
        let (table, part) = ((schema, table), std::array::from_fn(|_| next()));
        match keys.last_mut() {
            Some(key) if key.table == table && key.name == name => key.parts.push(part),
            _ => keys.push(IndexKey { table, name, parts: vec![part] }),
        }
    }
    keys
}

/// Returns the values of a row as text, and `None` for missing columns.
pub(super) fn text_columns<const N: usize>(row: Row) -> [Option<String>; N] {
    let mut values = row.unwrap().into_iter();
    std::array::from_fn(|_| values.next().and_then(to_text))
}

fn to_text(value: mysql_async::Value) -> Option<String> {
    match value {
        mysql_async::Value::Bytes(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// Returns the labels of an `enum('a','it''s')` or `set(…)` type.
fn enum_labels(kind: &str) -> Vec<String> {
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
    if labels.len() > MAX_ENUM_LABELS { Vec::new() } else { labels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_labels_of_enum_and_set_types() {
        assert_eq!(enum_labels("enum('new','it''s, done','ü')"), ["new", "it's, done", "ü"]);
        assert_eq!(enum_labels("set('a','b')"), ["a", "b"]);
        assert!(
            enum_labels("varchar(20)").is_empty()
                && enum_labels("enum('a").is_empty()
                && enum_labels("enum('a)").is_empty()
        );
    }
}
