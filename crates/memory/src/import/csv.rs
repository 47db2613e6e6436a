//! CSV parser and writer: comma-separated fields, quoted if they contain a comma, quote or line
//! break.

/// Record with the number of the line that it starts on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRow {
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
}

/// Parses all records and skips blank lines; an error includes its line number.
pub(super) fn parse_rows(text: &str) -> Result<Vec<CsvRow>, (usize, String)> {
    let mut all = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let began = line;
        let mut fields = Vec::new();
        loop {
            let (field, after) = if let Some(inside) = rest.strip_prefix('"') {
                let (field, after) =
                    parse_quoted(inside).ok_or((began, "a quote is opened and never closed".to_string()))?;
                line += field.matches('\n').count();
                (field, after)
            } else {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                (rest[..end].trim_end_matches('\r').to_string(), &rest[end..])
            };
            fields.push(field);
            let after =
                after.strip_prefix('\r').filter(|rest| rest.is_empty() || rest.starts_with('\n')).unwrap_or(after);
            if let Some(next) = after.strip_prefix(',') {
                rest = next;
            } else if let Some(next) = after.strip_prefix('\n') {
                (rest, line) = (next, line + 1);
                break;
            } else if after.is_empty() {
                rest = after;
                break;
            } else {
                return Err((line, "there is text after a closing quote".to_string()));
            }
        }
        if fields != [""] {
            all.push(CsvRow { line: began, fields });
        }
    }
    Ok(all)
}

/// Parses the rest of a quoted field; returns its value, with doubled quotes unescaped, and the
/// remaining text.
fn parse_quoted(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        field += before;
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Some((field, after)),
        }
    }
}

/// Formats a record, with all fields quoted.
pub(super) fn format_row(fields: &[&str]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
    fields.join(",") + "\n"
}
