//! Converts values of the server to cells.

use mysql_async::consts::ColumnType;
use mysql_async::{Column, Value};
use querymend_net::to_hex;
use querymend_sql::Cell;

/// Id of the `binary` character set.
const BINARY_CHARSET: u16 = 63;

/// Converts a value to a cell. TINYINT(1) remains an integer, because MySQL has no boolean type.
pub(super) fn to_cell(value: Value, column: &Column) -> Cell {
    match value {
        Value::NULL => Cell::Null,
        Value::Int(number) => Cell::Integer(number),
        Value::UInt(number) => unsigned_to_cell(number),
        // Through its shortest decimal representation: 0.1 remains 0.1.
        Value::Float(number) => Cell::Number(number.to_string().parse().unwrap_or(f64::from(number))),
        Value::Double(number) => Cell::Number(number),
        Value::Date(year, month, day, hour, minute, second, micro) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            if column.column_type() == ColumnType::MYSQL_TYPE_DATE {
                return Cell::Text(date);
            }
            Cell::Text(format!("{date} {hour:02}:{minute:02}:{second:02}{}", format_fraction(micro)))
        }
        // A TIME is a duration that may exceed a day or be negative.
        Value::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let (sign, hours) = (if is_negative { "-" } else { "" }, u64::from(days) * 24 + u64::from(hours));
            Cell::Text(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{}", format_fraction(micros)))
        }
        Value::Bytes(bytes) => bytes_to_cell(bytes, column),
    }
}

fn bytes_to_cell(bytes: Vec<u8>, column: &Column) -> Cell {
    let text = |bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(not) => String::from_utf8_lossy(not.as_bytes()).into_owned(),
    };
    match column.column_type() {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => Cell::Decimal(text(bytes)),
        // Up to 64 bits, big-endian.
        ColumnType::MYSQL_TYPE_BIT if bytes.len() <= 8 => {
            unsigned_to_cell(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        }
        ColumnType::MYSQL_TYPE_JSON => Cell::Text(compact_json(&text(bytes))),
        ColumnType::MYSQL_TYPE_GEOMETRY => Cell::Binary(to_hex(&bytes)),
        _ if column.character_set() == BINARY_CHARSET => Cell::Binary(to_hex(&bytes)),
        _ => Cell::Text(text(bytes)),
    }
}

fn unsigned_to_cell(number: u64) -> Cell {
    i64::try_from(number).map_or_else(|_| Cell::Decimal(number.to_string()), Cell::Integer)
}

/// Formats the fraction of a second without trailing zeros.
fn format_fraction(micros: u32) -> String {
    match micros {
        0 => String::new(),
        _ => format!(".{micros:06}").trim_end_matches('0').to_string(),
    }
}

/// Removes whitespace between JSON tokens. Parsing and serializing could lose digits.
fn compact_json(json: &str) -> String {
    let mut is_text = false;
    let mut is_escaped = false;
    let keep = |c: &char| {
        if is_escaped {
            is_escaped = false;
        } else if *c == '"' {
            is_text = !is_text;
        } else if is_text && *c == '\\' {
            is_escaped = true;
        }
        is_text || !c.is_ascii_whitespace()
    };
    json.chars().filter(keep).collect()
}

/// Returns an upper bound on the heap memory of a value's cell.
pub(super) fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len() * 2,
        Value::Date(..) | Value::Time(..) => 26,
        Value::NULL | Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: ColumnType, value: Value) -> Cell {
        to_cell(value, &Column::new(kind).with_character_set(45))
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.into())
    }

    #[test]
    fn formats_zero_dates_and_times() {
        use ColumnType::*;
        assert_eq!(of(MYSQL_TYPE_DATE, Value::Date(0, 0, 0, 0, 0, 0, 0)), text("0000-00-00"));
        assert_eq!(of(MYSQL_TYPE_DATETIME, Value::Date(0, 0, 0, 0, 0, 0, 0)), text("0000-00-00 00:00:00"));
        assert_eq!(of(MYSQL_TYPE_TIMESTAMP, Value::Date(2024, 2, 29, 1, 2, 3, 40)), text("2024-02-29 01:02:03.00004"));
        assert_eq!(of(MYSQL_TYPE_TIME, Value::Time(true, 34, 22, 59, 59, 500_000)), text("-838:59:59.5"));
    }

    #[test]
    fn numbers_keep_their_digits() {
        use ColumnType::*;
        assert_eq!(of(MYSQL_TYPE_LONGLONG, Value::UInt(u64::MAX)), Cell::Decimal("18446744073709551615".into()));
        assert_eq!(of(MYSQL_TYPE_FLOAT, Value::Float(0.1)), Cell::Number(0.1));
        assert_eq!(of(MYSQL_TYPE_BIT, Value::Bytes(vec![1, 2])), Cell::Integer(258));
        assert_eq!(of(MYSQL_TYPE_NEWDECIMAL, Value::Bytes(b"1.50".to_vec())), Cell::Decimal("1.50".into()));
    }

    #[test]
    fn compacts_json_whitespace_only() {
        let json = r#"{"a b": [1, 1.10, "x \" y, z"], "c": "\\"}"#;
        let shown = r#"{"a b":[1,1.10,"x \" y, z"],"c":"\\"}"#;
        assert_eq!(of(ColumnType::MYSQL_TYPE_JSON, Value::Bytes(json.into())), text(shown));
    }
}
