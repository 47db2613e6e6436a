//! Unwraps SQL from JSON, code fences and Markdown escapes.

use super::prose::{has_hidden_statement, has_non_query_statement, has_statement_phrase, starts_with_query_keyword};
use super::{ExtractionBuffer, ExtractionStep};
use crate::finding::{Edit, Span};
use crate::text::lexical::{SegmentKind, segments};

/// Extracts the string value of the first JSON key that names SQL: `{"sql": "SELECT …\n"}`.
pub(super) fn unwrap_json(buffer: &mut ExtractionBuffer) {
    let text = buffer.selected();
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
    // Other JSON strings are explanations for a reader, so only text outside of strings is checked.
    // Text before the value is usually prose, which may begin with any keyword.
    let before = outside_json_strings(&text[..start]).to_ascii_lowercase();
    if has_statement_phrase(&before) || has_hidden_statement(&outside_json_strings(&text[end + 1..])) {
        return;
    }
    buffer.narrow("json-wrapped", start, end);
    if !edits.is_empty() {
        buffer.steps.push(ExtractionStep { code: "json-wrapped", edits });
    }
}

/// Returns the text outside of JSON strings.
fn outside_json_strings(text: &str) -> String {
    let (mut within, mut escaped) = (false, false);
    let mut outside = String::new();
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if within => escaped = true,
            // A string separates the tokens on either side of it.
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

/// Delimiters that models put around SQL: opening and closing.
pub(super) const FENCES: &[(&str, &str)] =
    &[("```", "```"), ("<sql>", "</sql>"), ("[SQL]", "[/SQL]"), ("[sql]", "[/sql]"), ("~~~", "~~~")];

/// Phrases that introduce the final answer, so that earlier blocks are drafts.
const FINAL_ANSWER_PHRASES: &[&str] =
    &["final", "correct", "fixed", "instead", "so the query", "the answer", "rewritten"];
/// Phrases that introduce an alternative to the answer. They override `FINAL_ANSWER_PHRASES`.
const ALTERNATIVE_PHRASES: &[&str] =
    &["alternativ", "if you ", "you can also", "you could also", "another way", "optional", "variant"];

pub(super) fn unwrap_fence(buffer: &mut ExtractionBuffer, parses: &dyn Fn(&str) -> bool) {
    for (open, close) in FENCES {
        let text = buffer.selected();
        let mut blocks = Vec::new();
        let mut from = 0;
        while let Some(i) = text[from..].find(open).map(|i| from + i + open.len()) {
            let tagged =
                text[i..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '+' || c == '-')).unwrap_or(0);
            // A tag is the rest of the fence's line or a known language; in `\`\`\`SELECT 1` the
            // token is SQL.
            let tag = if text[i + tagged..].starts_with(['\n', '\r']) || is_language_tag(&text[i..i + tagged]) {
                tagged
            } else {
                0
            };
            let body = i + tag;
            let end = text[body..].find(close).map_or(text.len(), |n| body + n);
            blocks.push((buffer.start + body, buffer.start + end));
            from = (end + close.len()).min(text.len());
        }
        if blocks.is_empty() {
            // A model that was prompted with an open fence only writes the closing one.
            if let Some(i) = text.find(close).filter(|_| starts_with_query_keyword(text)) {
                blocks.push((buffer.start, buffer.start + i));
            }
        }
        let body = |at: usize| &buffer.text[blocks[at].0..blocks[at].1];
        let whole: Vec<usize> = (0..blocks.len()).filter(|&i| !body(i).trim().is_empty() && parses(body(i))).collect();
        let best = whole.iter().copied().reduce(|kept, next| {
            // The first block is the answer, unless the text introduces a later one as such.
            let between = buffer.text[blocks[kept].1..blocks[next].0].to_ascii_lowercase();
            let says = |words: &[&str]| words.iter().any(|word| between.contains(word));
            if says(FINAL_ANSWER_PHRASES) && !says(ALTERNATIVE_PHRASES) && starts_with_query_keyword(body(next)) {
                next
            } else {
                kept
            }
        });
        let best = best.or_else(|| (0..blocks.len()).rfind(|&i| starts_with_query_keyword(body(i))));
        if let Some(best) = best {
            // Another block may be a query of its own, in which a line may begin with a clause.
            let hides = |at: usize| match starts_with_query_keyword(body(at)) && parses(body(at)) {
                true => has_non_query_statement(body(at)) || has_into_or_next_statement(body(at)),
                false => has_hidden_statement(body(at)),
            };
            let mut edge = buffer.start;
            let mut hidden = (0..blocks.len()).any(|i| i != best && hides(i));
            for &(start, end) in &blocks {
                hidden |= has_hidden_statement(&buffer.text[edge.min(start)..start]);
                edge = end;
            }
            if hidden || has_hidden_statement(&buffer.text[edge..buffer.end]) {
                return;
            }
            let (start, end) = blocks[best];
            buffer.narrow("code-fence", start, end);
            return;
        }
    }
}

/// Returns whether a query outside of the answer writes its result, or is followed by another
/// statement.
fn has_into_or_next_statement(text: &str) -> bool {
    let code: String =
        segments(text).filter(|p| p.kind != SegmentKind::LineComment).map(|p| &text[p.start..p.end]).collect();
    let into = code.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("into"));
    into || code.trim().trim_end_matches(';').contains(';')
}

pub(super) fn is_language_tag(word: &str) -> bool {
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

/// Escape sequences and the characters they represent.
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

/// Replaces escapes of Markdown and HTML that are not SQL: `first\_name`, `a &gt; b`.
pub(super) fn unescape_markup(buffer: &mut ExtractionBuffer) {
    let mut edits = Vec::new();
    let text = buffer.selected();
    // If no entity occurs outside of quotes, those inside are literal text.
    let code = |at: usize| {
        segments(text).filter(|p| p.kind == SegmentKind::Code).any(|piece| piece.start <= at && at < piece.end)
    };
    let is_entity = |from: &str| from.starts_with('&');
    let mut entities =
        ESCAPES.iter().filter(|(from, _)| is_entity(from)).flat_map(|(from, _)| text.match_indices(from));
    let outside = entities.any(|(at, _)| code(at));
    let known = ESCAPES.iter().filter(|(from, _)| outside || !is_entity(from));
    for (i, pair) in known.flat_map(|(from, to)| text.match_indices(from).map(move |(i, _)| (i, (from, to)))) {
        let at = buffer.start + i;
        edits.push(Edit { span: Span::new(at, at + pair.0.len()), text: (*pair.1).to_string() });
    }
    if !edits.is_empty() {
        edits.sort_by_key(|e| e.span.start);
        buffer.steps.push(ExtractionStep { code: "escaped-characters", edits });
    }
}
