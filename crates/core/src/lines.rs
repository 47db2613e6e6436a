//! Lines and columns of a text, and the piece of it that a finding is shown under.

use std::borrow::Cow;
use std::ops::Range;

use querymend_sql::Span;

/// A piece longer than this is cut down to what stands around the finding: nobody reads a line of a megabyte.
const LONGEST_PIECE: usize = 4_000;
/// What is kept on either side of the finding then.
const AROUND: usize = 200;

/// A text, with the places where its lines begin.
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

/// Some lines of a text and what is marked in them.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'t> {
    /// The lines, without the end of the last.
    pub text: Cow<'t, str>,
    /// Number of the first one, from 1.
    pub line: usize,
    /// Column of the finding in its line, in characters from 1.
    pub column: usize,
    /// The finding, in bytes of `text`.
    pub marked: Range<usize>,
    /// The beginning of the line is not there.
    pub cut: bool,
}

impl<'t> Lines<'t> {
    /// Finds the lines once.
    pub fn new(text: &'t str) -> Self {
        Self { text, starts: std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect() }
    }

    /// Line and column, both from 1 and in characters, of a byte.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = floor(self.text, offset);
        let line = self.line(offset);
        // A character is its first byte; the others begin with the bits 10.
        let before = &self.text.as_bytes()[self.starts[line]..offset];
        (line + 1, before.iter().filter(|b| **b & 0xc0 != 0x80).count() + 1)
    }

    /// The lines that a span touches.
    pub fn piece(&self, span: Span) -> Piece<'t> {
        let start = floor(self.text, span.start);
        let mut end = floor(self.text, span.end).max(start);
        // The line that only begins where the span ends is not part of it.
        while end > start + 1 && matches!(self.text.as_bytes()[end - 1], b'\n' | b'\r') {
            end -= 1;
        }
        let (line, column) = self.line_column(start);
        let from = self.starts[line - 1];
        let mut to = self.end_of(self.line(end));
        if to - from > LONGEST_PIECE && self.line(end) + 1 > line {
            to = self.end_of(line - 1);
            end = end.min(to).max(start);
        }
        let (mut from, mut to) = (from, to);
        let (mut left, mut right) = ("", "");
        if to - from > LONGEST_PIECE {
            let near = floor(self.text, start.saturating_sub(AROUND));
            let far = floor(self.text, end.min(start + AROUND) + AROUND);
            if near > from {
                (from, left) = (near, "…");
            }
            if far < to {
                (to, right) = (far, "…");
            }
            end = end.min(to);
        }
        let cut = !left.is_empty();
        let shown = visible(&self.text[from..to]);
        let marked = start - from + left.len()..end - from + left.len();
        let text = if left.is_empty() && right.is_empty() { shown } else { format!("{left}{shown}{right}").into() };
        Piece { text, line, column, marked, cut }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    fn end_of(&self, line: usize) -> usize {
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let start = self.starts[line];
        if end > start && self.text.as_bytes()[end - 1] == b'\r' { end - 1 } else { end }
    }
}

/// The renderer makes most control characters visible, but lets those between U+0080 and U+009F through, which some
/// terminals obey. The mark that stands for them has as many bytes, so that spans still fit.
fn visible(text: &str) -> Cow<'_, str> {
    let bad = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(bad) { text.replace(bad, "·").into() } else { text.into() }
}

fn floor(text: &str, offset: usize) -> usize {
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
        let piece = Lines::new(text).piece(Span::new(span.0, span.1));
        assert_eq!((&*piece.text, (piece.line, piece.column)), (shown, place), "{text:?}");
        assert_eq!(&piece.text[piece.marked.clone()], marked, "{text:?}");
    }

    #[test]
    fn a_finding_is_shown_with_its_lines_and_no_others() {
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
    fn columns_count_characters_and_marks_count_bytes() {
        check("é → x", (7, 8), "é → x", (1, 5), "x");
        // The span ends inside a character; it is cut at the one before.
        check("é → x", (0, 1), "é → x", (1, 1), "");
        check("a\u{9b}b", (3, 4), "a·b", (1, 3), "b");
    }

    #[test]
    fn long_lines_are_cut_around_the_finding() {
        let text = format!("{}needle{}", "x".repeat(5_000), "y".repeat(5_000));
        let piece = Lines::new(&text).piece(Span::new(5_000, 5_006));
        assert_eq!(&piece.text[piece.marked.clone()], "needle");
        assert_eq!((piece.line, piece.column), (1, 5_001));
        assert!(piece.text.len() < 500 && piece.text.starts_with("…x") && piece.text.ends_with("y…"), "{}", piece.text);
        // A finding that is itself too long is shown from its beginning.
        let piece = Lines::new(&text).piece(Span::new(0, text.len()));
        assert!(piece.text.len() < 500 && piece.marked.start == 0 && piece.marked.end < 500);
        let lines = "ab\n".repeat(3_000);
        assert_eq!(Lines::new(&lines).piece(Span::new(3, 9_000)).text, "ab");
    }
}
