//! Tables with commas: reading them with the lines their records begin on, and writing them.

/// One record and the line that it begins on, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line.
    pub line: usize,
    /// The cells.
    pub cells: Vec<String>,
}

/// Reads a table. Cells may be quoted, and quoted cells may hold commas, quotes written twice and line ends.
///
/// The error is the line where a quote was opened and never closed.
pub fn read(text: &str) -> Result<Vec<Entry>, usize> {
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
                finish(&mut entries, &mut cells, &mut cell, began);
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
    finish(&mut entries, &mut cells, &mut cell, began);
    Ok(entries)
}

/// Empty lines are no records.
fn finish(entries: &mut Vec<Entry>, cells: &mut Vec<String>, cell: &mut String, line: usize) {
    if cells.is_empty() && cell.is_empty() {
        return;
    }
    cells.push(std::mem::take(cell));
    entries.push(Entry { line, cells: std::mem::take(cells) });
}

/// One line of a table, with its line end.
pub fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = cells.into_iter().map(cell).collect();
    quoted.join(",") + "\n"
}

fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let cells = ["plain", "a,b", "say \"hi\"", "two\nlines", "", "ünï"];
        let text = line(["h1", "h2", "h3", "h4", "h5", "h6"]) + &line(cells) + &line(cells);
        let read = read(&text).unwrap();
        assert_eq!(read.iter().map(|e| e.line).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(read[2].cells, cells);
    }

    #[test]
    fn odd_files_are_read_too() {
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
