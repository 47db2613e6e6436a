//! Which type each column of a result has, for formats whose columns have one.
//!
//! Databases are asked for cells, and SQLite may have cells of any kind in one column. The type is therefore decided from the cells,
//! once and for all pages of a result, so that pages can be put together.

use std::borrow::Cow;

use querymend_sql::{Cell, Rows};

/// The type of a column. Every one of them also holds NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Boolean,
    /// Whole numbers of 64 bits.
    Integer,
    /// Floats of 64 bits.
    Float,
    /// Bytes.
    Binary,
    /// Text: also decimal numbers, digit by digit, dates and times as the database writes them, cells of several kinds, and NULL alone.
    Text,
}

/// The types of all columns.
pub fn kinds(rows: &Rows) -> Vec<Kind> {
    (0..rows.columns.len()).map(|place| kind(rows, place)).collect()
}

fn kind(rows: &Rows, place: usize) -> Kind {
    let mut so_far = None;
    let mut exact = true;
    for cell in rows.rows.iter().filter_map(|row| row.get(place)) {
        let own = match cell {
            Cell::Null => continue,
            Cell::Boolean(_) => Kind::Boolean,
            Cell::Integer(number) => {
                exact &= is_exactly_a_float(*number);
                Kind::Integer
            }
            Cell::Number(_) => Kind::Float,
            Cell::Binary(digits) if bytes(digits).is_some() => Kind::Binary,
            Cell::Decimal(_) | Cell::Text(_) | Cell::Binary(_) => Kind::Text,
        };
        so_far = match (so_far, own) {
            (None, own) => Some(own),
            (Some(known), own) if known == own => Some(own),
            (Some(Kind::Integer | Kind::Float), Kind::Integer | Kind::Float) => Some(Kind::Float),
            _ => return Kind::Text,
        };
    }
    match so_far {
        // A whole number that no float is would silently become another one.
        Some(Kind::Float) if !exact => Kind::Text,
        Some(kind) => kind,
        None => Kind::Text,
    }
}

fn is_exactly_a_float(number: i64) -> bool {
    // Wider than both, so that nothing is rounded on the way back.
    number as f64 as i128 == i128::from(number)
}

/// A cell of a column of floats.
pub fn float(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(number) => Some(*number as f64),
        Cell::Number(number) => Some(*number),
        _ => None,
    }
}

/// A cell of a column of whole numbers.
pub fn integer(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Integer(number) => Some(*number),
        _ => None,
    }
}

/// A cell of a column of truths.
pub fn boolean(cell: &Cell) -> Option<bool> {
    match cell {
        Cell::Boolean(value) => Some(*value),
        _ => None,
    }
}

/// A cell of a column of bytes.
pub fn binary(cell: &Cell) -> Option<Vec<u8>> {
    match cell {
        Cell::Binary(digits) => bytes(digits),
        _ => None,
    }
}

/// Any cell as text.
pub fn text(cell: &Cell) -> Option<Cow<'_, str>> {
    match cell {
        Cell::Null => None,
        Cell::Boolean(value) => Some(Cow::Owned(value.to_string())),
        Cell::Integer(number) => Some(Cow::Owned(number.to_string())),
        Cell::Number(number) => Some(Cow::Owned(number.to_string())),
        Cell::Decimal(text) | Cell::Text(text) | Cell::Binary(text) => Some(Cow::Borrowed(text)),
    }
}

/// The bytes that hexadecimal digits stand for.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

/// Rows that are written together.
const MOST_ROWS: usize = 8_192;
/// Bytes of text that are written together: columns of Arrow count them with 31 bits.
const MOST_BYTES: usize = 64 << 20;

/// The rows in parts of a size that every format holds.
pub fn parts(rows: &[Vec<Cell>]) -> impl Iterator<Item = &[Vec<Cell>]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let fits = |row: &&Vec<Cell>| {
            bytes += row.iter().map(text_bytes).sum::<usize>();
            bytes <= MOST_BYTES
        };
        let count = rest.iter().take(MOST_ROWS).take_while(fits).count().max(1);
        let (part, left) = rest.split_at(count);
        rest = left;
        Some(part)
    })
}

fn text_bytes(cell: &Cell) -> usize {
    match cell {
        Cell::Decimal(text) | Cell::Text(text) | Cell::Binary(text) => text.len(),
        Cell::Null | Cell::Boolean(_) | Cell::Integer(_) | Cell::Number(_) => 0,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A result with every shape that a column can have.
    pub fn hostile() -> Rows {
        let text = |text: &str| Cell::Text(text.into());
        let names = ["n", "n", "nothing", "mixed", "float", "huge", "yes", "bytes", "decimal", "", "ä\"b"];
        Rows {
            columns: names.map(String::from).to_vec(),
            rows: vec![
                vec![
                    Cell::Integer(i64::MIN),
                    text(""),
                    Cell::Null,
                    Cell::Integer(1),
                    Cell::Integer(1 << 53),
                    Cell::Integer(i64::MAX),
                    Cell::Boolean(true),
                    Cell::Binary("00ff".into()),
                    Cell::Decimal("12345678901234567890.10".into()),
                    text("a\u{0}b"),
                    Cell::Null,
                ],
                vec![
                    Cell::Null,
                    text("ü\n\""),
                    Cell::Null,
                    text("one"),
                    Cell::Number(0.5),
                    Cell::Number(0.5),
                    Cell::Null,
                    Cell::Binary(String::new()),
                    Cell::Integer(3),
                    Cell::Null,
                    text("x"),
                ],
                vec![
                    Cell::Integer(7),
                    Cell::Null,
                    Cell::Null,
                    Cell::Boolean(false),
                    Cell::Null,
                    Cell::Null,
                    Cell::Boolean(false),
                    Cell::Null,
                    Cell::Null,
                    text("z"),
                    Cell::Null,
                ],
            ],
            truncated: false,
        }
    }

    #[test]
    fn types_are_those_that_hold_every_cell() {
        use Kind::{Binary, Boolean, Float, Integer, Text};
        assert_eq!(
            kinds(&hostile()),
            [Integer, Text, Text, Text, Float, Text, Boolean, Binary, Text, Text, Text],
            "a number that no float is must not be made one"
        );
        assert!(is_exactly_a_float(i64::MIN) && !is_exactly_a_float(i64::MAX) && !is_exactly_a_float((1 << 53) + 1));
        assert_eq!((bytes("00fF"), bytes("0"), bytes("0g")), (Some(vec![0, 255]), None, None));
    }

    #[test]
    fn parts_hold_all_rows_and_none_too_many() {
        let rows = vec![vec![Cell::Integer(1)]; MOST_ROWS * 2 + 1];
        let sizes: Vec<usize> = parts(&rows).map(<[_]>::len).collect();
        assert_eq!(sizes, [MOST_ROWS, MOST_ROWS, 1]);
        let heavy = vec![vec![Cell::Text("x".repeat(MOST_BYTES / 2 + 1))]; 3];
        assert_eq!(parts(&heavy).map(<[_]>::len).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(parts(&[]).count(), 0);
    }
}
