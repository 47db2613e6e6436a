//! `querymend schema`: prints the schema that queries are checked against.

use clap::{Args, ValueEnum};
use querymend::Config;
use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind};
use serde::Serialize;

use crate::args::schema_source::{NO_SCHEMA_HINT, SchemaArgs};
use crate::did_you_mean::closest_name;
use crate::error::{CliError, ExitStatus};
use crate::output::json::to_pretty_json;
use crate::output::text::one_line;
use crate::output::{Out, table};

/// Output format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaFormat {
    /// Text, for people
    Text,
    /// JSON, as read by `--schema FILE.json`
    Json,
    /// CREATE TABLE statements
    Ddl,
}

/// Show the tables, columns and keys of a database or schema file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend schema --db shop.db
  querymend schema --db shop.db orders customers
  querymend schema --db shop.db --format json > shop.json")]
pub struct SchemaCommand {
    #[command(flatten)]
    pub schema_args: SchemaArgs,
    /// Output format of tables
    #[arg(long, value_enum, default_value_t = SchemaFormat::Text)]
    pub format: SchemaFormat,
    /// Only these tables
    pub tables: Vec<String>,
}

/// Runs `querymend schema`.
pub fn run(show: &SchemaCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let loaded = show.schema_args.load(&Config::load()?, out)?;
    let Some(schema) = &loaded.schema else {
        return Err(CliError::new("no schema was named").hint(NO_SCHEMA_HINT));
    };
    let tables = select_tables(schema, &show.tables)?;
    match show.format {
        SchemaFormat::Json => out.json(&to_pretty_json(&SchemaJson { tables: &tables })?)?,
        SchemaFormat::Text => write_tables(&tables, out)?,
        SchemaFormat::Ddl => {
            for one in tables {
                out.rows(&querymend_sql::schema::render_ddl(one, loaded.dialect), table::ResultFormat::Csv)?;
            }
        }
    }
    Ok(ExitStatus::Success)
}

/// Writes tables as text, separated by blank lines.
pub fn write_tables(tables: &[&Table], out: &mut Out) -> Result<(), CliError> {
    for (i, table) in tables.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        out.write(format!("{gap}{}", render_table(table)).as_bytes())?;
    }
    if tables.is_empty() {
        out.note("there are no tables");
    }
    Ok(())
}

#[derive(Serialize)]
struct SchemaJson<'s> {
    tables: &'s [&'s Table],
}

/// Returns the tables with these names, or all tables if `names` is empty.
pub fn select_tables<'s>(schema: &'s Schema, names: &[String]) -> Result<Vec<&'s Table>, CliError> {
    if names.is_empty() {
        return Ok(schema.tables().iter().collect());
    }
    let mut tables = Vec::new();
    for name in names {
        let full = schema.tables().iter().find(|table| table.full_name().eq_ignore_ascii_case(name));
        let Some(table) = full.or_else(|| schema.table(name)) else {
            let hint = match closest_name(name, schema.tables().iter().map(|table| table.name.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`querymend schema` without a name shows all tables".into(),
            };
            return Err(CliError::new(format!("there is no table `{name}`")).hint(hint));
        };
        tables.push(table);
    }
    Ok(tables)
}

fn render_table(table: &Table) -> String {
    let kind = match table.kind {
        TableKind::Table => "",
        TableKind::View => " (view)",
    };
    let mut text = format!("{}{kind}\n", one_line(&table.full_name()));
    if let Some(comment) = &table.comment {
        text.push_str(&format!("  -- {}\n", one_line(comment)));
    }
    let names = max_width(table.columns.iter().map(|c| c.name.as_str()));
    let types = max_width(table.columns.iter().map(|c| c.type_name.as_str()));
    for column in &table.columns {
        let line = format!(
            "  {:names$}  {:types$}  {}",
            one_line(&column.name),
            one_line(&column.type_name),
            column_notes(column, table)
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for key in table.foreign_keys.iter().filter(|key| key.columns.len() > 1) {
        text.push_str(&format!("  ({}) {}\n", key.columns.join(", "), foreign_key_label(key)));
    }
    for columns in table.unique.iter().filter(|columns| columns.len() > 1) {
        text.push_str(&format!("  ({}) unique\n", columns.join(", ")));
    }
    text
}

fn max_width<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.map(|name| one_line(name).chars().count()).max().unwrap_or_default()
}

/// Returns the keys, constraints, samples and comment of a column.
fn column_notes(column: &Column, table: &Table) -> String {
    let is = |name: &String| *name == column.name;
    let mut marks = Vec::new();
    if table.primary_key.iter().any(is) {
        marks.push("key".to_string());
    } else if !column.nullable {
        marks.push("not null".to_string());
    }
    if table.unique.iter().any(|columns| matches!(columns.as_slice(), [only] if is(only))) {
        marks.push("unique".to_string());
    }
    for key in table.foreign_keys.iter().filter(|key| matches!(key.columns.as_slice(), [only] if is(only))) {
        marks.push(foreign_key_label(key));
    }
    if !column.samples.is_empty() {
        marks.push(format!("e.g. {}", column.samples.join(", ")));
    }
    if let Some(comment) = &column.comment {
        marks.push(format!("-- {comment}"));
    }
    one_line(&marks.join(", "))
}

fn foreign_key_label(key: &ForeignKey) -> String {
    let columns =
        if key.references.len() == 1 { key.references[0].clone() } else { format!("({})", key.references.join(", ")) };
    let inferred = if key.inferred { " (inferred)" } else { "" };
    one_line(&format!("-> {}.{columns}{inferred}", key.table))
}
