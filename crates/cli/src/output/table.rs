//! Output formats of rows: table, JSON, CSV, Markdown.

use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use querymend_sql::{Cell, Rows};

use crate::error::CliError;
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, truncate_chars};

/// Output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResultFormat {
    /// Table, for people; very long values are truncated
    Table,
    /// Single object: the whole answer to a question, else columns, rows and truncated
    Json,
    /// Comma-separated, with a header; NULL is an empty field, empty text is ""
    Csv,
    /// Markdown table
    Markdown,
}

/// Maximum length of a value in a table, in characters.
const MAX_CELL_CHARS: usize = 200;

/// Renders rows, ending with a line break. Also returns whether a value was truncated.
pub fn render_rows(rows: &Rows, format: ResultFormat) -> Result<(String, bool), CliError> {
    match format {
        ResultFormat::Table => Ok(as_table(rows)),
        ResultFormat::Json => Ok((rows_to_json(rows)?, false)),
        ResultFormat::Csv => Ok((as_csv(rows), false)),
        ResultFormat::Markdown => Ok((as_markdown(rows), false)),
    }
}

/// Serializes rows as a JSON object with one row per line, so that long results stay readable.
fn rows_to_json(rows: &Rows) -> Result<String, CliError> {
    if rows.rows.is_empty() {
        return Ok(format!("{}\n", to_pretty_json(rows)?));
    }
    let json = |value: serde_json::Result<String>| {
        value.map_err(|error| CliError::new(format!("the rows cannot be written as JSON: {error}")))
    };
    let columns = json(serde_json::to_string(&rows.columns))?;
    let lines: Result<Vec<String>, CliError> =
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
            let mut text = one_line(&cell_text(cell));
            cut |= truncate_chars(&mut text, MAX_CELL_CHARS);
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
    line(rows.columns.iter().map(|name| csv_field(name)).collect());
    for row in &rows.rows {
        line(
            row.iter()
                .map(|cell| if *cell == Cell::Null { String::new() } else { csv_field(&cell_text(cell)) })
                .collect(),
        );
    }
    text
}

fn csv_field(text: &str) -> String {
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
        text.push_str(&line(row.iter().map(|cell| safe(&cell_text(cell))).collect()));
    }
    text
}

fn cell_text(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".into(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        // `1.0`, not `1`: a float must stay a float.
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
    fn csv_distinguishes_null_from_empty_text() {
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
    fn tables_escape_control_characters_and_cut_long_values() {
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
    fn json_is_one_object_with_a_row_per_line() {
        let text = rows_to_json(&sample()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["rows"][1], serde_json::json!([2.0, null]));
        assert_eq!(text.lines().filter(|l| l.starts_with("    [")).count(), 3);
    }
}
