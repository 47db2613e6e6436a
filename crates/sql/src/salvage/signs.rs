//! Signs that look like those of SQL and are others: quotes and spaces of a word processor, full-width signs, letters that nobody
//! sees. And comments as other languages write them.

use super::prose::hides_a_statement;
use super::{Draft, Step, cut, settled};
use crate::finding::{Edit, Span};
use crate::pieces::{PieceKind, pieces};

/// Signs of East Asian typing that have a double among those of SQL.
const FULL_WIDTH: &[(char, &str)] = &[
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

fn is_single(c: char) -> bool {
    matches!(c, '‘' | '’' | '‚' | '‛')
}

fn is_double(c: char) -> bool {
    matches!(c, '“' | '”' | '„' | '‟')
}

fn is_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}')
}

/// Letters that nobody sees and that mean nothing in SQL.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
}

/// Quotes and spaces that no engine takes for such: they make a name of what was meant as text, so that this is looked for even
/// in text that parses.
/// A name that is given with AS may have them, and runs.
pub(crate) fn has_typographic_quotes(text: &str) -> bool {
    let compared = |at: usize| {
        let before = text[..at].trim_end();
        let word = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        before.ends_with(['=', '<', '>', '(']) || word.eq_ignore_ascii_case("like")
    };
    text.char_indices().any(|(i, c)| is_space(c) || ((is_single(c) || is_double(c)) && compared(i)))
}

/// Writes each sign as SQL does, outside of quoted text, if that makes a query of it.
pub(super) fn plain_signs(draft: &mut Draft, widths: bool, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = draft.kept();
    if text.is_ascii() {
        return false;
    }
    let mut edits: Vec<Edit> = Vec::new();
    // The sign that closes the quoted text which began with a typographic quote.
    let mut open: Option<bool> = None;
    for piece in pieces(text).filter(|p| p.kind == PieceKind::Code) {
        let code = &text[piece.start..piece.end];
        for (i, c) in code.char_indices() {
            let behind = code[i + c.len_utf8()..].chars().next();
            let before = code[..i].chars().next_back();
            let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let plain = match open {
                Some(double) if double && is_double(c) => {
                    open = None;
                    "\""
                }
                // An apostrophe inside of it.
                Some(false) if is_single(c) && letter(before) && letter(behind) => "''",
                Some(double) if !double && is_single(c) => {
                    open = None;
                    "'"
                }
                Some(_) => continue,
                None if is_double(c) && !letter(before) => {
                    open = Some(true);
                    "\""
                }
                None if is_single(c) && !letter(before) => {
                    open = Some(false);
                    "'"
                }
                None if is_space(c) => " ",
                // Inside of a name, or before it, it may be there to make another name of it: that is refused, and not mended.
                None if is_unseen(c) && (draft.start + piece.start + i == 0 || !letter(behind)) => "",
                None => match FULL_WIDTH.iter().find(|(wide, _)| *wide == c && widths) {
                    Some((_, plain)) => plain,
                    None => continue,
                },
            };
            let at = draft.start + piece.start + i;
            edits.push(Edit { span: Span::new(at, at + c.len_utf8()), text: plain.into() });
        }
    }
    if edits.is_empty() || edits.len() > MOST_SIGNS || open.is_some() {
        return false;
    }
    draft.steps.push(Step { code: "typographic-signs", edits });
    let done = settled(draft, parses);
    if !done {
        draft.steps.pop();
    }
    done
}

/// More of them are in no query that somebody wrote.
const MOST_SIGNS: usize = 200;

/// `# so` and `// so` to the end of a line, where the dialect has no such comments. What could be a part of the query on the same
/// line is not taken away.
pub(super) fn foreign_comments(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    const WORDS: &[&str] =
        &["SELECT", "FROM", "WHERE", "JOIN", "ON", "AND", "OR", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION"];
    let text = draft.kept();
    let mut edits: Vec<Edit> = Vec::new();
    let mut past = 0;
    for piece in pieces(text).filter(|p| p.kind == PieceKind::Code) {
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
                let goes_on = words.first().is_some_and(|w| WORDS.iter().any(|word| w.eq_ignore_ascii_case(word)));
                // One word or number behind it may be a value: `a // 2` divides, `a # b` is an operator.
                let value = words.len() < 2 || body.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(');
                let query = goes_on || value || words.iter().any(|w| WORDS.contains(w));
                if query || body.contains(['\'', '"', '`', ';']) || hides_a_statement(body) {
                    return false;
                }
                edits.push(cut(draft.start + at, draft.start + end));
                past = end;
            }
        }
    }
    edits.sort_by_key(|e| e.span.start);
    if edits.is_empty() || !parses(&draft.render(draft.start, draft.end, &edits)) {
        return false;
    }
    draft.steps.push(Step { code: "foreign-comment", edits });
    true
}
