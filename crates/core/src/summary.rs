//! The answer in words, without a model: what can be said of the rows as surely as the rows themselves say it.

use querymend_sql::{Cell, Rows};

/// Rows whose values are named one by one.
const MAX_NAMED_ROWS: usize = 5;
/// Columns of one row, or names of columns, that are named one by one.
const MAX_NAMED_COLUMNS: usize = 5;
/// The longest value that is quoted, in characters.
const MAX_VALUE: usize = 60;

/// Returns one sentence about the rows of an answer.
pub fn sentence(rows: &Rows) -> String {
    let columns = rows.columns.as_slice();
    match rows.rows.as_slice() {
        [] => "Nothing was found.".into(),
        [row] if row.len() == 1 && matches!(row[0], Cell::Null) => "There is no value (NULL).".into(),
        [row] if row.len() == 1 && !is_name(&columns[0]) => format!("The answer is {}.", value(&row[0])),
        [row] if row.len() <= MAX_NAMED_COLUMNS => {
            let named = columns.iter().zip(row).map(|(name, cell)| format!("{}: {}", plain(name), value(cell)));
            format!("{}.", named.collect::<Vec<_>>().join("; "))
        }
        few if few.len() <= MAX_NAMED_ROWS && columns.len() == 1 && !rows.truncated => {
            format!("{} rows: {}.", few.len(), list(few.iter().map(|row| value(&row[0]))))
        }
        few if few.len() <= MAX_NAMED_ROWS && columns.len() == 2 && !rows.truncated => {
            let pairs = few.iter().map(|row| format!("{}: {}", value(&row[0]), value(&row[1])));
            format!("{} rows: {}.", few.len(), list(pairs))
        }
        many => {
            let count = if rows.truncated { format!("More than {}", many.len()) } else { many.len().to_string() };
            if columns.len() <= MAX_NAMED_COLUMNS {
                format!("{count} rows with {}.", list(columns.iter().map(|name| plain(name))))
            } else {
                format!("{count} rows with {} columns.", columns.len())
            }
        }
    }
}

/// Whether a column was given a name, and is not called by its expression.
fn is_name(column: &str) -> bool {
    column.chars().count() > 1 && column.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ' ')
}

/// The name of a column as it is read aloud, cut where it is long.
fn plain(column: &str) -> String {
    clipped(&column.replace('_', " "))
}

fn value(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".into(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Number(value) => value.to_string(),
        Cell::Decimal(text) | Cell::Text(text) => clipped(text),
        Cell::Binary(_) => "(binary)".into(),
    }
}

fn clipped(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// `a, b and c`.
fn list(items: impl Iterator<Item = String>) -> String {
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
    fn few_rows_are_named_and_many_are_counted() {
        let many: Vec<Vec<Cell>> = (0..12).map(|n| vec![text("x"), Cell::Integer(n)]).collect();
        let check = |columns: &[&str], rows: Vec<Vec<Cell>>, truncated: bool, said: &str| {
            let columns = columns.iter().map(ToString::to_string).collect();
            assert_eq!(sentence(&Rows { columns, rows, truncated }), said);
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
        assert!(value(&text(&long)).chars().count() <= MAX_VALUE + 1);
    }
}
