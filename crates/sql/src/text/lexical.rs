//! Lexical scan of SQL without a grammar: code, quoted text, comments, semicolons.

/// Kind of a segment of SQL text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    Code,
    Quoted,
    LineComment,
    BlockComment,
    Semicolon,
}

/// A segment of SQL text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub kind: SegmentKind,
    pub start: usize,
    pub end: usize,
}

/// Splits text into code, quoted text, comments and semicolons. Never fails: an unclosed segment
/// extends to the end.
pub(crate) fn segments(text: &str) -> impl Iterator<Item = Segment> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let kind = segment_kind(bytes, at)?;
        at = match kind {
            SegmentKind::Semicolon => at + 1,
            SegmentKind::LineComment => text[at..].find('\n').map_or(bytes.len(), |n| at + n),
            SegmentKind::BlockComment => text[at + 2..].find("*/").map_or(bytes.len(), |n| at + n + 4),
            SegmentKind::Quoted if bytes[at] == b'$' => dollar_end(text, at),
            SegmentKind::Quoted => quote_end(bytes, at),
            SegmentKind::Code => {
                let mut end = at + 1;
                while segment_kind(bytes, end) == Some(SegmentKind::Code) {
                    end += 1;
                }
                end
            }
        };
        Some(Segment { kind, start, end: at })
    })
}

fn segment_kind(bytes: &[u8], at: usize) -> Option<SegmentKind> {
    Some(match bytes.get(at)? {
        b';' => SegmentKind::Semicolon,
        b'\'' | b'"' | b'`' => SegmentKind::Quoted,
        b'-' if bytes.get(at + 1) == Some(&b'-') => SegmentKind::LineComment,
        b'/' if bytes.get(at + 1) == Some(&b'*') => SegmentKind::BlockComment,
        b'$' if dollar_tag_end(bytes, at).is_some() => SegmentKind::Quoted,
        _ => SegmentKind::Code,
    })
}

fn dollar_tag_end(bytes: &[u8], at: usize) -> Option<usize> {
    let inner = bytes[at + 1..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let starts_with_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    (bytes.get(at + 1 + inner) == Some(&b'$') && !starts_with_digit).then_some(at + inner + 2)
}

fn dollar_end(text: &str, at: usize) -> usize {
    let tag_end = dollar_tag_end(text.as_bytes(), at).unwrap_or(at + 1);
    text[tag_end..].find(&text[at..tag_end]).map_or(text.len(), |n| tag_end + n + (tag_end - at))
}

fn quote_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let mut i = at + 1;
    while i < bytes.len() {
        if bytes[i] == quote {
            if bytes.get(i + 1) == Some(&quote) {
                i += 2;
                continue;
            }
            return i + 1;
        }
        i += 1;
    }
    bytes.len()
}

/// Returns the text in lower case with quoted text and comments blanked out, so that keywords are
/// found in code only. Offsets are preserved.
pub(crate) fn mask_quotes_and_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in segments(text) {
        let part = &text[piece.start..piece.end];
        match piece.kind {
            SegmentKind::Code | SegmentKind::Semicolon => out.push_str(&part.to_ascii_lowercase()),
            SegmentKind::Quoted | SegmentKind::LineComment | SegmentKind::BlockComment => {
                out.extend(std::iter::repeat_n(' ', part.len()))
            }
        }
    }
    out
}

/// Returns the offset of each statement of a script, after white space and comments.
pub(crate) fn statement_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut open = false;
    for piece in segments(text) {
        let code = &text[piece.start..piece.end];
        match piece.kind {
            SegmentKind::Semicolon => open = false,
            SegmentKind::Code | SegmentKind::Quoted if !open && !code.trim().is_empty() => {
                starts.push(piece.start + code.len() - code.trim_start().len());
                open = true;
            }
            SegmentKind::Code | SegmentKind::Quoted | SegmentKind::LineComment | SegmentKind::BlockComment => {}
        }
    }
    starts
}

/// Splits a script into statements at semicolons outside of quotes and comments.
pub(crate) fn split_statements(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for piece in segments(text).filter(|p| p.kind == SegmentKind::Semicolon) {
        out.push(&text[start..piece.start]);
        start = piece.end;
    }
    out.push(&text[start..]);
    out.retain(|s| !s.trim().is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_statements_outside_quotes_and_comments() {
        let text = "SELECT ';' ; -- a;b\nSELECT $x$;$x$; /* ; */ SELECT `a;b`";
        assert_eq!(split_statements(text).len(), 3);
    }
}
