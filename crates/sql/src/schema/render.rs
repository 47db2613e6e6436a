//! Rendering of a schema as text.

use super::{Column, Table, TableKind};
use crate::Dialect;

/// Renders a table as a CREATE TABLE statement for people and models.
pub fn render_ddl(table: &Table, dialect: &Dialect) -> String {
    render_ddl_with_comments(table, dialect, &|_| None, None)
}

/// Renders a table like [`render_ddl`], with SQL comments after some columns and one at the end.
pub fn render_ddl_with_comments(
    table: &Table,
    dialect: &Dialect,
    remark: &dyn Fn(&Column) -> Option<String>,
    last: Option<&str>,
) -> String {
    let name = |name: &String| dialect.quote_identifier(name);
    let names = |columns: &[String]| columns.iter().map(name).collect::<Vec<_>>().join(", ");
    let full_name = match &table.schema {
        Some(schema) => format!("{}.{}", name(schema), name(&table.name)),
        None => name(&table.name),
    };
    let mut items: Vec<String> = Vec::new();
    let mut remarks: Vec<Option<String>> = Vec::new();
    for column in &table.columns {
        let null = if column.nullable { "" } else { " NOT NULL" };
        let line =
            format!("{} {}", name(&column.name), column.type_name.split_whitespace().collect::<Vec<_>>().join(" "));
        items.push(format!("{}{null}", line.trim_end()));
        remarks.push(remark(column));
    }
    if !table.primary_key.is_empty() {
        items.push(format!("PRIMARY KEY ({})", names(&table.primary_key)));
    }
    items.extend(table.unique.iter().map(|columns| format!("UNIQUE ({})", names(columns))));
    // Inferred keys are not declared in the database; a reader of this DDL infers them again.
    for key in table.foreign_keys.iter().filter(|key| !key.inferred) {
        let (columns, references) = (names(&key.columns), names(&key.references));
        items.push(format!("FOREIGN KEY ({columns}) REFERENCES {} ({references})", name(&key.table)));
    }
    let kind = match table.kind {
        TableKind::Table => "",
        // The definition of the view is unknown, only its columns are.
        TableKind::View => "-- a view\n",
    };
    let mut body = String::new();
    for (i, item) in items.iter().enumerate() {
        let comma = if i + 1 < items.len() { "," } else { "" };
        let remark =
            remarks.get(i).and_then(Option::as_ref).map(|r| format!(" -- {}", one_line(r))).unwrap_or_default();
        body.push_str(&format!("  {item}{comma}{remark}\n"));
    }
    if let Some(last) = last {
        body.push_str(&format!("  -- {}\n", one_line(last)));
    }
    if body.is_empty() {
        body.push_str("  \n");
    }
    format!("{kind}CREATE TABLE {full_name} (\n{body});\n")
}

/// Joins a text into one line, because an SQL comment ends at the line break.
fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}
