//! Normalizes Unicode look-alikes of SQL punctuation: typographic quotes and spaces, full-width
//! punctuation, zero-width characters. Also removes comments in the syntax of other languages.

use super::prose::has_hidden_statement;
use super::{ExtractionBuffer, ExtractionStep, deletion, parses_as_selected};
use crate::finding::{Edit, Span};
use crate::text::lexical::{SegmentKind, segments};

/// Full-width East Asian punctuation with its equivalent in SQL.
const FULL_WIDTH_PUNCTUATION: &[(char, &str)] = &[
    ('（', "("),
    ('）', ")"),
    ('，', ","),
    ('；', ";"),
    ('＝', "="),
    ('＜', "<"),
    ('＞', ">"),
    ('！', "!"),
    ('＊', "*"),
    ('＋', "+"),
    ('－', "-"),
    ('．', "."),
];

fn is_typographic_single_quote(c: char) -> bool {
    matches!(c, '‘' | '’' | '‚' | '‛')
}

fn is_typographic_double_quote(c: char) -> bool {
    matches!(c, '“' | '”' | '„' | '‟')
}

fn is_unicode_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}')
}

/// Returns whether a character is invisible and has no meaning in SQL.
fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

/// Returns whether text contains quotes or spaces that no engine treats as such.
///
/// They turn a literal into an identifier, so they are looked for even in text that parses. An
/// alias after AS may contain them, and runs.
pub(crate) fn has_typographic_quotes(text: &str) -> bool {
    let compared = |at: usize| {
        let before = text[..at].trim_end();
        let word = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        before.ends_with(['=', '<', '>', '(']) || word.eq_ignore_ascii_case("like")
    };
    text.char_indices().any(|(i, c)| {
        is_unicode_space(c) || ((is_typographic_single_quote(c) || is_typographic_double_quote(c)) && compared(i))
    })
}

/// Normalizes punctuation outside of quoted text, if the result parses.
pub(super) fn normalize_punctuation(
    buffer: &mut ExtractionBuffer,
    full_width: bool,
    parses: &dyn Fn(&str) -> bool,
) -> bool {
    let text = buffer.selected();
    if text.is_ascii() {
        return false;
    }
    let mut edits: Vec<Edit> = Vec::new();
    // Open typographic quote: `true` for a double, `false` for a single one.
    let mut open: Option<bool> = None;
    for piece in segments(text).filter(|p| p.kind == SegmentKind::Code) {
        let code = &text[piece.start..piece.end];
        for (i, c) in code.char_indices() {
            let behind = code[i + c.len_utf8()..].chars().next();
            let before = code[..i].chars().next_back();
            let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let plain = match open {
                Some(double) if double && is_typographic_double_quote(c) => {
                    open = None;
                    "\""
                }
                // An apostrophe inside the literal.
                Some(false) if is_typographic_single_quote(c) && letter(before) && letter(behind) => "''",
                Some(double) if !double && is_typographic_single_quote(c) => {
                    open = None;
                    "'"
                }
                Some(_) => continue,
                None if is_typographic_double_quote(c) && !letter(before) => {
                    open = Some(true);
                    "\""
                }
                None if is_typographic_single_quote(c) && !letter(before) => {
                    open = Some(false);
                    "'"
                }
                None if is_unicode_space(c) => " ",
                // Inside or before a name it may disguise another name, which is rejected rather
                // than repaired.
                None if is_zero_width(c) && (buffer.start + piece.start + i == 0 || !letter(behind)) => "",
                None => match FULL_WIDTH_PUNCTUATION.iter().find(|(wide, _)| *wide == c && full_width) {
                    Some((_, plain)) => plain,
                    None => continue,
                },
            };
            let at = buffer.start + piece.start + i;
            edits.push(Edit { span: Span::new(at, at + c.len_utf8()), text: plain.into() });
        }
    }
    if edits.is_empty() || edits.len() > MAX_PUNCTUATION_EDITS || open.is_some() {
        return false;
    }
    buffer.steps.push(ExtractionStep { code: "typographic-punctuation", edits });
    let done = parses_as_selected(buffer, parses);
    if !done {
        buffer.steps.pop();
    }
    done
}

/// Maximum number of replacements. A genuine query does not need more.
const MAX_PUNCTUATION_EDITS: usize = 200;

/// Removes `# so` and `// so` comments up to the end of the line, in dialects without such
/// comments.
///
/// Removes nothing if the rest of the line may be part of the query.
pub(super) fn strip_foreign_comments(buffer: &mut ExtractionBuffer, parses: &dyn Fn(&str) -> bool) -> bool {
    const CLAUSE_KEYWORDS: &[&str] =
        &["SELECT", "FROM", "WHERE", "JOIN", "ON", "AND", "OR", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION"];
    let text = buffer.selected();
    let mut edits: Vec<Edit> = Vec::new();
    let mut past = 0;
    for piece in segments(text).filter(|p| p.kind == SegmentKind::Code) {
        let code = &text[piece.start..piece.end];
        for mark in ["#", "//"] {
            for (i, _) in code.match_indices(mark) {
                let at = piece.start + i;
                if at < past || !text[..at].ends_with(|c: char| c.is_whitespace()) {
                    continue;
                }
                let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
                let body = text[at..end].trim_start_matches(['#', '/']);
                let words: Vec<&str> = body.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()).collect();
                let goes_on =
                    words.first().is_some_and(|w| CLAUSE_KEYWORDS.iter().any(|word| w.eq_ignore_ascii_case(word)));
                // A single token or a number may be an operand: `a // 2` divides, `a # b` is an
                // operator.
                let value = words.len() < 2 || body.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(');
                let query = goes_on || value || words.iter().any(|w| CLAUSE_KEYWORDS.contains(w));
                if query || body.contains(['\'', '"', '`', ';']) || has_hidden_statement(body) {
                    return false;
                }
                edits.push(deletion(buffer.start + at, buffer.start + end));
                past = end;
            }
        }
    }
    edits.sort_by_key(|e| e.span.start);
    if edits.is_empty() || !parses(&buffer.render(buffer.start, buffer.end, &edits)) {
        return false;
    }
    buffer.steps.push(ExtractionStep { code: "foreign-comment", edits });
    true
}
