//! The tables and columns of a catalog. Keys are not known to it.

use querymend_sql::schema::{Column, Table, TableKind};
use querymend_sql::{Cell, Schema};

use super::settings::Settings;
use crate::Error;

/// What is asked for: schema, table, kind, remark, column, type, nullability, remark. The catalog and the schema are passed
/// on to the connector, which lists no more than that. Remarks stand in a catalog of the server, which not everybody may read.
pub(super) fn query(settings: &Settings, with_remarks: bool) -> String {
    let catalog = quoted(&settings.catalog);
    let within = |name: &str| match &settings.schema {
        Some(schema) => format!("{name} = {}", literal(&schema.to_lowercase())),
        None => format!("{name} <> 'information_schema'"),
    };
    let this = literal(&settings.catalog.to_lowercase());
    let tables = format!(
        "SELECT table_schema AS s, table_name AS n, table_type AS k FROM {catalog}.information_schema.tables WHERE {}",
        within("table_schema")
    );
    // Presto has them beside the columns, and none about tables.
    let presto = settings.family.scheme == "presto";
    if presto || !with_remarks {
        let about = if presto && with_remarks { "c.comment" } else { "NULL" };
        return format!(
            "SELECT t.s, t.n, t.k, NULL, c.column_name, c.data_type, c.is_nullable, {about} FROM ({tables}) t \
             JOIN (SELECT * FROM {catalog}.information_schema.columns WHERE {}) c ON c.table_schema = t.s AND c.table_name = t.n \
             ORDER BY t.s, t.n, c.ordinal_position",
            within("table_schema")
        );
    }
    format!(
        "SELECT t.s, t.n, t.k, r.comment, c.column_name, c.type_name, c.is_nullable, c.remarks FROM ({tables}) t \
         JOIN (SELECT * FROM system.jdbc.columns WHERE table_cat = {this} AND {}) c \
         ON c.table_schem = t.s AND c.table_name = t.n \
         LEFT JOIN (SELECT * FROM system.metadata.table_comments WHERE catalog_name = {this} AND {}) r \
         ON r.schema_name = t.s AND r.table_name = t.n \
         ORDER BY t.s, t.n, c.ordinal_position",
        within("table_schem"),
        within("schema_name")
    )
}

/// The schema from the answer to [`query`].
pub(super) fn schema(rows: Vec<Vec<Cell>>, settings: &Settings) -> Result<Schema, Error> {
    let mut tables: Vec<Table> = Vec::new();
    let mut of: Option<(String, String)> = None;
    for row in rows {
        let mut cells = row.into_iter().map(text);
        let mut next = || cells.next().flatten();
        let (Some(schema), Some(name), kind, remark) = (next(), next(), next(), next()) else { continue };
        let (Some(column), Some(type_name), nullable, about) = (next(), next(), next(), next()) else { continue };
        let this = (schema, name);
        if of.as_ref() != Some(&this) {
            let kind = if kind.as_deref() == Some("VIEW") { TableKind::View } else { TableKind::Table };
            let (schema, name) = this.clone();
            // A schema that the address names is where bare names are looked for.
            let schema = settings.schema.is_none().then_some(schema);
            tables.push(Table { schema, name, kind, comment: said(remark), ..Table::default() });
            of = Some(this);
        }
        if let Some(table) = tables.last_mut() {
            let mut column = Column::new(column, type_name);
            column.nullable = nullable.as_deref() != Some("NO");
            column.comment = said(about);
            table.columns.push(column);
        }
    }
    Schema::new(tables).map_err(|error| {
        Error::unavailable(
            format!("the tables of {} cannot be understood: {error}", settings.name),
            "this is not how a catalog describes tables; name one of its schemas in the address",
        )
    })
}

fn text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

fn said(remark: Option<String>) -> Option<String> {
    remark.filter(|remark| !remark.is_empty())
}

/// A name in the server's own quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as the server reads it.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
