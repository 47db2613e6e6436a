//! Reads the tables, columns and keys of a SQLite file.

use std::collections::BTreeMap;

use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind, Type};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Result, Row};

use super::errors;
use super::file::DatabaseFile;
use super::read_only::quote_identifier;
use crate::Error;

/// Number of rows that are sampled, so that a column with one value causes no full table scan.
const MAX_SAMPLED_ROWS: usize = 10_000;
/// Maximum length of a sample. Longer text is prose and not a value to filter by.
const MAX_SAMPLE_CHARS: usize = 60;

/// Declared foreign key. Without referenced columns, it refers to the primary key of the referenced
/// table.
struct DeclaredForeignKey {
    columns: Vec<String>,
    table: String,
    references: Vec<Option<String>>,
}

/// Reads the schema. Broken views and internal tables are omitted.
pub(super) fn read_schema(
    connection: &Connection,
    file: &DatabaseFile,
    samples: usize,
) -> std::result::Result<Schema, Error> {
    let to_error = |error| errors::to_error(error, file.display_path());
    let mut tables = Vec::new();
    let mut references = Vec::new();
    for (name, kind) in list_tables(connection).map_err(to_error)? {
        let Some((mut table, declared)) = read_table(connection, &name, kind).map_err(to_error)? else { continue };
        if samples > 0 && kind == TableKind::Table {
            for column in table.columns.iter_mut().filter(|column| matches!(column.kind(), Type::Text | Type::Any)) {
                column.samples = sample_values(connection, &name, &column.name, samples).map_err(to_error)?;
            }
        }
        tables.push(table);
        references.push(declared);
    }
    for (i, declared) in references.into_iter().enumerate() {
        tables[i].foreign_keys =
            declared.into_iter().filter_map(|reference| resolve_foreign_key(reference, &tables)).collect();
    }
    Schema::new(tables).map_err(|error| {
        Error::unavailable(
            format!("the schema of `{}` cannot be read: {error}", file.display_path()),
            "its catalog has unexpected content; check the file with `PRAGMA integrity_check`",
        )
    })
}

/// Lists tables and views in order of creation.
fn list_tables(connection: &Connection) -> Result<Vec<(String, TableKind)>> {
    let sql = "SELECT l.name, l.type FROM pragma_table_list AS l JOIN sqlite_schema AS s ON s.name = l.name \
               WHERE l.schema = 'main' AND s.type IN ('table', 'view') AND l.type IN ('table', 'view', 'virtual') \
               AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY s.rowid";
    let named = query_rows(connection, sql, [], |row| {
        let kind = if text_column(row, 1)?.as_deref() == Some("view") { TableKind::View } else { TableKind::Table };
        Ok(text_column(row, 0)?.map(|name| (name, kind)))
    })?;
    Ok(named.into_iter().flatten().collect())
}

/// Reads a table and its foreign keys. Returns `None` if it cannot be read, such as a view of a
/// missing table or a virtual table whose module is missing.
fn read_table(
    connection: &Connection,
    name: &str,
    kind: TableKind,
) -> Result<Option<(Table, Vec<DeclaredForeignKey>)>> {
    let sql = "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid";
    let columns = query_rows(connection, sql, [name], |row| {
        let mut column =
            Column::new(text_column(row, 0)?.unwrap_or_default(), text_column(row, 1)?.unwrap_or_default());
        column.nullable = row.get::<_, i64>(2)? == 0;
        Ok((column, row.get::<_, i64>(3)?))
    });
    let hidden = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 1 ORDER BY cid";
    let hidden = query_rows(connection, hidden, [name], |row| text_column(row, 0)).unwrap_or_default();
    let columns = match columns {
        Ok(columns) if !columns.is_empty() => columns,
        Err(error) if is_file_error(&error) => return Err(error),
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
    let has_index_for_key = read_unique_keys(connection, &mut table)?;
    // A primary key without an index is an alias of the rowid, which is never NULL; any other key
    // may be NULL in SQLite unless it is declared otherwise.
    if let ([key], false) = (table.primary_key.as_slice(), has_index_for_key)
        && let Some(column) = table.columns.iter_mut().find(|column| column.name == *key)
    {
        column.nullable = false;
    }
    let references = read_foreign_keys(connection, name)?;
    Ok(Some((table, references)))
}

/// Adds unique keys from indexes. Returns whether the primary key has an index.
///
/// Partial and expression indexes do not make columns unique.
fn read_unique_keys(connection: &Connection, table: &mut Table) -> Result<bool> {
    let sql =
        "SELECT name, origin FROM pragma_index_list(?1, 'main') WHERE \"unique\" AND NOT partial ORDER BY seq DESC";
    let indexes = query_rows(connection, sql, [&table.name], |row| Ok((text_column(row, 0)?, text_column(row, 1)?)))?;
    let mut has_index_for_key = false;
    for (index, origin) in indexes {
        if origin.as_deref() == Some("pk") {
            has_index_for_key = true;
            continue;
        }
        let sql = "SELECT name FROM pragma_index_info(?1, 'main') ORDER BY seqno";
        let columns = query_rows(connection, sql, [index], |row| text_column(row, 0))?;
        let columns: Option<Vec<String>> = columns.into_iter().collect();
        if let Some(columns) = columns.filter(|columns| columns.iter().all(|name| table.column(name).is_some()))
            && !table.unique.contains(&columns)
        {
            table.unique.push(columns);
        }
    }
    Ok(has_index_for_key)
}

/// Reads foreign keys in order of declaration; SQLite numbers them from the last.
fn read_foreign_keys(connection: &Connection, table: &str) -> Result<Vec<DeclaredForeignKey>> {
    let sql = "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1, 'main') ORDER BY id, seq";
    let rows = query_rows(connection, sql, [table], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            text_column(row, 1)?.unwrap_or_default(),
            text_column(row, 2)?.unwrap_or_default(),
            text_column(row, 3)?,
        ))
    })?;
    let mut keys: BTreeMap<i64, DeclaredForeignKey> = BTreeMap::new();
    for (id, table, from, to) in rows {
        let key =
            keys.entry(id).or_insert_with(|| DeclaredForeignKey { columns: Vec::new(), table, references: Vec::new() });
        key.columns.push(from);
        key.references.push(to);
    }
    Ok(keys.into_values().rev().collect())
}

/// Resolves a foreign key, in the spelling of the referenced table. Returns `None` if the reference
/// is invalid.
fn resolve_foreign_key(reference: DeclaredForeignKey, tables: &[Table]) -> Option<ForeignKey> {
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

/// Returns some distinct short strings of a column, in row order.
fn sample_values(connection: &Connection, table: &str, column: &str, max: usize) -> Result<Vec<String>> {
    let sql = format!(
        "SELECT DISTINCT v FROM (SELECT {} AS v FROM {} LIMIT {MAX_SAMPLED_ROWS}) \
         WHERE typeof(v) = 'text' AND length(v) BETWEEN 1 AND {MAX_SAMPLE_CHARS} LIMIT {max}",
        quote_identifier(column),
        quote_identifier(table),
    );
    match query_rows(connection, &sql, [], |row| text_column(row, 0)) {
        Ok(values) => Ok(values.into_iter().flatten().collect()),
        Err(error) if is_file_error(&error) => Err(error),
        // A generated column or a virtual table may fail on some row, and samples are optional.
        Err(_) => Ok(Vec::new()),
    }
}

/// Returns whether an error concerns the file or the deadline, and not only one table.
fn is_file_error(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase, OperationInterrupted, SystemIoFailure,
    };
    let file_codes =
        [DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase, OperationInterrupted, SystemIoFailure];
    error.sqlite_error_code().is_some_and(|code| file_codes.contains(&code))
}

fn query_rows<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Returns a text column, or `None` if the value is NULL, not text or not UTF-8.
fn text_column(row: &Row<'_>, i: usize) -> Result<Option<String>> {
    Ok(match row.get_ref(i)? {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(str::to_string),
        _ => None,
    })
}
