//! Infers column types: the narrowest type that represents every value.

use super::table_source::RawValue;

/// Inferred column type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum InferredType {
    /// No non-null value so far.
    #[default]
    Unknown,
    Integer,
    Number,
    Boolean,
    Date,
    Timestamp,
    Text,
    Bytes,
}

impl InferredType {
    /// Returns the declared SQL type.
    pub fn sql_type(self) -> &'static str {
        match self {
            InferredType::Integer => "INTEGER",
            InferredType::Number => "REAL",
            InferredType::Boolean => "BOOLEAN",
            InferredType::Date => "DATE",
            InferredType::Timestamp => "TIMESTAMP",
            InferredType::Bytes => "BLOB",
            InferredType::Unknown | InferredType::Text => "TEXT",
        }
    }

    /// Returns the narrowest type that represents both.
    pub fn unify(self, other: InferredType) -> InferredType {
        match (self, other) {
            (InferredType::Unknown, kind) | (kind, InferredType::Unknown) => kind,
            (a, b) if a == b => a,
            (InferredType::Integer, InferredType::Number) | (InferredType::Number, InferredType::Integer) => {
                InferredType::Number
            }
            (InferredType::Date, InferredType::Timestamp) | (InferredType::Timestamp, InferredType::Date) => {
                InferredType::Timestamp
            }
            _ => InferredType::Text,
        }
    }

    /// Infers the type of a value.
    pub fn infer(raw: &RawValue<'_>) -> InferredType {
        match raw {
            RawValue::Null => InferredType::Unknown,
            RawValue::Untyped(text) => infer_text(text.trim()),
            RawValue::Text(_) => InferredType::Text,
            RawValue::Integer(_) => InferredType::Integer,
            RawValue::Number(_) => InferredType::Number,
            RawValue::Boolean(_) => InferredType::Boolean,
            RawValue::Date(_) => InferredType::Date,
            RawValue::Timestamp(_) => InferredType::Timestamp,
            RawValue::Bytes(_) => InferredType::Bytes,
        }
    }
}

/// Infers the type of text. A number with a leading zero is a code: `007` is not seven.
pub(super) fn infer_text(text: &str) -> InferredType {
    if text.is_empty() {
        return InferredType::Unknown;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let first = digits.as_bytes().first().copied().unwrap_or_default();
    if first.is_ascii_digit() {
        let zero = digits.len() > 1 && first == b'0' && digits.as_bytes()[1].is_ascii_digit();
        if zero {
            return InferredType::Text;
        }
        if digits.bytes().all(|b| b.is_ascii_digit()) {
            // An integer that overflows is a code as well: a float would lose digits.
            return if text.parse::<i64>().is_ok() { InferredType::Integer } else { InferredType::Text };
        }
        if is_date_or_timestamp(text.as_bytes()) {
            return if text.len() == 10 { InferredType::Date } else { InferredType::Timestamp };
        }
        let plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
        // `1E5` is a code; floats are written `1e-05` or `1.5e10`.
        let exponent = digits.contains(['e', 'E']);
        let code = exponent && !digits.contains(['.', '+', '-']);
        if let Ok(number) = text.parse::<f64>()
            && plain
            && !code
            && !digits.ends_with('.')
            && number.is_finite()
        {
            // More than 15 digits would lose precision in a float, unless the text is a float's own
            // representation.
            let count = digits.bytes().filter(u8::is_ascii_digit).count();
            let whole = exponent || count <= 15 || number.to_string() == text;
            return if whole { InferredType::Number } else { InferredType::Text };
        }
        return InferredType::Text;
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return InferredType::Boolean;
    }
    InferredType::Text
}

/// Returns whether text is a date (`2024-02-29`), or a timestamp with an optional time zone.
fn is_date_or_timestamp(text: &[u8]) -> bool {
    let digits = |from: usize, to: usize| {
        text.get(from..to)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
            .then(|| text[from..to].iter().fold(0u32, |number, digit| number * 10 + u32::from(digit - b'0')))
    };
    let (Some(_), Some(month), Some(day)) = (digits(0, 4), digits(5, 7), digits(8, 10)) else { return false };
    if text[4] != b'-' || text[7] != b'-' || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return false;
    }
    let Some(rest) = text.get(10..).filter(|rest| !rest.is_empty()) else { return true };
    let (Some(hour), Some(minute)) = (digits(11, 13), digits(14, 16)) else { return false };
    if !matches!(rest[0], b' ' | b'T') || text[13] != b':' || hour > 24 || minute > 59 {
        return false;
    }
    let mut rest = &text[16..];
    if let Some(after) = rest.strip_prefix(b":") {
        let count = after.iter().take_while(|b| b.is_ascii_digit()).count();
        rest = &after[count..];
        if count != 2 {
            return false;
        }
        if let Some(after) = rest.strip_prefix(b".") {
            rest = &after[after.iter().take_while(|b| b.is_ascii_digit()).count()..];
        }
    }
    matches!(rest, [] | [b'Z' | b'z'])
        || (matches!(rest[0], b'+' | b'-')
            && rest.len() <= 6
            && rest[1..].iter().all(|b| b.is_ascii_digit() || *b == b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infers_types_from_text() {
        for (text, kind) in [
            ("", InferredType::Unknown),
            ("0", InferredType::Integer),
            ("-12", InferredType::Integer),
            ("007", InferredType::Text),
            ("-007", InferredType::Text),
            ("9223372036854775807", InferredType::Integer),
            ("9223372036854775808", InferredType::Text),
            ("0.5", InferredType::Number),
            ("1e-05", InferredType::Number),
            ("1.5E10", InferredType::Number),
            ("1E5", InferredType::Text),
            ("12345678901234567.89", InferredType::Text),
            ("0.30000000000000004", InferredType::Number),
            ("1.", InferredType::Text),
            ("1,5", InferredType::Text),
            ("+1", InferredType::Text),
            ("1-2", InferredType::Text),
            ("12:30", InferredType::Text),
            ("inf", InferredType::Text),
            ("NaN", InferredType::Text),
            ("1e999", InferredType::Text),
            ("TRUE", InferredType::Boolean),
            ("yes", InferredType::Text),
            ("2024-02-29", InferredType::Date),
            ("2024-13-29", InferredType::Text),
            ("2024-02-29 13:14", InferredType::Timestamp),
            ("2024-02-29T13:14:15.678Z", InferredType::Timestamp),
            ("2024-02-29T13:14:15+02:00", InferredType::Timestamp),
            ("2024-02-29 13:14:15 hello", InferredType::Text),
            ("2024-02-29T", InferredType::Text),
            ("Bonn", InferredType::Text),
            ("-", InferredType::Text),
        ] {
            assert_eq!(infer_text(text), kind, "{text}");
        }
    }

    #[test]
    fn unifies_types_over_all_values() {
        assert_eq!(
            InferredType::Unknown.unify(InferredType::Integer).unify(InferredType::Number),
            InferredType::Number
        );
        assert_eq!(
            InferredType::Date.unify(InferredType::Unknown).unify(InferredType::Timestamp),
            InferredType::Timestamp
        );
        assert_eq!(InferredType::Integer.unify(InferredType::Boolean), InferredType::Text);
        assert_eq!(InferredType::Integer.unify(InferredType::Date), InferredType::Text);
    }
}
