//! Summarizes the rows of an answer in one sentence without a model. Uses only facts from the rows.

use querymend_sql::{Cell, Rows};

/// Maximum number of rows whose values are listed.
const MAX_NAMED_ROWS: usize = 5;
/// Maximum number of columns that are listed.
const MAX_NAMED_COLUMNS: usize = 5;
/// Maximum length of a quoted value, in characters.
const MAX_VALUE_CHARS: usize = 60;

/// Returns one sentence about the rows of an answer.
pub fn sentence(rows: &Rows) -> String {
    let columns = rows.columns.as_slice();
    match rows.rows.as_slice() {
        [] => "Nothing was found.".into(),
        [row] if row.len() == 1 && matches!(row[0], Cell::Null) => "There is no value (NULL).".into(),
        [row] if row.len() == 1 && !is_named_column(&columns[0]) => format!("The answer is {}.", format_cell(&row[0])),
        [row] if row.len() <= MAX_NAMED_COLUMNS => {
            let named =
                columns.iter().zip(row).map(|(name, cell)| format!("{}: {}", display_name(name), format_cell(cell)));
            format!("{}.", named.collect::<Vec<_>>().join("; "))
        }
        few if few.len() <= MAX_NAMED_ROWS && columns.len() == 1 && !rows.truncated => {
            format!("{} rows: {}.", few.len(), join_with_and(few.iter().map(|row| format_cell(&row[0]))))
        }
        few if few.len() <= MAX_NAMED_ROWS && columns.len() == 2 && !rows.truncated => {
            let pairs = few.iter().map(|row| format!("{}: {}", format_cell(&row[0]), format_cell(&row[1])));
            format!("{} rows: {}.", few.len(), join_with_and(pairs))
        }
        many => {
            let count = if rows.truncated { format!("More than {}", many.len()) } else { many.len().to_string() };
            if columns.len() <= MAX_NAMED_COLUMNS {
                format!("{count} rows with {}.", join_with_and(columns.iter().map(|name| display_name(name))))
            } else {
                format!("{count} rows with {} columns.", columns.len())
            }
        }
    }
}

/// Returns whether a column has a proper name, and is not named after its expression.
fn is_named_column(column: &str) -> bool {
    column.chars().count() > 1 && column.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ' ')
}

/// Returns the name of a column for display, truncated if it is long.
fn display_name(column: &str) -> String {
    truncate(&column.replace('_', " "))
}

fn format_cell(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".into(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Number(value) => value.to_string(),
        Cell::Decimal(text) | Cell::Text(text) => truncate(text),
        Cell::Binary(_) => "(binary)".into(),
    }
}

fn truncate(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Joins items as `a, b and c`.
fn join_with_and(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Cell {
        Cell::Text(value.into())
    }

    #[test]
    fn summarizes_few_rows_by_value_and_many_by_count() {
        let many: Vec<Vec<Cell>> = (0..12).map(|n| vec![text("x"), Cell::Integer(n)]).collect();
        let check = |columns: &[&str], rows: Vec<Vec<Cell>>, truncated: bool, expected: &str| {
            let columns = columns.iter().map(ToString::to_string).collect();
            assert_eq!(sentence(&Rows { columns, rows, truncated }), expected);
        };
        check(&["name"], vec![], false, "Nothing was found.");
        check(&["count(*)"], vec![vec![Cell::Integer(60)]], false, "The answer is 60.");
        check(&["n"], vec![vec![Cell::Integer(60)]], false, "The answer is 60.");
        check(&["total_revenue"], vec![vec![Cell::Decimal("12.50".into())]], false, "total revenue: 12.50.");
        check(&["max(price)"], vec![vec![Cell::Null]], false, "There is no value (NULL).");
        check(&["name", "city"], vec![vec![text("Anna"), text("Berlin")]], false, "name: Anna; city: Berlin.");
        check(&["name"], vec![vec![text("A")], vec![text("B")], vec![text("C")]], false, "3 rows: A, B and C.");
        let pairs = vec![vec![text("A"), Cell::Integer(3)], vec![text("B"), Cell::Integer(1)]];
        check(&["city", "n"], pairs.clone(), false, "2 rows: A: 3 and B: 1.");
        check(&["city", "n"], pairs, true, "More than 2 rows with city and n.");
        check(&["city", "n"], many, false, "12 rows with city and n.");
        let wide: Vec<&str> = vec!["c"; 8];
        check(&wide, vec![vec![Cell::Null; 8]; 2], false, "2 rows with 8 columns.");
        let long = "word ".repeat(40);
        assert!(format_cell(&text(&long)).chars().count() <= MAX_VALUE_CHARS + 1);
    }
}
