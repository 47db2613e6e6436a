//! Values as they travel, in JSON and by the type of their column, and as they are shown.

use querymend_sql::Cell;
use serde_json::Value;

use super::wire::Column;

/// How the values of a type are read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Numbers of the JSON itself; floats that are none come as text.
    Number,
    Decimal,
    /// A time of day or a moment, perhaps with a zone behind it.
    Moment,
    /// Bytes, in base64.
    Bytes,
    /// JSON within the JSON.
    Json,
    List(Box<Kind>),
    /// By the kind of its values; its keys are always text.
    Map(Box<Kind>),
    /// A name and a kind for each field.
    Row(Vec<(Option<String>, Kind)>),
    /// Truth, texts, dates, and whatever the server writes in its own way.
    Plain,
}

impl Kind {
    /// The kind of a column.
    pub fn of(column: &Column) -> Self {
        if column.type_signature.is_object() { signature(&column.type_signature) } else { written(&column.kind, 0) }
    }
}

/// Types that are nested deeper are given as the server writes them.
const DEEPEST: usize = 64;

/// A type as text: `array(row(a bigint, "b c" varchar(3)))`.
fn written(text: &str, depth: usize) -> Kind {
    if depth > DEEPEST {
        return Kind::Plain;
    }
    let lower = text.trim().to_ascii_lowercase();
    let word = lower.split(['(', ' ']).next().unwrap_or_default();
    let within =
        || text.split_once('(').and_then(|(_, rest)| Some(parts(rest.rsplit_once(')')?.0))).unwrap_or_default();
    match word {
        "tinyint" | "smallint" | "integer" | "bigint" | "real" | "double" => Kind::Number,
        "decimal" => Kind::Decimal,
        "time" | "timestamp" => Kind::Moment,
        "varbinary" => Kind::Bytes,
        "json" => Kind::Json,
        "array" => Kind::List(Box::new(within().first().map_or(Kind::Plain, |element| written(element, depth + 1)))),
        "map" => Kind::Map(Box::new(within().get(1).map_or(Kind::Plain, |value| written(value, depth + 1)))),
        "row" => Kind::Row(within().into_iter().map(|field| field_written(field, depth + 1)).collect()),
        _ => Kind::Plain,
    }
}

/// What stands between the commas that are within neither parentheses nor quotes.
fn parts(text: &str) -> Vec<&str> {
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

/// A field of a row: a name, which may be quoted, and a type; or a type alone.
fn field_written(text: &str, depth: usize) -> (Option<String>, Kind) {
    if let Some((name, kind)) = text.strip_prefix('"').and_then(|rest| rest.split_once("\" ")) {
        return (Some(name.replace("\"\"", "\"")), written(kind, depth));
    }
    match text.split_once(' ') {
        // Types that have a blank in them.
        Some((word, _)) if word.contains('(') || ["timestamp", "time", "interval"].contains(&word) => {
            (None, written(text, depth))
        }
        Some((name, kind)) => (Some(name.to_string()), written(kind, depth)),
        None => (None, written(text, depth)),
    }
}

/// A type that was taken apart by the server; Presto writes those within rows as text.
fn signature(signature: &Value) -> Kind {
    let Some(raw) = signature.get("rawType").and_then(Value::as_str) else {
        return signature.as_str().map_or(Kind::Plain, |text| written(text, 0));
    };
    let arguments = signature.get("arguments").and_then(Value::as_array);
    let within: Vec<&Value> = arguments.into_iter().flatten().filter_map(|argument| argument.get("value")).collect();
    match (raw.to_ascii_lowercase().as_str(), within.as_slice()) {
        ("array", [element]) => Kind::List(Box::new(self::signature(element))),
        ("map", [_, value]) => Kind::Map(Box::new(self::signature(value))),
        ("row", fields) => Kind::Row(fields.iter().map(|field| field_of(field)).collect()),
        _ => written(raw, 0),
    }
}

fn field_of(field: &Value) -> (Option<String>, Kind) {
    let name = field.pointer("/fieldName/name").and_then(Value::as_str).map(str::to_string);
    (name, field.get("typeSignature").map_or(Kind::Plain, signature))
}

/// A value as a cell.
pub(super) fn cell(value: Value, kind: &Kind) -> Cell {
    match (value, kind) {
        (Value::Null, _) => Cell::Null,
        (Value::Bool(truth), _) => Cell::Boolean(truth),
        (Value::Number(number), _) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) if !number.is_f64() => Cell::Integer(whole),
            (_, Some(float)) => Cell::Number(float),
            _ => Cell::Decimal(number.to_string()),
        },
        (Value::String(text), Kind::Number) => match text.as_str() {
            "NaN" => Cell::Number(f64::NAN),
            "Infinity" => Cell::Number(f64::INFINITY),
            "-Infinity" => Cell::Number(f64::NEG_INFINITY),
            _ => Cell::Text(text),
        },
        (Value::String(text), Kind::Decimal) => Cell::Decimal(text),
        (Value::String(text), Kind::Moment) => Cell::Text(moment(&text)),
        (Value::String(text), Kind::Bytes) => match bytes(&text) {
            Some(hexadecimal) => Cell::Binary(hexadecimal),
            None => Cell::Text(text),
        },
        (Value::String(text), Kind::List(_) | Kind::Map(_) | Kind::Row(_)) => match unpacked(&text) {
            Some(value) => cell(value, kind),
            None => Cell::Text(text),
        },
        (Value::String(text), _) => Cell::Text(text),
        (value @ (Value::Array(_) | Value::Object(_)), kind) => {
            let mut text = String::new();
            json(&value, kind, &mut text);
            Cell::Text(text)
        }
    }
}

/// Writes a value that holds others as JSON: decimals with all their digits, rows with the names of their fields.
fn json(value: &Value, kind: &Kind, out: &mut String) {
    match (value, kind) {
        (Value::Array(values), Kind::Row(fields))
            if values.len() == fields.len() && fields.iter().all(|(name, _)| name.is_some()) =>
        {
            let named = fields.iter().zip(values);
            object(named.map(|((name, kind), value)| (name.as_deref().unwrap_or_default(), value, kind)), out);
        }
        (Value::Array(values), Kind::Row(fields)) => {
            let kinds = fields.iter().map(|(_, kind)| kind).chain(std::iter::repeat(&Kind::Plain));
            list(values.iter().zip(kinds), out);
        }
        (Value::Array(values), Kind::List(kind)) => list(values.iter().map(|value| (value, &**kind)), out),
        (Value::Object(members), Kind::Map(kind)) => {
            object(members.iter().map(|(name, value)| (name.as_str(), value, &**kind)), out);
        }
        (Value::String(text), Kind::Decimal) if text.bytes().all(|b| b.is_ascii_digit() || b"+-.".contains(&b)) => {
            out.push_str(text);
        }
        (Value::String(text), Kind::List(_) | Kind::Map(_) | Kind::Row(_)) => match unpacked(text) {
            Some(value) => json(&value, kind, out),
            None => out.push_str(&value.to_string()),
        },
        (Value::String(text), Kind::Json) => out.push_str(text),
        (Value::String(text), Kind::Moment) => out.push_str(&Value::String(moment(text)).to_string()),
        (Value::String(text), Kind::Bytes) => {
            out.push_str(&Value::String(bytes(text).unwrap_or_else(|| text.clone())).to_string());
        }
        (other, _) => out.push_str(&other.to_string()),
    }
}

/// Presto may write what holds other values as JSON within a text, at each level again.
fn unpacked(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_array() || value.is_object())
}

fn list<'a>(values: impl Iterator<Item = (&'a Value, &'a Kind)>, out: &mut String) {
    out.push('[');
    for (i, (value, kind)) in values.enumerate() {
        if i > 0 {
            out.push(',');
        }
        json(value, kind, out);
    }
    out.push(']');
}

fn object<'a>(members: impl Iterator<Item = (&'a str, &'a Value, &'a Kind)>, out: &mut String) {
    out.push('{');
    for (i, (name, value, kind)) in members.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name).to_string());
        out.push(':');
        json(value, kind, out);
    }
    out.push('}');
}

/// A moment without the zeros that its type puts behind the seconds, and with its offset right behind it. Zones that have a
/// name keep it: their offset is not given.
fn moment(text: &str) -> String {
    let (before, after) = text.split_once('.').map_or((text, ""), |(before, after)| (before, after));
    let (before, fraction, zone) = if after.is_empty() {
        // The first blank of a moment stands before the time of day.
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

/// Base64 as lower-case hexadecimal.
fn bytes(text: &str) -> Option<String> {
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
    fn moments_lose_their_zeros_and_keep_their_zone() {
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
            assert_eq!(moment(text), expected);
        }
    }

    #[test]
    fn base64_becomes_hexadecimal() {
        for (text, expected) in
            [("D6A=", "0fa0"), ("", ""), ("/w==", "ff"), ("AAEC", "000102"), ("AAECAw==", "00010203")]
        {
            assert_eq!(bytes(text).as_deref(), Some(expected));
        }
        assert_eq!(bytes("%"), None);
    }

    #[test]
    fn values_within_values_are_read_by_their_types() {
        let column: Column = serde_json::from_value(json!({"name": "x", "type": "row(...)", "typeSignature": {"rawType": "row",
            "arguments": [
                {"kind": "NAMED_TYPE", "value": {"fieldName": {"name": "a"}, "typeSignature": {"rawType": "array", "arguments": [
                    {"kind": "TYPE", "value": {"rawType": "decimal", "arguments": [{"kind": "LONG", "value": 2}]}}]}}},
                {"kind": "NAMED_TYPE", "value": {"fieldName": {"name": "b"}, "typeSignature": {"rawType": "varbinary", "arguments": []}}}
            ]}}))
        .unwrap();
        let value = json!([["12345678901234567890.50", null], "D6A="]);
        assert_eq!(
            cell(value, &Kind::of(&column)),
            Cell::Text(r#"{"a":[12345678901234567890.50,null],"b":"0fa0"}"#.into())
        );
    }

    #[test]
    fn types_are_read_from_text_too() {
        let row = |fields: &[(&str, Kind)]| {
            Kind::Row(fields.iter().map(|(name, kind)| (Some((*name).to_string()), kind.clone())).collect())
        };
        assert_eq!(written("DECIMAL(38, 2)", 0), Kind::Decimal);
        assert_eq!(
            written("map(varchar(3), array(double))", 0),
            Kind::Map(Box::new(Kind::List(Box::new(Kind::Number))))
        );
        assert_eq!(
            written(r#"row(a timestamp(3) with time zone, "b, (c" array(row(d varbinary)))"#, 0),
            row(&[("a", Kind::Moment), ("b, (c", Kind::List(Box::new(row(&[("d", Kind::Bytes)]))))])
        );
        assert_eq!(
            written("row(bigint, timestamp with time zone)", 0),
            Kind::Row(vec![(None, Kind::Number), (None, Kind::Moment)])
        );
        let kind = written("row(a bigint, b array(varchar))", 0);
        let value = Value::String(r#"[ 1, "[ \"x y\", null ]" ]"#.into());
        assert_eq!(cell(value, &kind), Cell::Text(r#"{"a":1,"b":["x y",null]}"#.into()));
    }
}
