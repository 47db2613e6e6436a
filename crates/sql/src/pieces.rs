//! SQL text told apart without a grammar: code, quoted text, comments, semicolons.

/// What a stretch of SQL text is, told without a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Code,
    Quoted,
    LineComment,
    BlockComment,
    Semicolon,
}

/// A stretch of SQL text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub kind: PieceKind,
    pub start: usize,
    pub end: usize,
}

/// Splits text into code, quoted text, comments and semicolons. It never fails: what is not closed runs to the end.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let kind = piece_kind(bytes, at)?;
        at = match kind {
            PieceKind::Semicolon => at + 1,
            PieceKind::LineComment => text[at..].find('\n').map_or(bytes.len(), |n| at + n),
            PieceKind::BlockComment => text[at + 2..].find("*/").map_or(bytes.len(), |n| at + n + 4),
            PieceKind::Quoted if bytes[at] == b'$' => dollar_end(text, at),
            PieceKind::Quoted => quote_end(bytes, at),
            PieceKind::Code => {
                let mut end = at + 1;
                while piece_kind(bytes, end) == Some(PieceKind::Code) {
                    end += 1;
                }
                end
            }
        };
        Some(Piece { kind, start, end: at })
    })
}

fn piece_kind(bytes: &[u8], at: usize) -> Option<PieceKind> {
    Some(match bytes.get(at)? {
        b';' => PieceKind::Semicolon,
        b'\'' | b'"' | b'`' => PieceKind::Quoted,
        b'-' if bytes.get(at + 1) == Some(&b'-') => PieceKind::LineComment,
        b'/' if bytes.get(at + 1) == Some(&b'*') => PieceKind::BlockComment,
        b'$' if dollar_tag(bytes, at).is_some() => PieceKind::Quoted,
        _ => PieceKind::Code,
    })
}

fn dollar_tag(bytes: &[u8], at: usize) -> Option<usize> {
    let inner = bytes[at + 1..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let starts_with_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    (bytes.get(at + 1 + inner) == Some(&b'$') && !starts_with_digit).then_some(at + inner + 2)
}

fn dollar_end(text: &str, at: usize) -> usize {
    let tag_end = dollar_tag(text.as_bytes(), at).unwrap_or(at + 1);
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

/// The text in lower case with quoted text and comments blanked out, so that words are found where they are code. Places stay.
pub(crate) fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        let part = &text[piece.start..piece.end];
        match piece.kind {
            PieceKind::Code | PieceKind::Semicolon => out.push_str(&part.to_ascii_lowercase()),
            PieceKind::Quoted | PieceKind::LineComment | PieceKind::BlockComment => {
                out.extend(std::iter::repeat_n(' ', part.len()))
            }
        }
    }
    out
}

/// Where each statement of a script begins, behind white space and comments.
pub(crate) fn statement_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut open = false;
    for piece in pieces(text) {
        let code = &text[piece.start..piece.end];
        match piece.kind {
            PieceKind::Semicolon => open = false,
            PieceKind::Code | PieceKind::Quoted if !open && !code.trim().is_empty() => {
                starts.push(piece.start + code.len() - code.trim_start().len());
                open = true;
            }
            PieceKind::Code | PieceKind::Quoted | PieceKind::LineComment | PieceKind::BlockComment => {}
        }
    }
    starts
}

/// The statements of a script, told apart by semicolons outside of quotes and comments.
pub(crate) fn split_statements(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for piece in pieces(text).filter(|p| p.kind == PieceKind::Semicolon) {
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
    fn statements_are_split_outside_of_quotes() {
        let text = "SELECT ';' ; -- a;b\nSELECT $x$;$x$; /* ; */ SELECT `a;b`";
        assert_eq!(split_statements(text).len(), 3);
    }
}
