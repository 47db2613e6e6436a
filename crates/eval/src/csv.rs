//! CSV reader that tracks line numbers, and CSV writer.

/// CSV record with its line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRecord {
    /// 1-based number of the line on which the record starts.
    pub line: usize,
    /// Unquoted cells.
    pub cells: Vec<String>,
}

/// Parses CSV. Quoted cells may contain commas, doubled quotes and line breaks.
///
/// The error is the line number of an unclosed quote.
pub fn read(text: &str) -> Result<Vec<CsvRecord>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut entries = Vec::new();
    let mut cells: Vec<String> = Vec::new();
    let mut cell = String::new();
    let (mut line, mut began) = (1, 1);
    let mut quoted_since = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quoted_since) {
            ('"', Some(_)) if letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            ('"', Some(_)) => quoted_since = None,
            ('"', None) if cell.is_empty() => quoted_since = Some(line),
            (',', None) => cells.push(std::mem::take(&mut cell)),
            ('\r', None) if letters.peek() == Some(&'\n') => {}
            ('\n', None) => {
                end_record(&mut entries, &mut cells, &mut cell, began);
                line += 1;
                began = line;
            }
            (other, _) => {
                line += usize::from(other == '\n');
                cell.push(other);
            }
        }
    }
    if let Some(line) = quoted_since {
        return Err(line);
    }
    end_record(&mut entries, &mut cells, &mut cell, began);
    Ok(entries)
}

/// Ends a record. Blank lines are not records.
fn end_record(entries: &mut Vec<CsvRecord>, cells: &mut Vec<String>, cell: &mut String, line: usize) {
    if cells.is_empty() && cell.is_empty() {
        return;
    }
    cells.push(std::mem::take(cell));
    entries.push(CsvRecord { line, cells: std::mem::take(cells) });
}

/// Formats a CSV row, including the line break.
pub fn format_row<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = cells.into_iter().map(format_cell).collect();
    quoted.join(",") + "\n"
}

fn format_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_round_trips() {
        let cells = ["plain", "a,b", "say \"hi\"", "two\nlines", "", "ünï"];
        let text = format_row(["h1", "h2", "h3", "h4", "h5", "h6"]) + &format_row(cells) + &format_row(cells);
        let read = read(&text).unwrap();
        assert_eq!(read.iter().map(|e| e.line).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(read[2].cells, cells);
    }

    #[test]
    fn reads_unusual_files() {
        let rows = |text: &str| read(text).map(|all| all.into_iter().map(|e| e.cells).collect::<Vec<_>>());
        assert_eq!(rows(""), Ok(vec![]));
        assert_eq!(
            rows("\u{feff}a,b\r\n\r\n1,2"),
            Ok(vec![vec!["a".into(), "b".into()], vec!["1".into(), "2".into()]])
        );
        assert_eq!(rows("a,\n"), Ok(vec![vec!["a".into(), String::new()]]));
        assert_eq!(rows("a\n1\n\"open\n"), Err(3));
    }
}
