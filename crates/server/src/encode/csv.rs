//! Rows as CSV (RFC 4180). NULL is an empty field, empty text is `""`.

use querymend_sql::{Cell, Rows};

/// Encodes rows with a header row.
pub fn encode(rows: &Rows) -> String {
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = String>| {
        out.push_str(&cells.collect::<Vec<_>>().join(","));
        out.push_str("\r\n");
    };
    line(&mut rows.columns.iter().map(|name| quote_field(name)));
    for row in &rows.rows {
        line(&mut row.iter().map(|cell| match cell {
            Cell::Null => String::new(),
            Cell::Boolean(value) => value.to_string(),
            Cell::Integer(value) => value.to_string(),
            Cell::Number(value) => value.to_string(),
            Cell::Decimal(value) => value.clone(),
            Cell::Text(value) | Cell::Binary(value) => quote_field(value),
        }));
    }
    out
}

fn quote_field(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']) && text.trim() == text;
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_distinguishes_null_from_empty_text() {
        let rows = Rows {
            columns: vec!["a".into(), "b,c".into()],
            rows: vec![
                vec![Cell::Null, Cell::Text(String::new())],
                vec![Cell::Integer(1), Cell::Text("x \"y\"".into())],
            ],
            truncated: false,
        };
        assert_eq!(encode(&rows), "a,\"b,c\"\r\n,\"\"\r\n1,\"x \"\"y\"\"\"\r\n");
    }
}
