//! Durations in human-readable form: `500ms`, `30s`, `2m`, `1h`.

use std::fmt;
use std::time::Duration;

use serde::de::{Unexpected, Visitor};
use serde::{Deserializer, Serializer};

/// Maximum duration; longer values are assumed to be mistakes.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses a duration. It must be greater than zero and at most one day.
pub fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let ms = match unit.trim_start() {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    let ms = (number.parse::<f64>().ok()? * ms).round();
    // The cast is exact: the number is an integer below the milliseconds of a day.
    (ms >= 1.0 && ms <= MAX_DURATION.as_millis() as f64).then(|| Duration::from_millis(ms as u64))
}

/// Formats a duration so that [`parse`] accepts it.
pub fn format(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

pub(crate) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*time))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct DurationVisitor;
    impl Visitor<'_> for DurationVisitor {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a time such as `500ms`, `30s` or `2m`, at most `24h`")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_str(DurationVisitor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_human_readable_durations() {
        for (text, ms) in
            [("1ms", 1), ("500ms", 500), ("30s", 30_000), ("1.5s", 1_500), ("2 m", 120_000), ("24h", 86_400_000)]
        {
            let time = Duration::from_millis(ms);
            assert_eq!(parse(text), Some(time), "{text}");
            assert_eq!(parse(&format(time)), Some(time), "{text}");
        }
        for text in ["", "30", "s", "-1s", "0s", "0.1ms", "1d", "25h", "1e9s", "1..2s", "30 seconds", "nan s", "１s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
