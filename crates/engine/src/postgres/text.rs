//! Decodes PostgreSQL's text format.

use querymend_sql::Cell;
use tokio_postgres::types::{Kind, Type};

/// Converts text of a type to a cell.
pub(super) fn to_cell(text: &str, kind: &Type) -> Cell {
    let as_it_is = || Cell::Text(text.to_string());
    match *kind {
        Type::BOOL => Cell::Boolean(text == "t"),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => text.parse().map_or_else(|_| as_it_is(), Cell::Integer),
        Type::FLOAT4 | Type::FLOAT8 => text.parse().map_or_else(|_| as_it_is(), Cell::Number),
        Type::NUMERIC => Cell::Decimal(text.to_string()),
        Type::BYTEA => Cell::Binary(text.strip_prefix("\\x").unwrap_or(text).to_string()),
        Type::JSON | Type::JSONB => Cell::Text(compact_json(text)),
        Type::TIMESTAMPTZ | Type::TIMETZ => Cell::Text(complete_zone_offset(text)),
        // These are arrays, but not in array syntax.
        Type::INT2_VECTOR | Type::OID_VECTOR => as_it_is(),
        _ => match kind.kind() {
            Kind::Array(of) => array_to_json(text, of).map_or_else(as_it_is, Cell::Text),
            Kind::Domain(of) => to_cell(text, of),
            _ => as_it_is(),
        },
    }
}

/// Adds the minutes to a time zone offset such as `+00`.
fn complete_zone_offset(text: &str) -> String {
    let (moment, before_christ) = text.strip_suffix(" BC").map_or((text, ""), |moment| (moment, " BC"));
    let bytes = moment.as_bytes();
    let short = bytes.len() > 3 && matches!(bytes[bytes.len() - 3], b'+' | b'-') && bytes.contains(&b':');
    format!("{moment}{}{before_christ}", if short { ":00" } else { "" })
}

/// Removes whitespace between JSON tokens. Numbers keep all their digits.
pub(super) fn compact_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if quoted || !c.is_ascii_whitespace() {
            text.push(c);
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
    }
    text
}

/// Converts an array such as `{1,NULL,"a b"}` to JSON.
///
/// Supports nested arrays and bounds such as `[0:2]=`. Returns `None` if the syntax is invalid.
fn array_to_json(text: &str, of: &Type) -> Option<String> {
    let list = if text.starts_with('[') { text.split_once('=')?.1 } else { text };
    // The delimiter is a comma for all types except boxes, which contain commas.
    let comma = if *of == Type::BOX { ';' } else { ',' };
    let mut json = String::with_capacity(list.len() + 2);
    let mut rest = list.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '{' => json.push('['),
            '}' => json.push(']'),
            _ if c == comma => json.push(','),
            '"' => {
                let mut value = String::new();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => value.push(rest.next()?),
                        c => value.push(c),
                    }
                }
                push_json(&mut json, &to_cell(&value, of));
            }
            c => {
                let mut value = String::from(c);
                while let Some(&next) = rest.peek() {
                    if next == comma || next == '}' {
                        break;
                    }
                    value.push(next);
                    rest.next();
                }
                if value == "NULL" {
                    json.push_str("null");
                } else {
                    push_json(&mut json, &to_cell(&value, of));
                }
            }
        }
    }
    Some(json)
}

/// Appends a value as JSON. Numbers that JSON cannot represent become strings, and JSON values are
/// kept verbatim.
fn push_json(json: &mut String, cell: &Cell) {
    match cell {
        Cell::Null => json.push_str("null"),
        Cell::Boolean(truth) => json.push_str(if *truth { "true" } else { "false" }),
        Cell::Integer(number) => json.push_str(&number.to_string()),
        Cell::Number(number) if number.is_finite() => json.push_str(&serde_json::json!(number).to_string()),
        Cell::Number(number) if number.is_nan() => json.push_str(r#""NaN""#),
        Cell::Number(number) => json.push_str(if *number > 0.0 { r#""Infinity""# } else { r#""-Infinity""# }),
        Cell::Decimal(digits) if digits.ends_with(|c: char| c.is_ascii_digit()) => json.push_str(digits),
        Cell::Decimal(text) | Cell::Text(text) | Cell::Binary(text) => {
            json.push_str(&serde_json::Value::from(text.as_str()).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_arrays_to_json() {
        for (text, of, json) in [
            ("{}", Type::INT4, "[]"),
            ("{1,2,NULL}", Type::INT4, "[1,2,null]"),
            ("[0:1]={1,2}", Type::INT4, "[1,2]"),
            ("{{1,2},{3,NULL}}", Type::INT4, "[[1,2],[3,null]]"),
            (r#"{a,"b c","NULL","q\"\\",""}"#, Type::TEXT, r#"["a","b c","NULL","q\"\\",""]"#),
            ("{12345678901234567890.50,NaN}", Type::NUMERIC, r#"[12345678901234567890.50,"NaN"]"#),
            ("{(1,1),(0,0);(3,3),(2,2)}", Type::BOX, r#"["(1,1),(0,0)","(3,3),(2,2)"]"#),
            ("{t,f}", Type::BOOL, "[true,false]"),
            (r#"{"2024-02-29 11:14:15+00"}"#, Type::TIMESTAMPTZ, r#"["2024-02-29 11:14:15+00:00"]"#),
            ("{1.5,Infinity}", Type::FLOAT8, r#"[1.5,"Infinity"]"#),
        ] {
            assert_eq!(array_to_json(text, &of).as_deref(), Some(json), "{text}");
        }
        assert_eq!(array_to_json("{\"open", &Type::TEXT), None);
    }

    #[test]
    fn compacts_json_whitespace_only() {
        assert_eq!(compact_json(r#"{ "a b": [1.50,  "x \" y\\" , 2e3] }"#), r#"{"a b":[1.50,"x \" y\\",2e3]}"#);
    }

    #[test]
    fn adds_minutes_to_zone_offsets() {
        for (text, zoned_text) in [
            ("2024-02-29 11:14:15+00", "2024-02-29 11:14:15+00:00"),
            ("2024-02-29 11:14:15.5+05:30", "2024-02-29 11:14:15.5+05:30"),
            ("0044-03-15 00:00:00+00 BC", "0044-03-15 00:00:00+00:00 BC"),
            ("13:14:15-02", "13:14:15-02:00"),
            ("infinity", "infinity"),
        ] {
            assert_eq!(complete_zone_offset(text), zoned_text);
        }
    }
}
