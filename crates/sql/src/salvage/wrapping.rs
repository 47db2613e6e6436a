//! What stands around SQL: JSON, fences, Markdown escapes.

use super::prose::{begins_a_statement, has_phrase, hides_a_statement};
use super::{Draft, Step};
use crate::finding::{Edit, Span};
use crate::pieces::{PieceKind, pieces};

/// `{"sql": "SELECT …\n"}`: the string of the first key that names SQL.
pub(super) fn unwrap_json(draft: &mut Draft) {
    let text = draft.kept();
    if !text.trim_start().starts_with(['{', '[']) && !text.contains("```json") {
        return;
    }
    let lower = text.to_ascii_lowercase();
    let keys = ["\"corrected_sql\"", "\"sql\"", "\"query\"", "\"sql_query\"", "\"statement\"", "\"answer\""];
    let Some((at, key)) = keys.iter().find_map(|k| lower.find(k).map(|i| (i, k))) else { return };
    let after = &text[at + key.len()..];
    let Some(open) = after.find('"').filter(|&i| after[..i].trim() == ":") else { return };
    let start = at + key.len() + open + 1;
    let mut edits = Vec::new();
    let mut end = None;
    let bytes = text.as_bytes();
    let mut i = start;
    while i < bytes.len() {
        match bytes[i] {
            b'"' => {
                end = Some(i);
                break;
            }
            b'\\' if i + 1 < bytes.len() => {
                let (len, replacement) = match bytes[i + 1] {
                    b'n' => (2, "\n".to_string()),
                    b't' => (2, "\t".to_string()),
                    b'r' => (2, "\r".to_string()),
                    b'u' => match text
                        .get(i + 2..i + 6)
                        .and_then(|h| u32::from_str_radix(h, 16).ok())
                        .and_then(char::from_u32)
                    {
                        Some(c) => (6, c.to_string()),
                        None => (2, "u".to_string()),
                    },
                    b'"' => (2, "\"".to_string()),
                    b'\\' => (2, "\\".to_string()),
                    b'/' => (2, "/".to_string()),
                    _ => (1, "\\".to_string()),
                };
                edits.push(Edit { span: Span::new(i, i + len), text: replacement });
                i += len;
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    let Some(end) = end else { return };
    // What other strings of the JSON say is said to people; what stands between them is not.
    // Before it stands prose as a rule, which may begin with any word.
    let before = outside_strings(&text[..start]).to_ascii_lowercase();
    if has_phrase(&before) || hides_a_statement(&outside_strings(&text[end + 1..])) {
        return;
    }
    draft.narrow("json-wrapped", start, end);
    if !edits.is_empty() {
        draft.steps.push(Step { code: "json-wrapped", edits });
    }
}

/// What stands between the strings of JSON.
fn outside_strings(text: &str) -> String {
    let (mut within, mut escaped) = (false, false);
    let mut outside = String::new();
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if within => escaped = true,
            // Words on either side of a string are two.
            '"' => {
                within = !within;
                outside.push(' ');
            }
            _ if !within => outside.push(c),
            _ => {}
        }
    }
    outside
}

/// Marks that models put around SQL: what opens it and what closes it.
pub(super) const MARKS: &[(&str, &str)] =
    &[("```", "```"), ("<sql>", "</sql>"), ("[SQL]", "[/SQL]"), ("[sql]", "[/sql]"), ("~~~", "~~~")];

/// How models say that what comes is the answer, and what they wrote before is not.
const FINALLY: &[&str] = &["final", "correct", "fixed", "instead", "so the query", "the answer", "rewritten"];
/// How they begin what they add to an answer, whatever else they say.
const ASIDES: &[&str] =
    &["alternativ", "if you ", "you can also", "you could also", "another way", "optional", "variant"];

pub(super) fn open_fence(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) {
    for (open, close) in MARKS {
        let text = draft.kept();
        let mut blocks = Vec::new();
        let mut from = 0;
        while let Some(i) = text[from..].find(open).map(|i| from + i + open.len()) {
            let tagged =
                text[i..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '+' || c == '-')).unwrap_or(0);
            // A tag is the rest of the fence's line; in `\`\`\`SELECT 1` the word is SQL.
            let tag =
                if text[i + tagged..].starts_with(['\n', '\r']) || is_tag(&text[i..i + tagged]) { tagged } else { 0 };
            let body = i + tag;
            let end = text[body..].find(close).map_or(text.len(), |n| body + n);
            blocks.push((draft.start + body, draft.start + end));
            from = (end + close.len()).min(text.len());
        }
        if blocks.is_empty() {
            // A model that was prompted with an open fence closes it only.
            if let Some(i) = text.find(close).filter(|_| starts_like_sql(text)) {
                blocks.push((draft.start, draft.start + i));
            }
        }
        let body = |at: usize| &draft.text[blocks[at].0..blocks[at].1];
        let whole: Vec<usize> = (0..blocks.len()).filter(|&i| !body(i).trim().is_empty() && parses(body(i))).collect();
        let best = whole.iter().copied().reduce(|kept, next| {
            // The first is the answer, unless a later one is said to be it.
            let between = draft.text[blocks[kept].1..blocks[next].0].to_ascii_lowercase();
            let says = |words: &[&str]| words.iter().any(|word| between.contains(word));
            if says(FINALLY) && !says(ASIDES) && starts_like_sql(body(next)) { next } else { kept }
        });
        let best = best.or_else(|| (0..blocks.len()).rfind(|&i| starts_like_sql(body(i))));
        if let Some(best) = best {
            // The other blocks hold queries of their own, of which a clause on a line of its own is part.
            let hides = |at: usize| match starts_like_sql(body(at)) && parses(body(at)) {
                true => begins_a_statement(body(at)) || does_more(body(at)),
                false => hides_a_statement(body(at)),
            };
            let mut edge = draft.start;
            let mut hidden = (0..blocks.len()).any(|i| i != best && hides(i));
            for &(start, end) in &blocks {
                hidden |= hides_a_statement(&draft.text[edge.min(start)..start]);
                edge = end;
            }
            if hidden || hides_a_statement(&draft.text[edge..draft.end]) {
                return;
            }
            let (start, end) = blocks[best];
            draft.narrow("code-fence", start, end);
            return;
        }
    }
}

/// Whether a query in a block that is not the answer keeps what it finds, or has another one behind it.
fn does_more(text: &str) -> bool {
    let code: String =
        pieces(text).filter(|p| p.kind != PieceKind::LineComment).map(|p| &text[p.start..p.end]).collect();
    let into = code.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("into"));
    into || code.trim().trim_end_matches(';').contains(';')
}

pub(super) fn is_tag(word: &str) -> bool {
    const TAGS: &[&str] = &[
        "sql",
        "sqlite",
        "postgresql",
        "postgres",
        "mysql",
        "json",
        "text",
        "plaintext",
        "tsql",
        "hive",
        "spark",
        "trino",
        "presto",
        "pgsql",
    ];
    TAGS.iter().any(|t| t.eq_ignore_ascii_case(word))
}

pub(super) fn starts_like_sql(text: &str) -> bool {
    let word: String =
        text.trim_start().trim_start_matches('(').chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    word.eq_ignore_ascii_case("select") || word.eq_ignore_ascii_case("with")
}

/// What is written for a character, and the character.
const ESCAPES: &[(&str, &str)] = &[
    ("\\_", "_"),
    ("\\*", "*"),
    ("\\>", ">"),
    ("\\<", "<"),
    ("\\n", "\n"),
    ("\\\"", "\""),
    ("\\'", "''"),
    ("&gt;", ">"),
    ("&lt;", "<"),
    ("&amp;", "&"),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&nbsp;", " "),
];

/// `first\_name`, `a &gt; b`: escapes of Markdown and HTML that are no SQL.
pub(super) fn unescape(draft: &mut Draft) {
    let mut edits = Vec::new();
    let text = draft.kept();
    // Where no entity stands outside of quotes, those inside are what they are.
    let code =
        |at: usize| pieces(text).filter(|p| p.kind == PieceKind::Code).any(|piece| piece.start <= at && at < piece.end);
    let is_entity = |from: &str| from.starts_with('&');
    let mut entities =
        ESCAPES.iter().filter(|(from, _)| is_entity(from)).flat_map(|(from, _)| text.match_indices(from));
    let outside = entities.any(|(at, _)| code(at));
    let known = ESCAPES.iter().filter(|(from, _)| outside || !is_entity(from));
    for (i, pair) in known.flat_map(|(from, to)| text.match_indices(from).map(move |(i, _)| (i, (from, to)))) {
        let at = draft.start + i;
        edits.push(Edit { span: Span::new(at, at + pair.0.len()), text: (*pair.1).to_string() });
    }
    if !edits.is_empty() {
        edits.sort_by_key(|e| e.span.start);
        draft.steps.push(Step { code: "escaped-characters", edits });
    }
}
