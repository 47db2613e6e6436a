//! Result rows of a query.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Value of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    /// NULL.
    Null,
    /// Boolean.
    Boolean(bool),
    /// Integer.
    Integer(i64),
    /// Floating-point number.
    Number(f64),
    /// Decimal number with all digits that the database returned.
    ///
    /// Serialized as a number if a float can represent all of its digits, otherwise as a string.
    Decimal(#[serde(serialize_with = "decimal")] String),
    /// Text, and every type that is best shown as text (dates, times, JSON).
    Text(String),
    /// Bytes as lower-case hexadecimal.
    Binary(String),
}

/// Column names and rows of a result, up to the row limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Rows {
    /// Column names, in order; may contain duplicates.
    pub columns: Vec<String>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// `true` if the result had more rows than the limits allow.
    pub truncated: bool,
}

impl Rows {
    /// Returns whether there are no rows, or a single row with only NULL and zero.
    pub fn is_effectively_empty(&self) -> bool {
        match self.rows.as_slice() {
            [] => true,
            [row] => row.iter().all(|cell| matches!(cell, Cell::Null | Cell::Integer(0))),
            _ => false,
        }
    }
}

/// Maximum number of decimal digits that a float always represents exactly.
const MAX_FLOAT_DIGITS: usize = 15;

fn decimal<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match text.parse::<f64>() {
        Ok(number) if digits <= MAX_FLOAT_DIGITS && number.is_finite() => to.serialize_f64(number),
        _ => to.serialize_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serializes_decimals_to_json_without_losing_digits() {
        for (text, json) in [
            ("12.50", "12.5"),
            ("-0.25", "-0.25"),
            ("12345678901234567.89", "\"12345678901234567.89\""),
            ("NaN", "\"NaN\""),
        ] {
            assert_eq!(serde_json::to_string(&Cell::Decimal(text.into())).unwrap(), json);
        }
    }
}
