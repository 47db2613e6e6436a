//! Converts JSON values to cells according to the types of their columns.

use querymend_sql::Cell;
use serde_json::Value;

use super::protocol::TrinoColumn;

/// Type of a value, as far as it determines the conversion.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TrinoType {
    /// JSON numbers; NaN and infinities are sent as strings.
    Number,
    Decimal,
    /// Time of day or timestamp, with or without a time zone.
    DateTime,
    /// Base64-encoded bytes.
    Bytes,
    /// JSON document as a string.
    Json,
    List(Box<TrinoType>),
    /// Type of the values; keys are always strings.
    Map(Box<TrinoType>),
    /// Names and types of the fields.
    Row(Vec<(Option<String>, TrinoType)>),
    /// Booleans, strings, dates and all other types, as the server formats them.
    Verbatim,
}

impl TrinoType {
    /// Returns the type of a column.
    pub fn from_column(column: &TrinoColumn) -> Self {
        if column.type_signature.is_object() {
            parse_signature(&column.type_signature)
        } else {
            parse_type(&column.kind, 0)
        }
    }
}

/// Maximum nesting depth of types. Deeper values are returned as the server formats them.
const MAX_TYPE_DEPTH: usize = 64;

/// Parses a type name such as `array(row(a bigint, "b c" varchar(3)))`.
fn parse_type(text: &str, depth: usize) -> TrinoType {
    if depth > MAX_TYPE_DEPTH {
        return TrinoType::Verbatim;
    }
    let lower = text.trim().to_ascii_lowercase();
    let word = lower.split(['(', ' ']).next().unwrap_or_default();
    let within = || {
        text.split_once('(').and_then(|(_, rest)| Some(split_top_level(rest.rsplit_once(')')?.0))).unwrap_or_default()
    };
    match word {
        "tinyint" | "smallint" | "integer" | "bigint" | "real" | "double" => TrinoType::Number,
        "decimal" => TrinoType::Decimal,
        "time" | "timestamp" => TrinoType::DateTime,
        "varbinary" => TrinoType::Bytes,
        "json" => TrinoType::Json,
        "array" => TrinoType::List(Box::new(
            within().first().map_or(TrinoType::Verbatim, |element| parse_type(element, depth + 1)),
        )),
        "map" => {
            TrinoType::Map(Box::new(within().get(1).map_or(TrinoType::Verbatim, |value| parse_type(value, depth + 1))))
        }
        "row" => TrinoType::Row(within().into_iter().map(|field| parse_field(field, depth + 1)).collect()),
        _ => TrinoType::Verbatim,
    }
}

/// Splits text at commas outside parentheses and quotes.
fn split_top_level(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start, mut parts) = (0_i32, false, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// Parses a field of a row type: an optional name, which may be quoted, and a type.
fn parse_field(text: &str, depth: usize) -> (Option<String>, TrinoType) {
    if let Some((name, kind)) = text.strip_prefix('"').and_then(|rest| rest.split_once("\" ")) {
        return (Some(name.replace("\"\"", "\"")), parse_type(kind, depth));
    }
    match text.split_once(' ') {
        // Types that contain a space.
        Some((word, _)) if word.contains('(') || ["timestamp", "time", "interval"].contains(&word) => {
            (None, parse_type(text, depth))
        }
        Some((name, kind)) => (Some(name.to_string()), parse_type(kind, depth)),
        None => (None, parse_type(text, depth)),
    }
}

/// Parses a structured type signature. Presto writes the types of row fields as text.
fn parse_signature(signature: &Value) -> TrinoType {
    let Some(raw) = signature.get("rawType").and_then(Value::as_str) else {
        return signature.as_str().map_or(TrinoType::Verbatim, |text| parse_type(text, 0));
    };
    let arguments = signature.get("arguments").and_then(Value::as_array);
    let within: Vec<&Value> = arguments.into_iter().flatten().filter_map(|argument| argument.get("value")).collect();
    match (raw.to_ascii_lowercase().as_str(), within.as_slice()) {
        ("array", [element]) => TrinoType::List(Box::new(self::parse_signature(element))),
        ("map", [_, value]) => TrinoType::Map(Box::new(self::parse_signature(value))),
        ("row", fields) => TrinoType::Row(fields.iter().map(|field| parse_signature_field(field)).collect()),
        _ => parse_type(raw, 0),
    }
}

fn parse_signature_field(field: &Value) -> (Option<String>, TrinoType) {
    let name = field.pointer("/fieldName/name").and_then(Value::as_str).map(str::to_string);
    (name, field.get("typeSignature").map_or(TrinoType::Verbatim, parse_signature))
}

pub(super) fn to_cell(value: Value, kind: &TrinoType) -> Cell {
    match (value, kind) {
        (Value::Null, _) => Cell::Null,
        (Value::Bool(truth), _) => Cell::Boolean(truth),
        (Value::Number(number), _) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) if !number.is_f64() => Cell::Integer(whole),
            (_, Some(float)) => Cell::Number(float),
            _ => Cell::Decimal(number.to_string()),
        },
        (Value::String(text), TrinoType::Number) => match text.as_str() {
            "NaN" => Cell::Number(f64::NAN),
            "Infinity" => Cell::Number(f64::INFINITY),
            "-Infinity" => Cell::Number(f64::NEG_INFINITY),
            _ => Cell::Text(text),
        },
        (Value::String(text), TrinoType::Decimal) => Cell::Decimal(text),
        (Value::String(text), TrinoType::DateTime) => Cell::Text(normalize_timestamp(&text)),
        (Value::String(text), TrinoType::Bytes) => match base64_to_hex(&text) {
            Some(hexadecimal) => Cell::Binary(hexadecimal),
            None => Cell::Text(text),
        },
        (Value::String(text), TrinoType::List(_) | TrinoType::Map(_) | TrinoType::Row(_)) => {
            match parse_nested_json(&text) {
                Some(value) => to_cell(value, kind),
                None => Cell::Text(text),
            }
        }
        (Value::String(text), _) => Cell::Text(text),
        (value @ (Value::Array(_) | Value::Object(_)), kind) => {
            let mut text = String::new();
            write_json(&value, kind, &mut text);
            Cell::Text(text)
        }
    }
}

/// Writes a nested value as JSON. Decimals keep all their digits, rows the names of their fields.
fn write_json(value: &Value, kind: &TrinoType, out: &mut String) {
    match (value, kind) {
        (Value::Array(values), TrinoType::Row(fields))
            if values.len() == fields.len() && fields.iter().all(|(name, _)| name.is_some()) =>
        {
            let named = fields.iter().zip(values);
            write_object(named.map(|((name, kind), value)| (name.as_deref().unwrap_or_default(), value, kind)), out);
        }
        (Value::Array(values), TrinoType::Row(fields)) => {
            let kinds = fields.iter().map(|(_, kind)| kind).chain(std::iter::repeat(&TrinoType::Verbatim));
            write_array(values.iter().zip(kinds), out);
        }
        (Value::Array(values), TrinoType::List(kind)) => write_array(values.iter().map(|value| (value, &**kind)), out),
        (Value::Object(members), TrinoType::Map(kind)) => {
            write_object(members.iter().map(|(name, value)| (name.as_str(), value, &**kind)), out);
        }
        (Value::String(text), TrinoType::Decimal)
            if text.bytes().all(|b| b.is_ascii_digit() || b"+-.".contains(&b)) =>
        {
            out.push_str(text);
        }
        (Value::String(text), TrinoType::List(_) | TrinoType::Map(_) | TrinoType::Row(_)) => {
            match parse_nested_json(text) {
                Some(value) => write_json(&value, kind, out),
                None => out.push_str(&value.to_string()),
            }
        }
        (Value::String(text), TrinoType::Json) => out.push_str(text),
        (Value::String(text), TrinoType::DateTime) => {
            out.push_str(&Value::String(normalize_timestamp(text)).to_string())
        }
        (Value::String(text), TrinoType::Bytes) => {
            out.push_str(&Value::String(base64_to_hex(text).unwrap_or_else(|| text.clone())).to_string());
        }
        (other, _) => out.push_str(&other.to_string()),
    }
}

/// Parses a nested value that Presto encoded as a JSON string, possibly again at each level.
fn parse_nested_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_array() || value.is_object())
}

fn write_array<'a>(values: impl Iterator<Item = (&'a Value, &'a TrinoType)>, out: &mut String) {
    out.push('[');
    for (i, (value, kind)) in values.enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_json(value, kind, out);
    }
    out.push(']');
}

fn write_object<'a>(members: impl Iterator<Item = (&'a str, &'a Value, &'a TrinoType)>, out: &mut String) {
    out.push('{');
    for (i, (name, value, kind)) in members.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name).to_string());
        out.push(':');
        write_json(value, kind, out);
    }
    out.push('}');
}

/// Removes trailing zeros of the fraction of a timestamp, and the space before a UTC offset. Named
/// time zones are kept, because their offset is unknown.
fn normalize_timestamp(text: &str) -> String {
    let (before, after) = text.split_once('.').map_or((text, ""), |(before, after)| (before, after));
    let (before, fraction, zone) = if after.is_empty() {
        // The first space of a timestamp precedes the time of day.
        let date = usize::from(before.as_bytes().get(2) != Some(&b':'));
        match before.match_indices(' ').nth(date) {
            Some((place, _)) => (&before[..place], "", &before[place..]),
            None => (before, "", ""),
        }
    } else {
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        (before, after[..end].trim_end_matches('0'), &after[end..])
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let zone = match zone.trim_start() {
        "UTC" => "+00:00",
        offset if offset.starts_with(['+', '-']) => offset,
        _ => zone,
    };
    format!("{before}{point}{fraction}{zone}")
}

/// Converts base64 to lowercase hexadecimal.
fn base64_to_hex(text: &str) -> Option<String> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(text.len() / 4 * 6);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6 | u32::from(six)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            let byte = (held >> bits) & 0xff;
            out.push(char::from(DIGITS[(byte >> 4) as usize]));
            out.push(char::from(DIGITS[(byte & 15) as usize]));
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn normalizes_timestamps_and_keeps_their_zone() {
        for (text, expected) in [
            ("2024-02-29 13:14:15.678000", "2024-02-29 13:14:15.678"),
            ("2024-02-29 13:14:15.000", "2024-02-29 13:14:15"),
            ("2024-02-29 13:14:15", "2024-02-29 13:14:15"),
            ("2024-02-29 13:14:10 +02:00", "2024-02-29 13:14:10+02:00"),
            ("2024-02-29 13:14:15.000 UTC", "2024-02-29 13:14:15+00:00"),
            ("2024-02-29 13:14:15.100 Europe/Berlin", "2024-02-29 13:14:15.1 Europe/Berlin"),
            ("13:14:15.500", "13:14:15.5"),
            ("13:14:15.500+02:00", "13:14:15.5+02:00"),
            ("13:14:15+02:00", "13:14:15+02:00"),
            ("13:14:15 +02:00", "13:14:15+02:00"),
        ] {
            assert_eq!(normalize_timestamp(text), expected);
        }
    }

    #[test]
    fn converts_base64_to_hexadecimal() {
        for (text, expected) in
            [("D6A=", "0fa0"), ("", ""), ("/w==", "ff"), ("AAEC", "000102"), ("AAECAw==", "00010203")]
        {
            assert_eq!(base64_to_hex(text).as_deref(), Some(expected));
        }
        assert_eq!(base64_to_hex("%"), None);
    }

    #[test]
    fn converts_nested_values_by_their_types() {
        let column: TrinoColumn = serde_json::from_value(json!({"name": "x", "type": "row(...)", "typeSignature": {"rawType": "row",
            "arguments": [
                {"kind": "NAMED_TYPE", "value": {"fieldName": {"name": "a"}, "typeSignature": {"rawType": "array", "arguments": [
                    {"kind": "TYPE", "value": {"rawType": "decimal", "arguments": [{"kind": "LONG", "value": 2}]}}]}}},
                {"kind": "NAMED_TYPE", "value": {"fieldName": {"name": "b"}, "typeSignature": {"rawType": "varbinary", "arguments": []}}}
            ]}}))
        .unwrap();
        let value = json!([["12345678901234567890.50", null], "D6A="]);
        assert_eq!(
            to_cell(value, &TrinoType::from_column(&column)),
            Cell::Text(r#"{"a":[12345678901234567890.50,null],"b":"0fa0"}"#.into())
        );
    }

    #[test]
    fn parses_type_names() {
        let row = |fields: &[(&str, TrinoType)]| {
            TrinoType::Row(fields.iter().map(|(name, kind)| (Some((*name).to_string()), kind.clone())).collect())
        };
        assert_eq!(parse_type("DECIMAL(38, 2)", 0), TrinoType::Decimal);
        assert_eq!(
            parse_type("map(varchar(3), array(double))", 0),
            TrinoType::Map(Box::new(TrinoType::List(Box::new(TrinoType::Number))))
        );
        assert_eq!(
            parse_type(r#"row(a timestamp(3) with time zone, "b, (c" array(row(d varbinary)))"#, 0),
            row(&[("a", TrinoType::DateTime), ("b, (c", TrinoType::List(Box::new(row(&[("d", TrinoType::Bytes)]))))])
        );
        assert_eq!(
            parse_type("row(bigint, timestamp with time zone)", 0),
            TrinoType::Row(vec![(None, TrinoType::Number), (None, TrinoType::DateTime)])
        );
        let kind = parse_type("row(a bigint, b array(varchar))", 0);
        let value = Value::String(r#"[ 1, "[ \"x y\", null ]" ]"#.into());
        assert_eq!(to_cell(value, &kind), Cell::Text(r#"{"a":1,"b":["x y",null]}"#.into()));
    }
}
