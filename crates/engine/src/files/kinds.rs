//! What the columns of a file hold: the narrowest kind that all of its values are.

use super::sheet::Raw;

/// A kind of column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// No value yet.
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

impl Kind {
    /// As the database declares it.
    pub fn declared(self) -> &'static str {
        match self {
            Kind::Integer => "INTEGER",
            Kind::Number => "REAL",
            Kind::Boolean => "BOOLEAN",
            Kind::Date => "DATE",
            Kind::Timestamp => "TIMESTAMP",
            Kind::Bytes => "BLOB",
            Kind::Unknown | Kind::Text => "TEXT",
        }
    }

    /// The kind that holds both.
    pub fn and(self, other: Kind) -> Kind {
        match (self, other) {
            (Kind::Unknown, kind) | (kind, Kind::Unknown) => kind,
            (a, b) if a == b => a,
            (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => Kind::Number,
            (Kind::Date, Kind::Timestamp) | (Kind::Timestamp, Kind::Date) => Kind::Timestamp,
            _ => Kind::Text,
        }
    }

    /// What a value is.
    pub fn of(raw: &Raw<'_>) -> Kind {
        match raw {
            Raw::Nothing => Kind::Unknown,
            Raw::Loose(text) => of_text(text.trim()),
            Raw::Text(_) => Kind::Text,
            Raw::Integer(_) => Kind::Integer,
            Raw::Number(_) => Kind::Number,
            Raw::Boolean(_) => Kind::Boolean,
            Raw::Date(_) => Kind::Date,
            Raw::Timestamp(_) => Kind::Timestamp,
            Raw::Bytes(_) => Kind::Bytes,
        }
    }
}

/// What a text could be. A number with a leading zero is a code: `007` is not seven.
pub(super) fn of_text(text: &str) -> Kind {
    if text.is_empty() {
        return Kind::Unknown;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let first = digits.as_bytes().first().copied().unwrap_or_default();
    if first.is_ascii_digit() {
        let zero = digits.len() > 1 && first == b'0' && digits.as_bytes()[1].is_ascii_digit();
        if zero {
            return Kind::Text;
        }
        if digits.bytes().all(|b| b.is_ascii_digit()) {
            // Longer than what fits is a code as well: a float would lose digits of it.
            return if text.parse::<i64>().is_ok() { Kind::Integer } else { Kind::Text };
        }
        if is_moment(text.as_bytes()) {
            return if text.len() == 10 { Kind::Date } else { Kind::Timestamp };
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
            // Of a number with more digits than a float has, the last would be lost, unless a float wrote it.
            let count = digits.bytes().filter(u8::is_ascii_digit).count();
            let whole = exponent || count <= 15 || number.to_string() == text;
            return if whole { Kind::Number } else { Kind::Text };
        }
        return Kind::Text;
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Kind::Boolean;
    }
    Kind::Text
}

/// `2024-02-29`, or a time of the day behind it and perhaps a zone.
fn is_moment(text: &[u8]) -> bool {
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
    fn texts_are_taken_for_what_they_are() {
        for (text, kind) in [
            ("", Kind::Unknown),
            ("0", Kind::Integer),
            ("-12", Kind::Integer),
            ("007", Kind::Text),
            ("-007", Kind::Text),
            ("9223372036854775807", Kind::Integer),
            ("9223372036854775808", Kind::Text),
            ("0.5", Kind::Number),
            ("1e-05", Kind::Number),
            ("1.5E10", Kind::Number),
            ("1E5", Kind::Text),
            ("12345678901234567.89", Kind::Text),
            ("0.30000000000000004", Kind::Number),
            ("1.", Kind::Text),
            ("1,5", Kind::Text),
            ("+1", Kind::Text),
            ("1-2", Kind::Text),
            ("12:30", Kind::Text),
            ("inf", Kind::Text),
            ("NaN", Kind::Text),
            ("1e999", Kind::Text),
            ("TRUE", Kind::Boolean),
            ("yes", Kind::Text),
            ("2024-02-29", Kind::Date),
            ("2024-13-29", Kind::Text),
            ("2024-02-29 13:14", Kind::Timestamp),
            ("2024-02-29T13:14:15.678Z", Kind::Timestamp),
            ("2024-02-29T13:14:15+02:00", Kind::Timestamp),
            ("2024-02-29 13:14:15 hello", Kind::Text),
            ("2024-02-29T", Kind::Text),
            ("Bonn", Kind::Text),
            ("-", Kind::Text),
        ] {
            assert_eq!(of_text(text), kind, "{text}");
        }
    }

    #[test]
    fn a_column_is_what_all_of_its_values_are() {
        assert_eq!(Kind::Unknown.and(Kind::Integer).and(Kind::Number), Kind::Number);
        assert_eq!(Kind::Date.and(Kind::Unknown).and(Kind::Timestamp), Kind::Timestamp);
        assert_eq!(Kind::Integer.and(Kind::Boolean), Kind::Text);
        assert_eq!(Kind::Integer.and(Kind::Date), Kind::Text);
    }
}
