//! A schema as text.

use super::{Table, TableKind};
use crate::Dialect;

/// A table as CREATE TABLE, the way a person or a model reads it best.
pub fn as_ddl(table: &Table, dialect: &Dialect) -> String {
    let name = |name: &String| dialect.quoted(name);
    let names = |columns: &[String]| columns.iter().map(name).collect::<Vec<_>>().join(", ");
    let full_name = match &table.schema {
        Some(schema) => format!("{}.{}", name(schema), name(&table.name)),
        None => name(&table.name),
    };
    let mut items: Vec<String> = Vec::new();
    for column in &table.columns {
        let null = if column.nullable { "" } else { " NOT NULL" };
        let line =
            format!("{} {}", name(&column.name), column.type_name.split_whitespace().collect::<Vec<_>>().join(" "));
        items.push(format!("{}{null}", line.trim_end()));
    }
    if !table.primary_key.is_empty() {
        items.push(format!("PRIMARY KEY ({})", names(&table.primary_key)));
    }
    items.extend(table.unique.iter().map(|columns| format!("UNIQUE ({})", names(columns))));
    // Inferred keys are not declared anywhere; whoever reads this infers them again.
    for key in table.foreign_keys.iter().filter(|key| !key.inferred) {
        let (columns, references) = (names(&key.columns), names(&key.references));
        items.push(format!("FOREIGN KEY ({columns}) REFERENCES {} ({references})", name(&key.table)));
    }
    let kind = match table.kind {
        TableKind::Table => "",
        // What the view computes is not known, only the columns it gives.
        TableKind::View => "-- a view\n",
    };
    format!("{kind}CREATE TABLE {full_name} (\n  {}\n);\n", items.join(",\n  "))
}
