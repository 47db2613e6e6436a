//! Detection of the end of an SQL statement in partial text.

/// Returns the end of the first statement, after its semicolon or after the code fence that closes
/// it.
pub(super) fn find_statement_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // An opening fence is skipped; a closing one ends the statement.
    let mut at = match text.find("```") {
        Some(fence) if text[..fence].trim().is_empty() => {
            text[fence..].find('\n').map_or(bytes.len(), |line| fence + line + 1)
        }
        _ => 0,
    };
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => {
                if quote == b'`' && bytes[at..].starts_with(b"```") {
                    return Some(at + 3);
                }
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += 1;
                }
            }
            b'-' if bytes[at..].starts_with(b"--") => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                at = text[at..].find("*/").map_or(bytes.len(), |end| at + end + 1)
            }
            b';' => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::find_statement_end;

    #[test]
    fn statement_ends_at_its_semicolon_or_fence() {
        for (text, expected) in [
            ("SELECT 1", None),
            ("SELECT 1; SELECT 2", Some(9)),
            ("SELECT ';' ; x", Some(12)),
            ("SELECT 'it''s;' FROM t", None),
            ("SELECT 1 -- a;\n; x", Some(16)),
            ("SELECT /* ; */ 1;", Some(17)),
            ("```sql\nSELECT 1\n```", Some(19)),
            ("```sql\nSELECT 1", None),
            ("```", None),
            ("SELECT `a;b` FROM t;", Some(20)),
            ("", None),
        ] {
            assert_eq!(find_statement_end(text), expected, "{text}");
        }
    }
}
