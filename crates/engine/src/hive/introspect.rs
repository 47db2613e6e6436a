//! The tables of a database, in two questions however many there are.

use std::collections::HashMap;

use querymend_sql::schema::{Column, Table, TableKind};
use querymend_sql::{Cell, Schema};

use super::fault::Fault;
use super::session::Session;
use crate::stop::Stop;
use crate::{Limits, catalogue};

/// What is taken of an answer about all tables.
const MOST: Limits =
    Limits { rows: catalogue::MOST, bytes: 1 << 30, time: std::time::Duration::MAX, memory: usize::MAX, steps: None };

pub(super) fn schema(session: &mut Session, database: &str, stop: &Stop) -> Result<Schema, Fault> {
    let operation = session.ask(stop, |server, handle| server.tables(handle, database))?;
    let mut tables = Vec::new();
    let mut places = HashMap::new();
    for row in rows(session, operation, stop)? {
        // What is asked for is a pattern, in which a stroke at the foot stands for any character.
        let (Some(schema), Some(name)) = (text(&row, 1), text(&row, 2)) else { continue };
        if !schema.is_empty() && !schema.eq_ignore_ascii_case(database) {
            continue;
        }
        let kind = if text(&row, 3).is_some_and(|kind| kind.to_lowercase().contains("view")) {
            TableKind::View
        } else {
            TableKind::Table
        };
        places.insert(name.clone(), tables.len());
        tables.push(Table { name, kind, comment: text(&row, 4).filter(|text| !text.is_empty()), ..Table::default() });
    }
    let operation = session.ask(stop, |server, handle| server.columns(handle, database))?;
    for row in rows(session, operation, stop)? {
        let (Some(schema), Some(table), Some(name)) = (text(&row, 1), text(&row, 2), text(&row, 3)) else { continue };
        if !schema.is_empty() && !schema.eq_ignore_ascii_case(database) {
            continue;
        }
        let Some(table) = places.get(&table).and_then(|place| tables.get_mut(*place)) else { continue };
        let mut column = Column::new(name, text(&row, 5).unwrap_or_default());
        column.nullable = row.get(10) != Some(&Cell::Integer(0));
        column.comment = text(&row, 11).filter(|text| !text.is_empty());
        table.columns.push(column);
    }
    Schema::new(tables).map_err(|error| Fault::Strange(error.to_string()))
}

fn rows(session: &mut Session, operation: super::value::Value, stop: &Stop) -> Result<Vec<Vec<Cell>>, Fault> {
    let operation = session.finish(operation, stop)?;
    let gathered = session.gather(&operation, &MOST, stop);
    session.let_go(&operation, matches!(gathered, Err(Fault::Stopped)));
    let rows = gathered?.taking.done();
    if rows.truncated {
        return Err(Fault::TooMuch);
    }
    Ok(rows.rows)
}

fn text(row: &[Cell], place: usize) -> Option<String> {
    match row.get(place) {
        Some(Cell::Text(text)) => Some(text.clone()),
        _ => None,
    }
}
