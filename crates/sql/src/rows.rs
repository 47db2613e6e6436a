//! What a query gave back.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    /// NULL.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A float.
    Number(f64),
    /// A decimal number, digit by digit as the database wrote it. JSON gets a number where a float holds all of its digits,
    /// else a text, so that nothing is lost.
    Decimal(#[serde(serialize_with = "decimal")] String),
    /// Text, and every kind that is best shown as text (dates, times, JSON).
    Text(String),
    /// Bytes, written as lower-case hexadecimal.
    Binary(String),
}

/// Names of the columns and the rows, as far as the limits allowed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Rows {
    /// Names of the columns, in order; two may be the same.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// There were more rows than the limits allow.
    pub truncated: bool,
}

/// A float holds every decimal number of so many digits.
const DIGITS_OF_A_FLOAT: usize = 15;

fn decimal<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match text.parse::<f64>() {
        Ok(number) if digits <= DIGITS_OF_A_FLOAT && number.is_finite() => to.serialize_f64(number),
        _ => to.serialize_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_lose_no_digit_on_the_way_to_json() {
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
