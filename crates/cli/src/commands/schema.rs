//! `querymend schema`: the tables a query is held against, as Querymend sees them.

use clap::{Args, ValueEnum};
use querymend::Config;
use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind};
use serde::Serialize;

use crate::against::{Against, NAMING};
use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::nearest::nearest;
use crate::out::Out;
use crate::render::one_line;
use crate::table;

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// As `--schema FILE.json` reads it
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
pub struct ShowSchema {
    #[command(flatten)]
    pub against: Against,
    /// How tables are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Only these tables
    pub tables: Vec<String>,
}

/// Does it.
pub fn run(show: &ShowSchema, out: &mut Out) -> Result<Exit, Failure> {
    let known = show.against.load(&Config::load()?, out)?;
    let Some(schema) = &known.schema else {
        return Err(Failure::new("no schema was named").hint(NAMING));
    };
    let tables = chosen(schema, &show.tables)?;
    match show.format {
        Format::Json => out.json(&pretty(&Tables { tables: &tables })?)?,
        Format::Text => describe(&tables, out)?,
        Format::Ddl => {
            for one in tables {
                out.rows(&querymend_sql::schema::as_ddl(one, known.dialect), table::Format::Csv)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Tables for people, one below the other.
pub fn describe(tables: &[&Table], out: &mut Out) -> Result<(), Failure> {
    for (i, table) in tables.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        out.write(format!("{gap}{}", as_text(table)).as_bytes())?;
    }
    if tables.is_empty() {
        out.note("there are no tables");
    }
    Ok(())
}

#[derive(Serialize)]
struct Tables<'s> {
    tables: &'s [&'s Table],
}

/// The tables of these names; all, if none is named.
pub fn chosen<'s>(schema: &'s Schema, names: &[String]) -> Result<Vec<&'s Table>, Failure> {
    if names.is_empty() {
        return Ok(schema.tables().iter().collect());
    }
    let mut tables = Vec::new();
    for name in names {
        let full = schema.tables().iter().find(|table| table.full_name().eq_ignore_ascii_case(name));
        let Some(table) = full.or_else(|| schema.table(name)) else {
            let hint = match nearest(name, schema.tables().iter().map(|table| table.name.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`querymend schema` without a name shows all tables".into(),
            };
            return Err(Failure::new(format!("there is no table `{name}`")).hint(hint));
        };
        tables.push(table);
    }
    Ok(tables)
}

fn as_text(table: &Table) -> String {
    let kind = match table.kind {
        TableKind::Table => "",
        TableKind::View => " (view)",
    };
    let mut text = format!("{}{kind}\n", one_line(&table.full_name()));
    if let Some(comment) = &table.comment {
        text.push_str(&format!("  -- {}\n", one_line(comment)));
    }
    let names = width(table.columns.iter().map(|c| c.name.as_str()));
    let types = width(table.columns.iter().map(|c| c.type_name.as_str()));
    for column in &table.columns {
        let line = format!(
            "  {:names$}  {:types$}  {}",
            one_line(&column.name),
            one_line(&column.type_name),
            marks(column, table)
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for key in table.foreign_keys.iter().filter(|key| key.columns.len() > 1) {
        text.push_str(&format!("  ({}) {}\n", key.columns.join(", "), points_at(key)));
    }
    for columns in table.unique.iter().filter(|columns| columns.len() > 1) {
        text.push_str(&format!("  ({}) unique\n", columns.join(", ")));
    }
    text
}

fn width<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.map(|name| one_line(name).chars().count()).max().unwrap_or_default()
}

/// What is to be known about a column besides its type.
fn marks(column: &Column, table: &Table) -> String {
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
        marks.push(points_at(key));
    }
    if !column.samples.is_empty() {
        marks.push(format!("e.g. {}", column.samples.join(", ")));
    }
    if let Some(comment) = &column.comment {
        marks.push(format!("-- {comment}"));
    }
    one_line(&marks.join(", "))
}

fn points_at(key: &ForeignKey) -> String {
    let columns =
        if key.references.len() == 1 { key.references[0].clone() } else { format!("({})", key.references.join(", ")) };
    let inferred = if key.inferred { " (inferred)" } else { "" };
    one_line(&format!("-> {}.{columns}{inferred}", key.table))
}
