//! Reads the tables and columns of a catalog, which has no keys.

use querymend_sql::schema::{Column, Table, TableKind};
use querymend_sql::{Cell, Schema};

use super::settings::TrinoSettings;
use crate::Error;

/// Returns a query for the columns of all tables.
///
/// Its columns are schema, table, kind, table comment, column, type, nullability and column
/// comment. The filters on catalog and schema are pushed down to the connector, which lists nothing
/// else. Comments are in a system catalog, which not every user may read.
pub(super) fn columns_query(settings: &TrinoSettings, with_comments: bool) -> String {
    let catalog = quote_identifier(&settings.catalog);
    let within = |name: &str| match &settings.schema {
        Some(schema) => format!("{name} = {}", quote_literal(&schema.to_lowercase())),
        None => format!("{name} <> 'information_schema'"),
    };
    let this = quote_literal(&settings.catalog.to_lowercase());
    let tables = format!(
        "SELECT table_schema AS s, table_name AS n, table_type AS k FROM {catalog}.information_schema.tables WHERE {}",
        within("table_schema")
    );
    // Presto stores comments with the columns, and has none for tables.
    let presto = settings.flavor.scheme == "presto";
    if presto || !with_comments {
        let about = if presto && with_comments { "c.comment" } else { "NULL" };
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

/// Builds the schema from the result of [`columns_query`].
pub(super) fn build_schema(rows: Vec<Vec<Cell>>, settings: &TrinoSettings) -> Result<Schema, Error> {
    let mut tables: Vec<Table> = Vec::new();
    let mut of: Option<(String, String)> = None;
    for row in rows {
        let mut cells = row.into_iter().map(to_text);
        let mut next = || cells.next().flatten();
        let (Some(schema), Some(name), kind, remark) = (next(), next(), next(), next()) else { continue };
        let (Some(column), Some(type_name), nullable, about) = (next(), next(), next(), next()) else { continue };
        let this = (schema, name);
        if of.as_ref() != Some(&this) {
            let kind = if kind.as_deref() == Some("VIEW") { TableKind::View } else { TableKind::Table };
            let (schema, name) = this.clone();
            // Unqualified names are resolved in the schema of the address.
            let schema = settings.schema.is_none().then_some(schema);
            tables.push(Table { schema, name, kind, comment: non_empty(remark), ..Table::default() });
            of = Some(this);
        }
        if let Some(table) = tables.last_mut() {
            let mut column = Column::new(column, type_name);
            column.nullable = nullable.as_deref() != Some("NO");
            column.comment = non_empty(about);
            table.columns.push(column);
        }
    }
    Schema::new(tables).map_err(|error| {
        Error::unavailable(
            format!("the schema of {} cannot be read: {error}", settings.name),
            "information_schema has unexpected content; name one schema of the catalog in the address",
        )
    })
}

fn to_text(cell: Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

fn non_empty(remark: Option<String>) -> Option<String> {
    remark.filter(|remark| !remark.is_empty())
}

/// Quotes an identifier.
pub(super) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a string literal.
pub(super) fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
