//! Formatting of values for messages and identifiers.

use std::time::Duration;

/// Formats a duration for messages: `250 ms`, `1.5 s`.
pub fn format_duration(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", (time.as_millis() as f64 / 100.0).round() / 10.0)
    }
}

/// Encodes bytes as lowercase hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_durations_in_readable_units() {
        for (ms, words) in [(5, "5 ms"), (999, "999 ms"), (1_000, "1 s"), (1_540, "1.5 s"), (30_000, "30 s")] {
            assert_eq!(format_duration(Duration::from_millis(ms)), words);
        }
    }

    #[test]
    fn encodes_bytes_as_lowercase_hexadecimal() {
        assert_eq!(to_hex(&[]), "");
        assert_eq!(to_hex(&[0x00, 0x0f, 0xa5, 0xff]), "000fa5ff");
    }
}
