//! defog's sql-eval: CSV with `db_name`, `query_category`, `query`, `question`, `instructions`. Several right queries stand
//! in one cell, with semicolons between them.

use std::path::Path;

use anyhow::Result;

use super::{Contents, Entry, Format, Place};
use crate::{Trouble, csv};

const NEEDED: [&str; 3] = ["db_name", "question", "query"];

/// Whether a first line is the head of such a table.
pub fn is_header(line: &str) -> bool {
    let names: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    names.contains(&"db_name") && names.contains(&"question")
}

pub fn read(path: &Path, text: &str) -> Result<Contents> {
    let shown = path.display();
    let table = csv::read(text).map_err(|line| {
        Trouble::error(
            format!("`{shown}`, line {line}: a quote is opened and never closed"),
            "quotes inside a quoted cell are written twice",
        )
    })?;
    let mut rows = table.iter();
    let head = rows.next().map(|head| head.cells.as_slice()).unwrap_or_default();
    let column = |name: &str| head.iter().position(|cell| cell.trim() == name);
    if let Some(missing) = NEEDED.iter().find(|name| column(name).is_none()) {
        let what = format!("`{shown}`, line 1: the column `{missing}` is missing");
        return Err(Trouble::error(what, format!("the columns that are there: {}", head.join(", "))));
    }
    let mut entries = Vec::new();
    for (index, row) in rows.enumerate() {
        let place = format!("`{shown}`, line {} (row {})", row.line, index + 1);
        if row.cells.len() != head.len() {
            let what = format!("{place}: {} cells, but the head has {}", row.cells.len(), head.len());
            return Err(Trouble::error(what, "cells with commas or line ends are quoted"));
        }
        let maybe = |name: &str| {
            let text = column(name).and_then(|i| row.cells.get(i)).map(|cell| cell.trim().to_string());
            text.filter(|text| !text.is_empty())
        };
        let needed = |name: &str| {
            maybe(name).ok_or_else(|| {
                Trouble::error(
                    format!("{place}: field `{name}` is empty"),
                    "each row has a database, a question and a query",
                )
            })
        };
        let database = match maybe("db_type") {
            Some(kind) if !kind.eq_ignore_ascii_case("sqlite") => Place::Nowhere(format!(
                "its gold query is written for {kind}, and the databases beside it are SQLite files"
            )),
            _ => Place::Named(needed("db_name")?),
        };
        entries.push(Entry {
            id: (index + 1).to_string(),
            question: needed("question")?,
            evidence: maybe("instructions"),
            database,
            gold: split(&needed("query")?),
            tags: maybe("query_category").into_iter().collect(),
            expect: None,
        });
    }
    Ok(Contents { name: None, format: Format::Defog, entries })
}

/// The queries in a cell. A semicolon inside quotes does not end one.
fn split(text: &str) -> Vec<String> {
    let mut queries = vec![String::new()];
    let mut quote = None;
    for letter in text.chars() {
        match (letter, quote) {
            (';', None) => {
                queries.push(String::new());
                continue;
            }
            ('\'' | '"' | '`', None) => quote = Some(letter),
            (closing, Some(opening)) if closing == opening => quote = None,
            _ => {}
        }
        if let Some(query) = queries.last_mut() {
            query.push(letter);
        }
    }
    queries.into_iter().map(|query| query.trim().to_string()).filter(|query| !query.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_part_queries_but_not_texts() {
        assert_eq!(split("SELECT 1; SELECT ';';SELECT \"a;b\" ;"), ["SELECT 1", "SELECT ';'", "SELECT \"a;b\""]);
        assert_eq!(split("SELECT 'it''s; so'"), ["SELECT 'it''s; so'"]);
        assert!(split(" ; ").is_empty());
    }
}
