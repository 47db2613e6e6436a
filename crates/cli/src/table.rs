//! Rows as people, scripts and spreadsheets read them.

use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use querymend_sql::{Cell, Rows};

use crate::commands::check::pretty;
use crate::failure::Failure;
use crate::render::one_line;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people; very long values are cut
    Table,
    /// One object: the whole answer where a question was asked, else columns, rows and truncated
    Json,
    /// Comma-separated, with a header; NULL is an empty field, empty text is ""
    Csv,
    /// A Markdown table
    Markdown,
}

/// Longer values are cut in a table.
const LONGEST_CELL: usize = 200;

/// The rows, ending with a line break. Whether a value had to be cut stands beside it.
pub fn write(rows: &Rows, format: Format) -> Result<(String, bool), Failure> {
    match format {
        Format::Table => Ok(as_table(rows)),
        Format::Json => Ok((pretty_rows(rows)?, false)),
        Format::Csv => Ok((as_csv(rows), false)),
        Format::Markdown => Ok((as_markdown(rows), false)),
    }
}

/// An object with a row on each line: long answers stay readable, and `jq` takes them as they are.
fn pretty_rows(rows: &Rows) -> Result<String, Failure> {
    if rows.rows.is_empty() {
        return Ok(format!("{}\n", pretty(rows)?));
    }
    let json = |value: serde_json::Result<String>| {
        value.map_err(|error| Failure::new(format!("the rows cannot be written as JSON: {error}")))
    };
    let columns = json(serde_json::to_string(&rows.columns))?;
    let lines: Result<Vec<String>, Failure> =
        rows.rows.iter().map(|row| Ok(format!("    {}", json(serde_json::to_string(row))?))).collect();
    let lines = lines?.join(",\n");
    Ok(format!(
        "{{\n  \"columns\": {columns},\n  \"rows\": [\n{lines}\n  ],\n  \"truncated\": {}\n}}\n",
        rows.truncated
    ))
}

fn as_table(rows: &Rows) -> (String, bool) {
    let mut cut = false;
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(rows.columns.iter().map(|name| one_line(name)));
    for row in &rows.rows {
        table.add_row(row.iter().map(|cell| {
            let mut text = one_line(&words(cell));
            if let Some((end, _)) = text.char_indices().nth(LONGEST_CELL) {
                cut = true;
                text.truncate(end);
                text.push('…');
            }
            text
        }));
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        if rows
            .rows
            .iter()
            .all(|row| matches!(row.get(i), Some(Cell::Integer(_) | Cell::Number(_) | Cell::Decimal(_) | Cell::Null)))
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    (format!("{table}\n"), cut)
}

fn as_csv(rows: &Rows) -> String {
    let mut text = String::new();
    let mut line = |fields: Vec<String>| {
        text.push_str(&fields.join(","));
        text.push('\n');
    };
    line(rows.columns.iter().map(|name| field(name)).collect());
    for row in &rows.rows {
        line(row.iter().map(|cell| if *cell == Cell::Null { String::new() } else { field(&words(cell)) }).collect());
    }
    text
}

fn field(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

fn as_markdown(rows: &Rows) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let safe = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('|', "\\|");
        escaped.lines().map(one_line).collect::<Vec<_>>().join("<br>")
    };
    let mut text = line(rows.columns.iter().map(|name| safe(name)).collect());
    text.push_str(&line(rows.columns.iter().map(|_| "---".to_string()).collect()));
    for row in &rows.rows {
        text.push_str(&line(row.iter().map(|cell| safe(&words(cell))).collect()));
    }
    text
}

fn words(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".into(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        // `1.0`, not `1`: a float stays one.
        Cell::Number(value) => format!("{value:?}"),
        Cell::Decimal(value) | Cell::Text(value) | Cell::Binary(value) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Rows {
        Rows {
            columns: vec!["n".into(), "a,b".into()],
            rows: vec![
                vec![Cell::Integer(1), Cell::Text("say \"hi\"\nthere | \\n".into())],
                vec![Cell::Number(2.0), Cell::Null],
                vec![Cell::Null, Cell::Text(String::new())],
            ],
            truncated: false,
        }
    }

    #[test]
    fn csv_tells_null_from_empty_text_and_quotes_what_it_must() {
        assert_eq!(as_csv(&sample()), "n,\"a,b\"\n1,\"say \"\"hi\"\"\nthere | \\n\"\n2.0,\n,\"\"\n");
    }

    #[test]
    fn markdown_cells_cannot_break_the_table() {
        assert_eq!(
            as_markdown(&sample()),
            "| n | a,b |\n| --- | --- |\n| 1 | say \"hi\"<br>there \\| \\\\n |\n| 2.0 | NULL |\n| NULL |  |\n"
        );
    }

    #[test]
    fn tables_show_control_characters_and_cut_long_values() {
        let rows = Rows {
            columns: vec!["x".into()],
            rows: vec![vec![Cell::Text("\u{1b}[31m\n".into())], vec![Cell::Text("é".repeat(300))]],
            truncated: false,
        };
        let (text, cut) = as_table(&rows);
        assert!(cut && text.contains("\\u{1b}[31m\\n") && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains(&format!("{}…", "é".repeat(200))));
    }

    #[test]
    fn json_is_one_object_with_a_row_on_each_line() {
        let text = pretty_rows(&sample()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["rows"][1], serde_json::json!([2.0, null]));
        assert_eq!(text.lines().filter(|l| l.starts_with("    [")).count(), 3);
    }
}
