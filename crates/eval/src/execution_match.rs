//! Execution match: comparison of the rows of two queries.
//!
//! Rows are compared as multisets: duplicates count, order does not, unless
//! [`MatchOptions::ordered`] is set and the gold query has an ORDER BY. The order of columns
//! counts, their names do not. Numbers are compared by value to six decimal places, regardless of
//! type: 2 equals 2.0, and 1 equals true. A truncated result matches nothing, not even itself,
//! because the missing rows are unknown.

use std::collections::HashMap;

use querymend_sql::{Cell, Dialect, Rows, diff};

/// Options for comparing rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchOptions {
    /// Compare the order of rows if the gold query has a top-level ORDER BY.
    pub ordered: bool,
    /// Compare text that parses as a number by value, for databases that return decimals as text.
    /// SQLite has no decimals.
    pub text_numbers: bool,
}

impl MatchOptions {
    /// Returns whether the rows of an answer match those of a gold query.
    pub fn rows_match(&self, gold: &Rows, answer: &Rows, gold_sql: &str, dialect: &Dialect) -> bool {
        if gold.truncated || answer.truncated || gold.rows.len() != answer.rows.len() {
            return false;
        }
        let keys = |rows: &Rows| rows.rows.iter().map(|row| self.key(row)).collect::<Vec<_>>();
        let (gold, answer) = (keys(gold), keys(answer));
        if self.ordered && has_order_by(gold_sql, dialect) {
            return gold == answer;
        }
        let mut count: HashMap<&[CellKey], usize> = HashMap::new();
        for row in &gold {
            *count.entry(row).or_default() += 1;
        }
        answer.iter().all(|row| match count.get_mut(row.as_slice()) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        })
    }

    fn key(&self, row: &[Cell]) -> Vec<CellKey> {
        row.iter()
            .map(|cell| match cell {
                Cell::Null => CellKey::Null,
                Cell::Boolean(truth) => CellKey::Number(format_number(f64::from(u8::from(*truth)))),
                // Exact, even for integers that a float cannot represent.
                Cell::Integer(whole) => CellKey::Number(format!("{whole}.000000")),
                Cell::Number(number) => CellKey::Number(format_number(*number)),
                Cell::Decimal(text) => match text.parse::<f64>() {
                    Ok(number) if number.is_finite() => CellKey::Number(format_number(number)),
                    _ => CellKey::Text(text.clone()),
                },
                Cell::Text(text) => match text.trim().parse::<f64>() {
                    Ok(number) if self.text_numbers && number.is_finite() => CellKey::Number(format_number(number)),
                    _ => CellKey::Text(text.clone()),
                },
                Cell::Binary(bytes) => CellKey::Binary(bytes.clone()),
            })
            .collect()
    }
}

/// Normalized cell for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CellKey {
    Null,
    Number(String),
    Text(String),
    Binary(String),
}

fn format_number(number: f64) -> String {
    let text = format!("{number:.6}");
    if text == "-0.000000" { "0.000000".to_string() } else { text }
}

/// Returns whether a query has an ORDER BY outside all parentheses.
pub fn has_order_by(sql: &str, dialect: &Dialect) -> bool {
    let tokens = diff::normalized_tokens(sql, dialect);
    let mut depth = 0_i32;
    let mut before = "";
    for token in &tokens {
        match token.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            "BY" if depth == 0 && before == "ORDER" => return true,
            _ => {}
        }
        before = token;
    }
    false
}

#[cfg(test)]
mod tests {
    use querymend_sql::dialect::SQLITE;

    use super::*;

    fn rows<const N: usize>(rows: [Vec<Cell>; N]) -> Rows {
        Rows { columns: Vec::new(), rows: rows.to_vec(), truncated: false }
    }

    fn same(gold: &Rows, answer: &Rows) -> bool {
        MatchOptions::default().rows_match(gold, answer, "SELECT 1", &SQLITE)
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.into())
    }

    #[test]
    fn compares_rows_as_multisets() {
        let gold = rows([vec![Cell::Integer(1)], vec![Cell::Integer(2)], vec![Cell::Integer(2)]]);
        assert!(same(&gold, &rows([vec![Cell::Integer(2)], vec![Cell::Integer(1)], vec![Cell::Integer(2)]])));
        assert!(!same(&gold, &rows([vec![Cell::Integer(2)], vec![Cell::Integer(1)], vec![Cell::Integer(1)]])));
        assert!(!same(&gold, &rows([vec![Cell::Integer(1)], vec![Cell::Integer(2)]])));
        assert!(same(&rows([]), &rows([])));
    }

    #[test]
    fn compares_numbers_to_six_digits_and_text_exactly() {
        let number = |a: Cell, b: Cell| same(&rows([vec![a]]), &rows([vec![b]]));
        assert!(number(Cell::Integer(2), Cell::Number(2.0)));
        assert!(number(Cell::Boolean(true), Cell::Integer(1)));
        assert!(number(Cell::Number(0.1 + 0.2), Cell::Number(0.3)));
        assert!(number(Cell::Number(-0.000_000_01), Cell::Integer(0)));
        assert!(!number(Cell::Number(0.333_33), Cell::Number(0.333_34)));
        assert!(!number(Cell::Number(1.000_001), Cell::Number(1.0)));
        assert!(!number(text("2"), Cell::Integer(2)));
        assert!(!number(Cell::Null, Cell::Integer(0)));
        assert!(number(Cell::Null, Cell::Null));
        assert!(!number(text("ab"), Cell::Binary("ab".into())));
        assert!(!number(Cell::Integer(i64::MAX), Cell::Integer(i64::MAX - 1)));
        let decimals = MatchOptions { text_numbers: true, ..MatchOptions::default() };
        assert!(decimals.rows_match(&rows([vec![text("3.50")]]), &rows([vec![Cell::Number(3.5)]]), "", &SQLITE));
    }

    #[test]
    fn column_order_matters_and_truncated_never_match() {
        let (ab, ba) = (rows([vec![text("a"), text("b")]]), rows([vec![text("b"), text("a")]]));
        assert!(!same(&ab, &ba));
        assert!(!same(&ab, &rows([vec![text("a")]])));
        let cut = Rows { truncated: true, ..ab.clone() };
        assert!(!same(&cut, &cut) && !same(&ab, &cut) && !same(&cut, &ab));
    }

    #[test]
    fn row_order_matters_only_if_requested_and_specified() {
        let up = rows([vec![Cell::Integer(1)], vec![Cell::Integer(2)]]);
        let down = rows([vec![Cell::Integer(2)], vec![Cell::Integer(1)]]);
        let ordered = MatchOptions { ordered: true, ..MatchOptions::default() };
        assert!(!ordered.rows_match(&up, &down, "SELECT a FROM t order by a", &SQLITE));
        assert!(ordered.rows_match(&up, &down, "SELECT a FROM (SELECT a FROM t ORDER BY a)", &SQLITE));
        assert!(ordered.rows_match(&up, &down, "SELECT 'ORDER BY' FROM t -- ORDER BY a", &SQLITE));
        assert!(MatchOptions::default().rows_match(&up, &down, "SELECT a FROM t ORDER BY a", &SQLITE));
    }
}
