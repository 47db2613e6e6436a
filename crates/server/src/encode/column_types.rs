//! Inference of column types, for formats with typed columns.
//!
//! Engines return untyped cells, and SQLite may mix types in one column. Types are therefore
//! inferred from the cells, once for all pages of a result, so that pages can be concatenated.

use std::borrow::Cow;

use querymend_sql::{Cell, Rows};

/// Type of a column. Every type is nullable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Boolean.
    Boolean,
    /// 64-bit signed integer.
    Integer,
    /// 64-bit float.
    Float,
    /// Byte string.
    Binary,
    /// Text. Also used for exact decimals, dates and times as the database formats them, columns of
    /// mixed types, and columns that are entirely NULL.
    Text,
}

/// Infers the types of all columns.
pub fn column_types(rows: &Rows) -> Vec<ColumnType> {
    (0..rows.columns.len()).map(|index| column_type(rows, index)).collect()
}

fn column_type(rows: &Rows, index: usize) -> ColumnType {
    let mut so_far = None;
    let mut exact = true;
    for cell in rows.rows.iter().filter_map(|row| row.get(index)) {
        let own = match cell {
            Cell::Null => continue,
            Cell::Boolean(_) => ColumnType::Boolean,
            Cell::Integer(number) => {
                exact &= is_exact_float(*number);
                ColumnType::Integer
            }
            Cell::Number(_) => ColumnType::Float,
            Cell::Binary(digits) if decode_hex(digits).is_some() => ColumnType::Binary,
            Cell::Decimal(_) | Cell::Text(_) | Cell::Binary(_) => ColumnType::Text,
        };
        so_far = match (so_far, own) {
            (None, own) => Some(own),
            (Some(known), own) if known == own => Some(own),
            (Some(ColumnType::Integer | ColumnType::Float), ColumnType::Integer | ColumnType::Float) => {
                Some(ColumnType::Float)
            }
            _ => return ColumnType::Text,
        };
    }
    match so_far {
        // An integer that has no exact float representation would silently change its value.
        Some(ColumnType::Float) if !exact => ColumnType::Text,
        Some(kind) => kind,
        None => ColumnType::Text,
    }
}

fn is_exact_float(number: i64) -> bool {
    // `i128` holds both ranges, so the conversion back does not round.
    number as f64 as i128 == i128::from(number)
}

/// Returns the value of a cell in a float column.
pub fn float(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(number) => Some(*number as f64),
        Cell::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns the value of a cell in an integer column.
pub fn integer(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Integer(number) => Some(*number),
        _ => None,
    }
}

/// Returns the value of a cell in a boolean column.
pub fn boolean(cell: &Cell) -> Option<bool> {
    match cell {
        Cell::Boolean(value) => Some(*value),
        _ => None,
    }
}

/// Returns the value of a cell in a binary column.
pub fn binary(cell: &Cell) -> Option<Vec<u8>> {
    match cell {
        Cell::Binary(digits) => decode_hex(digits),
        _ => None,
    }
}

/// Returns any cell as text; `None` for NULL.
pub fn text(cell: &Cell) -> Option<Cow<'_, str>> {
    match cell {
        Cell::Null => None,
        Cell::Boolean(value) => Some(Cow::Owned(value.to_string())),
        Cell::Integer(number) => Some(Cow::Owned(number.to_string())),
        Cell::Number(number) => Some(Cow::Owned(number.to_string())),
        Cell::Decimal(text) | Cell::Text(text) | Cell::Binary(text) => Some(Cow::Borrowed(text)),
    }
}

/// Decodes a string of hexadecimal digits.
fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

/// Maximum number of rows in a batch.
const MAX_BATCH_ROWS: usize = 8_192;
/// Maximum number of text bytes in a batch. Arrow uses 31-bit offsets in text columns.
const MAX_BATCH_BYTES: usize = 64 << 20;

/// Splits rows into batches that every format can hold.
pub fn batches(rows: &[Vec<Cell>]) -> impl Iterator<Item = &[Vec<Cell>]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut bytes = 0;
        let fits = |row: &&Vec<Cell>| {
            bytes += row.iter().map(text_bytes).sum::<usize>();
            bytes <= MAX_BATCH_BYTES
        };
        let count = rest.iter().take(MAX_BATCH_ROWS).take_while(fits).count().max(1);
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
pub(crate) mod tests {
    use super::*;

    /// Returns a result that covers every column type and edge case.
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
    fn column_types_hold_every_cell() {
        use ColumnType::{Binary, Boolean, Float, Integer, Text};
        assert_eq!(
            column_types(&hostile()),
            [Integer, Text, Text, Text, Float, Text, Boolean, Binary, Text, Text, Text],
            "a number that no float is must not be made one"
        );
        assert!(is_exact_float(i64::MIN) && !is_exact_float(i64::MAX) && !is_exact_float((1 << 53) + 1));
        assert_eq!((decode_hex("00fF"), decode_hex("0"), decode_hex("0g")), (Some(vec![0, 255]), None, None));
    }

    #[test]
    fn batches_cover_all_rows_within_limits() {
        let rows = vec![vec![Cell::Integer(1)]; MAX_BATCH_ROWS * 2 + 1];
        let sizes: Vec<usize> = batches(&rows).map(<[_]>::len).collect();
        assert_eq!(sizes, [MAX_BATCH_ROWS, MAX_BATCH_ROWS, 1]);
        let heavy = vec![vec![Cell::Text("x".repeat(MAX_BATCH_BYTES / 2 + 1))]; 3];
        assert_eq!(batches(&heavy).map(<[_]>::len).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(batches(&[]).count(), 0);
    }
}
