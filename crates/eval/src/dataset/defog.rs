//! Format of defog's sql-eval: CSV with `db_name`, `query_category`, `query`, `question`,
//! `instructions`. A cell may contain several gold queries, separated by semicolons.

use std::path::Path;

use anyhow::Result;

use super::{DatabaseRef, DatasetContents, DatasetFormat, RawCase};
use crate::{EvalError, csv};

const REQUIRED_COLUMNS: [&str; 3] = ["db_name", "question", "query"];

/// Returns whether a line is the header of this format.
pub fn is_header(line: &str) -> bool {
    let names: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    names.contains(&"db_name") && names.contains(&"question")
}

pub fn read(path: &Path, text: &str) -> Result<DatasetContents> {
    let shown = path.display();
    let table = csv::read(text).map_err(|line| {
        EvalError::anyhow(
            format!("`{shown}`, line {line}: a quote is opened and never closed"),
            "quotes inside a quoted cell are written twice",
        )
    })?;
    let mut rows = table.iter();
    let head = rows.next().map(|head| head.cells.as_slice()).unwrap_or_default();
    let column = |name: &str| head.iter().position(|cell| cell.trim() == name);
    if let Some(missing) = REQUIRED_COLUMNS.iter().find(|name| column(name).is_none()) {
        let what = format!("`{shown}`, line 1: the column `{missing}` is missing");
        return Err(EvalError::anyhow(what, format!("the columns are: {}", head.join(", "))));
    }
    let mut entries = Vec::new();
    for (index, row) in rows.enumerate() {
        let location = format!("`{shown}`, line {} (row {})", row.line, index + 1);
        if row.cells.len() != head.len() {
            let what = format!("{location}: {} cells, but the header has {}", row.cells.len(), head.len());
            return Err(EvalError::anyhow(what, "cells with commas or line ends are quoted"));
        }
        let maybe = |name: &str| {
            let text = column(name).and_then(|i| row.cells.get(i)).map(|cell| cell.trim().to_string());
            text.filter(|text| !text.is_empty())
        };
        let needed = |name: &str| {
            maybe(name).ok_or_else(|| {
                EvalError::anyhow(
                    format!("{location}: field `{name}` is empty"),
                    "each row has a database, a question and a query",
                )
            })
        };
        let database = match maybe("db_type") {
            Some(kind) if !kind.eq_ignore_ascii_case("sqlite") => DatabaseRef::Missing(format!(
                "its gold query is written for {kind}, and the databases beside it are SQLite files"
            )),
            _ => DatabaseRef::Named(needed("db_name")?),
        };
        entries.push(RawCase {
            id: (index + 1).to_string(),
            question: needed("question")?,
            evidence: maybe("instructions"),
            database,
            gold: split_queries(&needed("query")?),
            tags: maybe("query_category").into_iter().collect(),
            expect: None,
        });
    }
    Ok(DatasetContents { name: None, format: DatasetFormat::Defog, entries })
}

/// Splits a cell into queries at semicolons outside quotes.
fn split_queries(text: &str) -> Vec<String> {
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
    fn splits_queries_at_semicolons_outside_literals() {
        assert_eq!(
            split_queries("SELECT 1; SELECT ';';SELECT \"a;b\" ;"),
            ["SELECT 1", "SELECT ';'", "SELECT \"a;b\""]
        );
        assert_eq!(split_queries("SELECT 'it''s; so'"), ["SELECT 'it''s; so'"]);
        assert!(split_queries(" ; ").is_empty());
    }
}
