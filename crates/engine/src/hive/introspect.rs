//! Reads the tables of a database with two calls, regardless of their number.

use std::collections::HashMap;

use querymend_sql::schema::{Column, Table, TableKind};
use querymend_sql::{Cell, Schema};

use super::hive_error::HiveError;
use super::session::HiveSession;
use crate::deadline::Deadline;
use crate::{Limits, introspection_limits};

/// Limits on the metadata of all tables.
const CATALOG_LIMITS: Limits = Limits {
    rows: introspection_limits::MAX_CATALOG_ROWS,
    bytes: 1 << 30,
    time: std::time::Duration::MAX,
    memory: usize::MAX,
    steps: None,
};

pub(super) fn read_schema(session: &mut HiveSession, database: &str, deadline: &Deadline) -> Result<Schema, HiveError> {
    let operation = session.call(deadline, |server, handle| server.get_tables(handle, database))?;
    let mut tables = Vec::new();
    let mut table_index = HashMap::new();
    for row in fetch_all_rows(session, operation, deadline)? {
        // The database name is a pattern, in which `_` matches any character.
        let (Some(schema), Some(name)) = (text_cell(&row, 1), text_cell(&row, 2)) else { continue };
        if !schema.is_empty() && !schema.eq_ignore_ascii_case(database) {
            continue;
        }
        let kind = if text_cell(&row, 3).is_some_and(|kind| kind.to_lowercase().contains("view")) {
            TableKind::View
        } else {
            TableKind::Table
        };
        table_index.insert(name.clone(), tables.len());
        tables.push(Table {
            name,
            kind,
            comment: text_cell(&row, 4).filter(|text| !text.is_empty()),
            ..Table::default()
        });
    }
    let operation = session.call(deadline, |server, handle| server.get_columns(handle, database))?;
    for row in fetch_all_rows(session, operation, deadline)? {
        let (Some(schema), Some(table), Some(name)) = (text_cell(&row, 1), text_cell(&row, 2), text_cell(&row, 3))
        else {
            continue;
        };
        if !schema.is_empty() && !schema.eq_ignore_ascii_case(database) {
            continue;
        }
        let Some(table) = table_index.get(&table).and_then(|place| tables.get_mut(*place)) else { continue };
        let mut column = Column::new(name, text_cell(&row, 5).unwrap_or_default());
        column.nullable = row.get(10) != Some(&Cell::Integer(0));
        column.comment = text_cell(&row, 11).filter(|text| !text.is_empty());
        table.columns.push(column);
    }
    Schema::new(tables).map_err(|error| HiveError::InvalidResponse(error.to_string()))
}

fn fetch_all_rows(
    session: &mut HiveSession,
    operation: super::thrift_value::ThriftValue,
    deadline: &Deadline,
) -> Result<Vec<Vec<Cell>>, HiveError> {
    let operation = session.wait_or_release(operation, deadline)?;
    let fetched = session.fetch_rows(&operation, &CATALOG_LIMITS, deadline);
    session.release_operation(&operation, matches!(fetched, Err(HiveError::Interrupted)));
    let rows = fetched?.collector.into_rows();
    if rows.truncated {
        return Err(HiveError::CatalogTooLarge);
    }
    Ok(rows.rows)
}

fn text_cell(row: &[Cell], place: usize) -> Option<String> {
    match row.get(place) {
        Some(Cell::Text(text)) => Some(text.clone()),
        _ => None,
    }
}
