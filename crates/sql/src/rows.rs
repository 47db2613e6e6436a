//! What a query gave back.

use serde::Serialize;

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Text, and every kind that is best shown as text (decimals, dates).
    Text(String),
    /// Bytes, written as lower-case hexadecimal.
    Binary(String),
}

/// Names of the columns and the rows, as far as the limits allowed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rows {
    /// Names of the columns, in order; two may be the same.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// There were more rows than the limits allow.
    pub truncated: bool,
}
