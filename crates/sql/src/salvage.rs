//! The SQL inside a model's text: fences, prose, escapes, continuation.
//!
//! Each step is a change to the text as given, so that it can be shown as a finding with a fix. Nothing here decides
//! whether a query may run: what comes out is reviewed like anything else, and what would hide a second statement
//! that changes data is not salvaged at all.

use crate::finding::{Edit, Span};
use crate::query::{PieceKind, pieces};

/// One thing that was done to get at the SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The rule that reports it.
    pub code: &'static str,
    /// What was changed in the given text.
    pub edits: Vec<Edit>,
}

/// The edits of all steps, sorted; steps never touch the same bytes.
pub(crate) fn edits(steps: &[Step]) -> Vec<Edit> {
    let mut all: Vec<Edit> = steps.iter().flat_map(|s| s.edits.iter().cloned()).collect();
    all.sort_by_key(|e| (e.span.start, e.span.end));
    all
}

/// A semicolon after the only statement is harmless and common; it is noted so that what is sent is one statement.
pub(crate) fn trailing_semicolon(text: &str) -> Option<Step> {
    let trimmed = text.trim_end();
    let kept = trimmed.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    (kept.len() < trimmed.len()).then(|| Step { code: "trailing-semicolon", edits: vec![cut(kept.len(), text.len())] })
}

/// A query on one line whose comment runs to its end: line ends were lost, and the comment has swallowed the clauses
/// behind it. It parses all the same, so this is looked for even then.
pub(crate) fn swallowed_clauses(text: &str, parses: &dyn Fn(&str) -> bool) -> Vec<Step> {
    if text.trim().contains('\n') || !text.contains("--") || !starts_like_sql(text) {
        return Vec::new();
    }
    let mut draft = Draft { text, start: 0, end: text.len(), steps: Vec::new() };
    unflatten_comments(&mut draft, parses);
    draft.steps
}

fn cut(start: usize, end: usize) -> Edit {
    Edit { span: Span::new(start, end), text: String::new() }
}

/// The part of the text that is kept, and what is replaced in it.
struct Draft<'t> {
    text: &'t str,
    start: usize,
    end: usize,
    steps: Vec<Step>,
}

impl<'t> Draft<'t> {
    fn inner(&self) -> Vec<Edit> {
        let all = edits(&self.steps);
        all.into_iter().filter(|e| e.span.start >= self.start && e.span.end <= self.end).collect()
    }

    fn render(&self, start: usize, end: usize, more: &[Edit]) -> String {
        let mut all = self.inner();
        all.extend_from_slice(more);
        all.sort_by_key(|e| (e.span.start, e.span.end));
        let mut out = String::with_capacity(end - start);
        let mut at = start;
        for edit in all.iter().filter(|e| e.span.start >= start && e.span.end <= end) {
            if edit.span.start < at {
                continue;
            }
            out.push_str(&self.text[at..edit.span.start]);
            out.push_str(&edit.text);
            at = edit.span.end;
        }
        out.push_str(&self.text[at..end]);
        out
    }

    fn kept(&self) -> &'t str {
        &self.text[self.start..self.end]
    }

    fn narrow(&mut self, code: &'static str, start: usize, end: usize) {
        let mut edits = Vec::new();
        if start > self.start {
            edits.push(cut(self.start, start));
        }
        if end < self.end {
            edits.push(cut(end, self.end));
        }
        if !edits.is_empty() {
            self.steps.retain_mut(|s| {
                s.edits.retain(|e| {
                    (e.span.start >= start && e.span.end <= end) || e.span.end <= self.start || e.span.start >= self.end
                });
                !s.edits.is_empty()
            });
            self.steps.push(Step { code, edits });
        }
        (self.start, self.end) = (start, end);
    }
}

/// Finds the SQL in a text that does not parse as it stands. The steps are those of the first form that parses; if
/// none does, those that are right in any case (a fence is a fence), so that the rest is reported at its place.
pub(crate) fn salvage(text: &str, parses: &dyn Fn(&str) -> bool) -> Vec<Step> {
    let mut draft = Draft { text, start: 0, end: text.len(), steps: Vec::new() };
    unwrap_json(&mut draft);
    open_fence(&mut draft, parses);
    let mut done = settled(&draft, parses);
    if !done {
        unescape(&mut draft);
        done = settled(&draft, parses);
    }
    let sure = draft.steps.clone();
    if !done {
        done = mend_apostrophes(&mut draft, parses)
            || unflatten_comments(&mut draft, parses)
            || cut_prose(&mut draft, parses);
    }
    if !done {
        draft.steps = sure;
        return draft.steps;
    }
    let kept = draft.kept();
    let bare = kept.trim_end().trim_end_matches(|c: char| c == ';' || c.is_whitespace()).len();
    if bare < kept.trim_end().len() {
        let (start, end) = (draft.start, draft.start + bare);
        draft.narrow("trailing-semicolon", start, end);
    }
    draft.steps
}

fn settled(draft: &Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    let sql = draft.render(draft.start, draft.end, &[]);
    !sql.trim().is_empty() && parses(&sql)
}

/// `{"sql": "SELECT …\n"}`: the string of the first key that names SQL.
fn unwrap_json(draft: &mut Draft) {
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
    draft.narrow("json-wrapped", start, end);
    if !edits.is_empty() {
        draft.steps.push(Step { code: "json-wrapped", edits });
    }
}

/// Marks that models put around SQL: what opens it and what closes it.
const MARKS: &[(&str, &str)] =
    &[("```", "```"), ("<sql>", "</sql>"), ("[SQL]", "[/SQL]"), ("[sql]", "[/sql]"), ("~~~", "~~~")];

fn open_fence(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) {
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
        let best = blocks.iter().find(|(s, e)| parses(&draft.text[*s..*e]) && !draft.text[*s..*e].trim().is_empty());
        let best = best.or_else(|| blocks.iter().find(|(s, e)| starts_like_sql(&draft.text[*s..*e]))).copied();
        if let Some((start, end)) = best {
            if hides_a_statement(&draft.text[draft.start..start]) || hides_a_statement(&draft.text[end..draft.end]) {
                return;
            }
            draft.narrow("code-fence", start, end);
            return;
        }
    }
}

fn is_tag(word: &str) -> bool {
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

fn starts_like_sql(text: &str) -> bool {
    let word: String =
        text.trim_start().trim_start_matches('(').chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    word.eq_ignore_ascii_case("select") || word.eq_ignore_ascii_case("with")
}

/// `first\_name`: Markdown escapes that are no SQL.
fn unescape(draft: &mut Draft) {
    let mut edits = Vec::new();
    let text = draft.kept();
    for (i, pair) in
        [("\\_", "_"), ("\\*", "*"), ("\\>", ">"), ("\\<", "<"), ("\\n", "\n"), ("\\\"", "\""), ("\\'", "''")]
            .iter()
            .flat_map(|(from, to)| text.match_indices(from).map(move |(i, _)| (i, (from, to))))
    {
        let at = draft.start + i;
        edits.push(Edit { span: Span::new(at, at + pair.0.len()), text: (*pair.1).to_string() });
    }
    if !edits.is_empty() {
        edits.sort_by_key(|e| e.span.start);
        draft.steps.push(Step { code: "escaped-characters", edits });
    }
}

/// `'O'Brien'`: a quote between two letters inside a literal is an apostrophe.
fn mend_apostrophes(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = draft.kept();
    let bytes = text.as_bytes();
    let mut edits = Vec::new();
    let mut inside = false;
    for (i, &b) in bytes.iter().enumerate() {
        if b != b'\'' {
            continue;
        }
        let before = i.checked_sub(1).map_or(b' ', |j| bytes[j]);
        let after = bytes.get(i + 1).copied().unwrap_or(b' ');
        let between_letters = before.is_ascii_alphanumeric() && (after.is_ascii_alphabetic());
        let after_plural = before == b's' && after == b' ' && inside && closes_later(&text[i + 1..]);
        if inside && (between_letters || after_plural) {
            let at = draft.start + i;
            edits.push(Edit { span: Span::new(at, at + 1), text: "''".into() });
        } else {
            inside = !inside;
        }
    }
    if edits.is_empty() || !parses(&draft.render(draft.start, draft.end, &edits)) {
        return false;
    }
    draft.steps.push(Step { code: "unescaped-apostrophe", edits });
    true
}

/// Whether a literal that goes on here is closed before the next operator begins another one.
fn closes_later(rest: &str) -> bool {
    let Some(next) = rest.find('\'') else { return false };
    let between = &rest[..next];
    !between.contains(['=', ',', '(', ')', '<', '>'])
        && !between
            .split_whitespace()
            .any(|w| ["AND", "OR", "LIKE", "IN", "THEN", "ELSE", "WHEN"].contains(&w.to_ascii_uppercase().as_str()))
}

/// Words a clause begins with; where line ends were lost, a comment ends before one of them.
const CLAUSES: &[&str] = &[
    "select", "from", "where", "join", "inner", "left", "right", "full", "cross", "on", "and", "or", "group", "order",
    "having", "limit", "union", "with",
];

/// `SELECT a -- the name FROM t`: the line end after a comment was lost, so it swallows the rest of the query.
fn unflatten_comments(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = draft.kept();
    let mut edits: Vec<Edit> = Vec::new();
    let mut tries = 0;
    for comment in pieces(text).filter(|p| p.kind == PieceKind::LineComment) {
        let body = &text[comment.start..comment.end];
        // What stands behind an earlier comment's end may itself hold the next comment.
        let mut starts: Vec<usize> = body.match_indices("--").map(|(i, _)| i).collect();
        while let Some(start) = starts.first().copied() {
            starts.remove(0);
            let limit = starts.first().copied().unwrap_or(body.len());
            let mut found = None;
            for (i, _) in body[start..limit].match_indices(' ') {
                let word: String = body[start + i + 1..].chars().take_while(|c| c.is_ascii_alphabetic()).collect();
                if CLAUSES.contains(&word.to_ascii_lowercase().as_str())
                    || body[start + i + 1..].starts_with([',', ')'])
                {
                    tries += 1;
                    let edit = cut(draft.start + comment.start + start, draft.start + comment.start + start + i + 1);
                    let mut with = edits.clone();
                    with.push(edit.clone());
                    if parses(&draft.render(draft.start, draft.end, &with)) {
                        edits = with;
                        draft.steps.push(Step { code: "flattened-comment", edits });
                        return true;
                    }
                    found.get_or_insert(edit);
                }
                if tries > 64 {
                    return false;
                }
            }
            match found {
                Some(edit) => edits.push(edit),
                None => break,
            }
        }
    }
    false
}

/// Words that begin a statement which is not a question.
const OTHER_STATEMENTS: &[&str] = &[
    "insert",
    "update",
    "delete",
    "merge",
    "replace",
    "create",
    "alter",
    "drop",
    "truncate",
    "grant",
    "revoke",
    "begin",
    "commit",
    "rollback",
    "call",
    "do",
    "exec",
    "execute",
    "set",
    "copy",
    "load",
    "attach",
    "detach",
    "pragma",
    "vacuum",
    "lock",
    "declare",
    "upsert",
    "from",
    "table",
    "values",
    "rename",
    "savepoint",
    "start",
    "explain",
    "analyze",
    "reindex",
    "use",
    "reset",
    "prepare",
    "listen",
    "notify",
];

/// Words that, following each other, are a statement wherever they stand.
const PHRASES: &[&str] = &[
    "insert into", "insert overwrite", "delete from", "drop table", "drop view", "drop schema", "drop database", "alter table",
    "truncate table", "create table", "merge into", "replace into", "grant all", "copy into",
];

/// Whether text that would be cut away looks like another statement. It is then not cut: the reviewer must see it.
fn hides_a_statement(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let begins = lower.split(['\n', ';']).any(|line| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '(' | '-' | '*' | '>' | '`' | '#' | '/'));
        let word: String = line.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        OTHER_STATEMENTS.contains(&word.as_str())
    });
    begins || {
        let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty()).collect();
        words.windows(2).any(|w| PHRASES.iter().any(|p| p.split_once(' ') == Some((w[0], w[1]))))
    }
}

/// Whether there is anything in the text that a query could begin with.
pub(crate) fn mentions_sql(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let first = words.clone().next().unwrap_or("");
    OTHER_STATEMENTS.contains(&first) || words.any(|w| matches!(w, "select" | "values" | "insert" | "update" | "delete" | "drop"))
        || !lower.contains(|c: char| c.is_ascii_alphabetic())
}

/// Prose before the query, and prose or a continued prompt behind it.
fn cut_prose(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = draft.kept();
    let lower = text.to_ascii_lowercase();
    let is_word = |i: usize, len: usize| {
        let before = i
            .checked_sub(1)
            .and_then(|j| lower.as_bytes().get(j))
            .is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_');
        let after = lower
            .as_bytes()
            .get(i + len)
            .is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'*' | b'(' | b'"' | b'\'' | b'`' | b'-'));
        before && after
    };
    let mut starts: Vec<usize> = ["select", "with"]
        .iter()
        .flat_map(|w| lower.match_indices(w).filter(|(i, w)| is_word(*i, w.len())))
        .map(|(i, _)| i)
        .collect();
    starts.sort_unstable();
    for start in starts.into_iter().take(6) {
        if hides_a_statement(&text[..start]) {
            return false;
        }
        for end in ends(&text[start..]).into_iter().map(|e| start + e).take(24) {
            let (from, to) = (draft.start + start, draft.start + end);
            if !parses(&draft.render(from, to, &[])) {
                continue;
            }
            if hides_a_statement(&text[end..]) {
                return false;
            }
            if to < draft.end {
                let begin = draft.start;
                draft.narrow("continuation", begin, to);
            }
            if from > draft.start {
                let last = draft.end;
                draft.narrow("surrounding-prose", from, last);
            }
            return true;
        }
    }
    false
}

/// Where a query may end, the longest first: at its end, before a semicolon, a fence, an empty line, or a line that
/// begins like prose.
fn ends(text: &str) -> Vec<usize> {
    let mut out = vec![text.len()];
    out.extend(pieces(text).filter(|p| p.kind == PieceKind::Semicolon).map(|p| p.start));
    out.extend(text.match_indices("```").map(|(i, _)| i));
    for (i, _) in text.match_indices('\n') {
        let next = text[i + 1..].trim_start_matches([' ', '\t', '\r']);
        let empty_line = next.starts_with('\n') && !goes_on(next.trim_start());
        let prompt = [
            "#",
            "Question",
            "Q:",
            "A:",
            "Answer",
            "Explanation",
            "Note",
            "This ",
            "The ",
            "Here",
            "Output",
            "Result",
            "</",
            "[",
            "Example",
            "Let ",
            "In this",
            "To ",
            "-- ",
            "Human",
            "User",
            "SQL",
        ];
        if empty_line || prompt.iter().any(|p| next.starts_with(p)) {
            out.push(i);
        }
    }
    out.sort_unstable_by(|a, b| b.cmp(a));
    out.dedup();
    out
}

/// Whether a line goes on with a clause of the query above it.
fn goes_on(line: &str) -> bool {
    let word: String = line.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    CLAUSES.contains(&word.to_ascii_lowercase().as_str())
        && !word.eq_ignore_ascii_case("select")
        && !word.eq_ignore_ascii_case("with")
}

#[cfg(test)]
mod tests {
    use crate::dialect::SQLITE;
    use crate::policy::Policy;
    use crate::query::Query;

    #[track_caller]
    fn check(text: &str, sql: &str, codes: &[&str]) {
        let query = Query::read(text, &SQLITE, &Policy::default());
        assert_eq!(query.sql.trim(), sql, "{:?}", query.steps);
        let found: Vec<_> = query.steps.iter().map(|s| s.code).collect();
        assert_eq!(found, codes);
        assert!(query.failure.is_none(), "{:?}", query.failure);
    }

    #[test]
    fn sql_is_found_in_what_models_write() {
        check("```sql\nSELECT 1\n```", "SELECT 1", &["code-fence"]);
        check(
            "Here it is:\n```\nSELECT a FROM t;\n```\nHope it helps!",
            "SELECT a FROM t",
            &["code-fence", "trailing-semicolon"],
        );
        check("```SELECT a FROM t```", "SELECT a FROM t", &["code-fence"]);
        check("The answer is SELECT a FROM t", "SELECT a FROM t", &["surrounding-prose"]);
        check(
            "SELECT a FROM t;\n\nQuestion: how many?\nSELECT count(*) FROM t;",
            "SELECT a FROM t",
            &["continuation", "trailing-semicolon"],
        );
        check("SELECT first\\_name FROM t", "SELECT first_name FROM t", &["escaped-characters"]);
        check("SELECT a FROM t WHERE n = 'O'Brien'", "SELECT a FROM t WHERE n = 'O''Brien'", &["unescaped-apostrophe"]);
        check("SELECT a -- the name FROM t", "SELECT a FROM t", &["flattened-comment"]);
        check(
            r#"{"sql": "SELECT \"a\"\nFROM t", "why": "…"}"#,
            "SELECT \"a\"\nFROM t",
            &["json-wrapped", "json-wrapped"],
        );
        check("SELECT 1;", "SELECT 1;", &["trailing-semicolon"]);
    }

    #[test]
    fn a_statement_that_writes_is_never_cut_away() {
        for text in [
            "SELECT 1; DROP TABLE t where is it",
            "CREATE FUNCTION f() AS $$ BEGIN SELECT 1; nonsense here $$",
            "DELETE FRM t;\nSELECT 1",
            "SELECT 1;\n-- then\nUPDATE t SET SET a",
            "To be safe DROP TABLE products; then SELECT name FROM t",
            "```sql\nSELECT 1\n```\nThen run DROP TABLE t",
            "FROM products INSERT OVERWRITE TABLE orders SELECT *",
        ] {
            let query = Query::read(text, &SQLITE, &Policy::default());
            assert!(query.failure.is_some(), "{text}: {:?}", query.sql);
        }
    }
}
