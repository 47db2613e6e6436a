//! Tables as text: fields between commas, in quotes where they hold a comma, a quote or a line end.

/// A row, and the line on which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
}

/// All rows; blank lines are none. What is wrong comes with its line.
pub(super) fn records(text: &str) -> Result<Vec<Record>, (usize, String)> {
    let mut all = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let began = line;
        let mut fields = Vec::new();
        loop {
            let (field, after) = if let Some(inside) = rest.strip_prefix('"') {
                let (field, after) = quoted(inside).ok_or((began, "a quote is opened and never closed".to_string()))?;
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
                return Err((line, "there is text behind a closing quote".to_string()));
            }
        }
        if fields != [""] {
            all.push(Record { line: began, fields });
        }
    }
    Ok(all)
}

/// What stands inside quotes, and what follows. A quote that is written twice is one.
fn quoted(text: &str) -> Option<(String, &str)> {
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

/// One row as text.
pub(super) fn line(fields: &[&str]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
    fields.join(",") + "\n"
}
