//! Converts byte offsets to lines and columns, and extracts the snippet of a finding.

use std::borrow::Cow;
use std::ops::Range;

use querymend_sql::Span;

/// Maximum length of a snippet, in bytes. Longer ones are truncated around the finding.
const MAX_SNIPPET_BYTES: usize = 4_000;
/// Number of bytes kept on either side of the finding in a truncated snippet.
const SNIPPET_CONTEXT_BYTES: usize = 200;

/// Text with the byte offsets of its line starts.
pub struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

/// Lines of a text with a highlighted range.
#[derive(Debug, PartialEq, Eq)]
pub struct Snippet<'t> {
    /// Text of the lines, without the final line break.
    pub text: Cow<'t, str>,
    /// Number of the first line, starting at 1.
    pub line: usize,
    /// Column of the finding in its line, in characters starting at 1.
    pub column: usize,
    /// Range of the finding, in bytes of `text`.
    pub highlight: Range<usize>,
    /// `true` if the start of the line was truncated.
    pub is_start_truncated: bool,
}

impl<'t> LineIndex<'t> {
    /// Indexes the lines of a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, starts: std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect() }
    }

    /// Returns the line and column of a byte offset, both starting at 1; columns count characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = floor_char_boundary(self.text, offset);
        let line = self.line_of(offset);
        // Count only the first byte of each character: UTF-8 continuation bytes begin with the bits
        // 10.
        let before = &self.text.as_bytes()[self.starts[line]..offset];
        (line + 1, before.iter().filter(|b| **b & 0xc0 != 0x80).count() + 1)
    }

    /// Returns the lines that a span touches.
    pub fn snippet(&self, span: Span) -> Snippet<'t> {
        let start = floor_char_boundary(self.text, span.start);
        let mut end = floor_char_boundary(self.text, span.end).max(start);
        // Exclude the line that begins where the span ends.
        while end > start + 1 && matches!(self.text.as_bytes()[end - 1], b'\n' | b'\r') {
            end -= 1;
        }
        let (line, column) = self.line_column(start);
        let from = self.starts[line - 1];
        let mut to = self.line_end(self.line_of(end));
        if to - from > MAX_SNIPPET_BYTES && self.line_of(end) + 1 > line {
            to = self.line_end(line - 1);
            end = end.min(to).max(start);
        }
        let (mut from, mut to) = (from, to);
        let (mut left, mut right) = ("", "");
        if to - from > MAX_SNIPPET_BYTES {
            let near = floor_char_boundary(self.text, start.saturating_sub(SNIPPET_CONTEXT_BYTES));
            let far = floor_char_boundary(self.text, end.min(start + SNIPPET_CONTEXT_BYTES) + SNIPPET_CONTEXT_BYTES);
            if near > from {
                (from, left) = (near, "…");
            }
            if far < to {
                (to, right) = (far, "…");
            }
            end = end.min(to);
        }
        let cut = !left.is_empty();
        let shown = mask_c1_controls(&self.text[from..to]);
        let marked = start - from + left.len()..end - from + left.len();
        let text = if left.is_empty() && right.is_empty() { shown } else { format!("{left}{shown}{right}").into() };
        Snippet { text, line, column, highlight: marked, is_start_truncated: cut }
    }

    fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    fn line_end(&self, line: usize) -> usize {
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let start = self.starts[line];
        if end > start && self.text.as_bytes()[end - 1] == b'\r' { end - 1 } else { end }
    }
}

/// Masks the C1 control characters U+0080 to U+009F.
///
/// Some terminals interpret them, and the renderer does not escape them. The replacement has the
/// same number of bytes, so spans remain valid.
fn mask_c1_controls(text: &str) -> Cow<'_, str> {
    let bad = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(bad) { text.replace(bad, "·").into() } else { text.into() }
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, span: (usize, usize), shown: &str, place: (usize, usize), marked: &str) {
        let piece = LineIndex::new(text).snippet(Span::new(span.0, span.1));
        assert_eq!((&*piece.text, (piece.line, piece.column)), (shown, place), "{text:?}");
        assert_eq!(&piece.text[piece.highlight.clone()], marked, "{text:?}");
    }

    #[test]
    fn returns_only_the_lines_of_the_span() {
        check("a\nbcd\ne", (3, 4), "bcd", (2, 2), "c");
        check("a\r\nbcd\r\ne", (4, 5), "bcd", (2, 2), "c");
        check("a\nbcd\ne", (0, 4), "a\nbcd", (1, 1), "a\nbc");
        check("a\nbcd\n", (2, 6), "bcd", (2, 1), "bcd");
        check("ab", (2, 2), "ab", (1, 3), "");
        check("ab\n", (3, 3), "", (2, 1), "");
        check("", (0, 0), "", (1, 1), "");
        check("ab", (7, 9), "ab", (1, 3), "");
    }

    #[test]
    fn counts_columns_in_characters_and_highlights_in_bytes() {
        check("é → x", (7, 8), "é → x", (1, 5), "x");
        // A span that ends inside a character is truncated to the previous boundary.
        check("é → x", (0, 1), "é → x", (1, 1), "");
        check("a\u{9b}b", (3, 4), "a·b", (1, 3), "b");
    }

    #[test]
    fn truncates_long_lines_around_the_span() {
        let text = format!("{}needle{}", "x".repeat(5_000), "y".repeat(5_000));
        let piece = LineIndex::new(&text).snippet(Span::new(5_000, 5_006));
        assert_eq!(&piece.text[piece.highlight.clone()], "needle");
        assert_eq!((piece.line, piece.column), (1, 5_001));
        assert!(piece.text.len() < 500 && piece.text.starts_with("…x") && piece.text.ends_with("y…"), "{}", piece.text);
        // A finding that is itself too long is shown from its start.
        let piece = LineIndex::new(&text).snippet(Span::new(0, text.len()));
        assert!(piece.text.len() < 500 && piece.highlight.start == 0 && piece.highlight.end < 500);
        let lines = "ab\n".repeat(3_000);
        assert_eq!(LineIndex::new(&lines).snippet(Span::new(3, 9_000)).text, "ab");
    }
}
