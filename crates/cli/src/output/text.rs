//! Text output: counts, sizes, and untrusted text made safe for a terminal.

use std::fmt::Display;

/// Formats a count with its noun: `1 row`, `2 rows`, `0 fixes`.
pub fn pluralize<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = match noun {
        _ if count == N::from(1) => "",
        noun if noun.ends_with('x') => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Formats a size in decimal units.
pub fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// Truncates a text to `max_chars` characters and appends an ellipsis; returns whether it was longer.
pub fn truncate_chars(text: &mut String, max_chars: usize) -> bool {
    let end = text.char_indices().nth(max_chars).map(|(end, _)| end);
    if let Some(end) = end {
        text.truncate(end);
        text.push('…');
    }
    end.is_some()
}

/// Returns whether a character controls the terminal or the text direction (Trojan Source).
pub fn is_control_char(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes control characters in multi-line text, for output to a terminal.
pub fn sanitize_for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control_char(c) && !matches!(c, '\n' | '\t') { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Escapes control characters and line breaks in untrusted text, for output to a terminal.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || c == '\t' {
            out.push_str(if c == '\n' { "\\n" } else { "\\t" });
        } else if is_control_char(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::json::sanitize_json_for_terminal;

    #[test]
    fn pluralizes_all_counts_but_one() {
        for (count, noun, words) in [
            (0_u32, "row", "0 rows"),
            (1, "row", "1 row"),
            (2, "row", "2 rows"),
            (1, "fix", "1 fix"),
            (3, "fix", "3 fixes"),
        ] {
            assert_eq!(pluralize(count, noun), words);
        }
        assert_eq!((pluralize(1_u64, "call"), pluralize(101_usize, "call")), ("1 call".into(), "101 calls".into()));
    }

    #[test]
    fn escapes_terminal_control_characters() {
        assert_eq!(
            sanitize_for_terminal("a\u{1b}[31m\tb\n\u{9b}\u{202e}é\r"),
            "a\\u{1b}[31m\tb\n\\u{9b}\\u{202e}é\\u{d}"
        );
        let json = serde_json::to_string("\u{9b}31m \u{202e} é").unwrap();
        let shown = sanitize_json_for_terminal(&json);
        assert!(shown.is_ascii() || !shown.contains(['\u{9b}', '\u{202e}']), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "\u{9b}31m \u{202e} é");
    }
}
