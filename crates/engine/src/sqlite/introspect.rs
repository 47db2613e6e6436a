//! The tables, columns and keys of a SQLite file.

use std::collections::BTreeMap;

use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind, Type};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Result, Row};

use super::file::DatabaseFile;
use super::lock::quoted;
use super::refusal;
use crate::Error;

/// Samples are taken from so many rows, so that a column with one value does not make SQLite read the whole table.
const ROWS_FOR_SAMPLES: usize = 10_000;
/// Longer texts are prose, not values that anybody would filter by.
const LONGEST_SAMPLE: usize = 60;

/// A foreign key as declared: without the parent's columns, it means the parent's primary key.
struct Reference {
    columns: Vec<String>,
    table: String,
    references: Vec<Option<String>>,
}

/// Reads the schema. Views that no longer work are left out, as is whatever else only SQLite itself cares for.
pub(super) fn schema(
    connection: &Connection,
    file: &DatabaseFile,
    samples: usize,
) -> std::result::Result<Schema, Error> {
    let meaning = |error| refusal::meaning(error, file);
    let mut tables = Vec::new();
    let mut references = Vec::new();
    for (name, kind) in names(connection).map_err(meaning)? {
        let Some((mut table, declared)) = table(connection, &name, kind).map_err(meaning)? else { continue };
        if samples > 0 && kind == TableKind::Table {
            for column in table.columns.iter_mut().filter(|column| matches!(column.kind(), Type::Text | Type::Any)) {
                column.samples = sample(connection, &name, &column.name, samples).map_err(meaning)?;
            }
        }
        tables.push(table);
        references.push(declared);
    }
    for (i, declared) in references.into_iter().enumerate() {
        tables[i].foreign_keys = declared.into_iter().filter_map(|reference| resolve(reference, &tables)).collect();
    }
    Schema::new(tables).map_err(|error| {
        Error::unavailable(
            format!("the tables of `{}` cannot be understood: {error}", file.shown()),
            "this is not how SQLite describes tables; check the file with `PRAGMA integrity_check`",
        )
    })
}

/// Tables and views, in the order in which they were created.
fn names(connection: &Connection) -> Result<Vec<(String, TableKind)>> {
    let sql = "SELECT l.name, l.type FROM pragma_table_list AS l JOIN sqlite_schema AS s ON s.name = l.name \
               WHERE l.schema = 'main' AND s.type IN ('table', 'view') AND l.type IN ('table', 'view', 'virtual') \
               AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY s.rowid";
    let named = collect(connection, sql, [], |row| {
        let kind = if text(row, 1)?.as_deref() == Some("view") { TableKind::View } else { TableKind::Table };
        Ok(text(row, 0)?.map(|name| (name, kind)))
    })?;
    Ok(named.into_iter().flatten().collect())
}

/// One table and what it refers to, or nothing if it cannot be read: a view of a table that is gone, a virtual table
/// whose module is not there.
fn table(connection: &Connection, name: &str, kind: TableKind) -> Result<Option<(Table, Vec<Reference>)>> {
    let sql = "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid";
    let columns = collect(connection, sql, [name], |row| {
        let mut column = Column::new(text(row, 0)?.unwrap_or_default(), text(row, 1)?.unwrap_or_default());
        column.nullable = row.get::<_, i64>(2)? == 0;
        Ok((column, row.get::<_, i64>(3)?))
    });
    let hidden = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 1 ORDER BY cid";
    let hidden = collect(connection, hidden, [name], |row| text(row, 0)).unwrap_or_default();
    let columns = match columns {
        Ok(columns) if !columns.is_empty() => columns,
        Err(error) if is_of_the_file(&error) => return Err(error),
        _ => return Ok(None),
    };
    let mut key: Vec<(i64, String)> =
        columns.iter().filter(|(_, pk)| *pk > 0).map(|(c, pk)| (*pk, c.name.clone())).collect();
    key.sort();
    let mut table = Table {
        name: name.to_string(),
        kind,
        primary_key: key.into_iter().map(|(_, column)| column).collect(),
        columns: columns.into_iter().map(|(column, _)| column).collect(),
        hidden: hidden.into_iter().flatten().collect(),
        ..Table::default()
    };
    if kind == TableKind::View {
        return Ok(Some((table, Vec::new())));
    }
    let has_index_for_key = unique_keys(connection, &mut table)?;
    // A key without an index of its own is another name of the row's number, which is never NULL; any other key may
    // hold NULL in SQLite unless it is declared otherwise.
    if let ([key], false) = (table.primary_key.as_slice(), has_index_for_key)
        && let Some(column) = table.columns.iter_mut().find(|column| column.name == *key)
    {
        column.nullable = false;
    }
    let references = references(connection, name)?;
    Ok(Some((table, references)))
}

/// Adds what unique indexes say; tells whether one of them stands for the primary key. An index of some of the rows,
/// or of expressions, does not make columns unique.
fn unique_keys(connection: &Connection, table: &mut Table) -> Result<bool> {
    let sql =
        "SELECT name, origin FROM pragma_index_list(?1, 'main') WHERE \"unique\" AND NOT partial ORDER BY seq DESC";
    let indexes = collect(connection, sql, [&table.name], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
    let mut has_index_for_key = false;
    for (index, origin) in indexes {
        if origin.as_deref() == Some("pk") {
            has_index_for_key = true;
            continue;
        }
        let sql = "SELECT name FROM pragma_index_info(?1, 'main') ORDER BY seqno";
        let columns = collect(connection, sql, [index], |row| text(row, 0))?;
        let columns: Option<Vec<String>> = columns.into_iter().collect();
        if let Some(columns) = columns.filter(|columns| columns.iter().all(|name| table.column(name).is_some()))
            && !table.unique.contains(&columns)
        {
            table.unique.push(columns);
        }
    }
    Ok(has_index_for_key)
}

/// Foreign keys in the order of their declaration; SQLite counts them from the last.
fn references(connection: &Connection, table: &str) -> Result<Vec<Reference>> {
    let sql = "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1, 'main') ORDER BY id, seq";
    let rows = collect(connection, sql, [table], |row| {
        Ok((row.get::<_, i64>(0)?, text(row, 1)?.unwrap_or_default(), text(row, 2)?.unwrap_or_default(), text(row, 3)?))
    })?;
    let mut keys: BTreeMap<i64, Reference> = BTreeMap::new();
    for (id, table, from, to) in rows {
        let key = keys.entry(id).or_insert_with(|| Reference { columns: Vec::new(), table, references: Vec::new() });
        key.columns.push(from);
        key.references.push(to);
    }
    Ok(keys.into_values().rev().collect())
}

/// The foreign key as it can be joined over, in the parent's own spelling; nothing if it leads nowhere.
fn resolve(reference: Reference, tables: &[Table]) -> Option<ForeignKey> {
    let parent = tables.iter().find(|table| table.name.eq_ignore_ascii_case(&reference.table))?;
    let named: Option<Vec<String>> = reference.references.into_iter().collect();
    let references: Vec<String> = match named {
        Some(names) => names.iter().map(|name| Some(parent.column(name)?.name.clone())).collect::<Option<_>>()?,
        None => parent.primary_key.clone(),
    };
    let fits = references.len() == reference.columns.len();
    let key = ForeignKey { columns: reference.columns, table: parent.name.clone(), references, inferred: false };
    fits.then_some(key)
}

/// Some different short texts that a column holds, those of the first rows first.
fn sample(connection: &Connection, table: &str, column: &str, most: usize) -> Result<Vec<String>> {
    let sql = format!(
        "SELECT DISTINCT v FROM (SELECT {} AS v FROM {} LIMIT {ROWS_FOR_SAMPLES}) \
         WHERE typeof(v) = 'text' AND length(v) BETWEEN 1 AND {LONGEST_SAMPLE} LIMIT {most}",
        quoted(column),
        quoted(table),
    );
    match collect(connection, &sql, [], |row| text(row, 0)) {
        Ok(values) => Ok(values.into_iter().flatten().collect()),
        Err(error) if is_of_the_file(&error) => Err(error),
        // A generated column or a virtual table may fail on some row: samples are a help, not a need.
        Err(_) => Ok(Vec::new()),
    }
}

/// Whether an error is about the file or the clock, and not only about the table at hand.
fn is_of_the_file(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase, OperationInterrupted, SystemIoFailure,
    };
    let file_codes =
        [DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase, OperationInterrupted, SystemIoFailure];
    error.sqlite_error_code().is_some_and(|code| file_codes.contains(&code))
}

fn collect<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Text as it stands in the file; NULL, and what is not text or not UTF-8, is none.
fn text(row: &Row<'_>, i: usize) -> Result<Option<String>> {
    Ok(match row.get_ref(i)? {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(str::to_string),
        _ => None,
    })
}
