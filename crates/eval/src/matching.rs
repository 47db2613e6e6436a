//! Whether two queries gave the same rows.
//!
//! Rows are compared as a multiset: how often each row comes counts, its place does not, unless that is asked for and the gold
//! query says in which order they come. The order of the columns counts, their names do not. Numbers compare as numbers, to six
//! digits after the point, whatever their type: 2 and 2.0 are the same, and so are 1 and true. A result that was cut
//! short equals nothing, not even itself, because nobody knows what was cut off.

use std::collections::HashMap;

use querymend_sql::{Cell, Dialect, Rows, diff};

/// What is compared beyond the rows themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Matching {
    /// The order of the rows counts where the gold query has an ORDER BY of its own.
    pub ordered: bool,
    /// Text that reads as a number is one. For databases that give decimals as text; SQLite has none.
    pub text_numbers: bool,
}

impl Matching {
    /// Whether the rows of an answer are those of a gold query.
    pub fn same(&self, gold: &Rows, answer: &Rows, gold_sql: &str, dialect: &Dialect) -> bool {
        if gold.truncated || answer.truncated || gold.rows.len() != answer.rows.len() {
            return false;
        }
        let keys = |rows: &Rows| rows.rows.iter().map(|row| self.key(row)).collect::<Vec<_>>();
        let (gold, answer) = (keys(gold), keys(answer));
        if self.ordered && has_order(gold_sql, dialect) {
            return gold == answer;
        }
        let mut count: HashMap<&[Key], usize> = HashMap::new();
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

    fn key(&self, row: &[Cell]) -> Vec<Key> {
        row.iter()
            .map(|cell| match cell {
                Cell::Null => Key::Null,
                Cell::Boolean(truth) => Key::Number(six_digits(f64::from(u8::from(*truth)))),
                // Exactly, also where a float could not hold it.
                Cell::Integer(whole) => Key::Number(format!("{whole}.000000")),
                Cell::Number(number) => Key::Number(six_digits(*number)),
                Cell::Decimal(text) => match text.parse::<f64>() {
                    Ok(number) if number.is_finite() => Key::Number(six_digits(number)),
                    _ => Key::Text(text.clone()),
                },
                Cell::Text(text) => match text.trim().parse::<f64>() {
                    Ok(number) if self.text_numbers && number.is_finite() => Key::Number(six_digits(number)),
                    _ => Key::Text(text.clone()),
                },
                Cell::Binary(bytes) => Key::Binary(bytes.clone()),
            })
            .collect()
    }
}

/// A cell as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Null,
    Number(String),
    Text(String),
    Binary(String),
}

fn six_digits(number: f64) -> String {
    let text = format!("{number:.6}");
    if text == "-0.000000" { "0.000000".to_string() } else { text }
}

/// Whether the rows of a query come in an order that the query itself asks for, outside of all brackets.
pub fn has_order(sql: &str, dialect: &Dialect) -> bool {
    let tokens = diff::normalise(sql, dialect);
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
        Matching::default().same(gold, answer, "SELECT 1", &SQLITE)
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.into())
    }

    #[test]
    fn q12_rows_are_a_multiset_in_any_order() {
        let gold = rows([vec![Cell::Integer(1)], vec![Cell::Integer(2)], vec![Cell::Integer(2)]]);
        assert!(same(&gold, &rows([vec![Cell::Integer(2)], vec![Cell::Integer(1)], vec![Cell::Integer(2)]])));
        assert!(!same(&gold, &rows([vec![Cell::Integer(2)], vec![Cell::Integer(1)], vec![Cell::Integer(1)]])));
        assert!(!same(&gold, &rows([vec![Cell::Integer(1)], vec![Cell::Integer(2)]])));
        assert!(same(&rows([]), &rows([])));
    }

    #[test]
    fn q12_numbers_are_numbers_to_six_digits_and_text_is_text() {
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
        let decimals = Matching { text_numbers: true, ..Matching::default() };
        assert!(decimals.same(&rows([vec![text("3.50")]]), &rows([vec![Cell::Number(3.5)]]), "", &SQLITE));
    }

    #[test]
    fn q12_columns_have_an_order_and_cut_results_equal_nothing() {
        let (ab, ba) = (rows([vec![text("a"), text("b")]]), rows([vec![text("b"), text("a")]]));
        assert!(!same(&ab, &ba));
        assert!(!same(&ab, &rows([vec![text("a")]])));
        let cut = Rows { truncated: true, ..ab.clone() };
        assert!(!same(&cut, &cut) && !same(&ab, &cut) && !same(&cut, &ab));
    }

    #[test]
    fn q12_order_counts_only_if_asked_for_and_given() {
        let up = rows([vec![Cell::Integer(1)], vec![Cell::Integer(2)]]);
        let down = rows([vec![Cell::Integer(2)], vec![Cell::Integer(1)]]);
        let ordered = Matching { ordered: true, ..Matching::default() };
        assert!(!ordered.same(&up, &down, "SELECT a FROM t order by a", &SQLITE));
        assert!(ordered.same(&up, &down, "SELECT a FROM (SELECT a FROM t ORDER BY a)", &SQLITE));
        assert!(ordered.same(&up, &down, "SELECT 'ORDER BY' FROM t -- ORDER BY a", &SQLITE));
        assert!(Matching::default().same(&up, &down, "SELECT a FROM t ORDER BY a", &SQLITE));
    }
}
