//! Extracts SQL from the output of a model: code fences, prose, escapes, continuations.
//!
//! Each step is an edit to the source text, so that it can be reported as a finding with a fix.
//! Nothing here decides whether a query may run: extracted SQL is reviewed like any other, and
//! nothing is extracted if that would hide a second statement that modifies data.

mod fences;
mod prose;
mod quotes_and_newlines;
mod unicode;

use crate::finding::{Edit, Span};

use self::fences::{unescape_markup, unwrap_fence, unwrap_json};
pub(crate) use self::prose::{has_non_query_statement, may_contain_sql};
use self::prose::{starts_with_query_keyword, strip_prose};
use self::quotes_and_newlines::{escape_apostrophes, restore_comment_newlines};
pub(crate) use self::unicode::has_typographic_quotes;
use self::unicode::{normalize_punctuation, strip_foreign_comments};

/// A step of the extraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractionStep {
    /// Code of the rule that reports it.
    pub code: &'static str,
    /// Edits to the source text.
    pub edits: Vec<Edit>,
}

/// Returns whether a rule is about text around a query and leaves the query itself unchanged.
///
/// Removing such text is not a repair: the query was correct already.
pub fn is_wrapper_rule(code: &str) -> bool {
    matches!(code, "code-fence" | "json-wrapped" | "surrounding-prose" | "continuation" | "trailing-semicolon")
}

/// Returns the edits of all steps, sorted. Edits of different steps never overlap.
pub(crate) fn sorted_edits(steps: &[ExtractionStep]) -> Vec<Edit> {
    let mut all: Vec<Edit> = steps.iter().flat_map(|s| s.edits.iter().cloned()).collect();
    all.sort_by_key(|e| (e.span.start, e.span.end));
    all
}

/// Removes a semicolon after the only statement.
///
/// It is harmless and common; it is recorded so that a single statement is sent.
pub(crate) fn strip_trailing_semicolon(text: &str) -> Option<ExtractionStep> {
    let trimmed = text.trim_end();
    let kept = trimmed.trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    (kept.len() < trimmed.len())
        .then(|| ExtractionStep { code: "trailing-semicolon", edits: vec![deletion(kept.len(), text.len())] })
}

/// Returns whether a text that parses may have lost newlines or plain quotes. Cheap: most texts
/// show neither symptom.
pub(crate) fn may_be_damaged(text: &str) -> bool {
    is_one_line_with_comment(text) || has_typographic_quotes(text)
}

fn is_one_line_with_comment(text: &str) -> bool {
    text.contains("--") && !text.trim().contains('\n') && starts_with_query_keyword(text)
}

/// Restores the clauses that a comment swallowed when the newlines of a query were lost.
///
/// The text parses either way, so this is not evidence by itself: `review` uses it only if names do
/// not resolve.
pub(crate) fn restore_swallowed_clauses(text: &str, parses: &dyn Fn(&str) -> bool) -> Vec<ExtractionStep> {
    if !is_one_line_with_comment(text) {
        return Vec::new();
    }
    let mut buffer = ExtractionBuffer { text, start: 0, end: text.len(), steps: Vec::new() };
    restore_comment_newlines(&mut buffer, parses);
    buffer.steps
}

/// Replaces typographic quotes and spaces in a query that parses with them as letters of names.
pub(crate) fn replace_typographic_quotes(text: &str, parses: &dyn Fn(&str) -> bool) -> Vec<ExtractionStep> {
    if !has_typographic_quotes(text) {
        return Vec::new();
    }
    let mut buffer = ExtractionBuffer { text, start: 0, end: text.len(), steps: Vec::new() };
    normalize_punctuation(&mut buffer, false, parses);
    buffer.steps
}

fn deletion(start: usize, end: usize) -> Edit {
    Edit { span: Span::new(start, end), text: String::new() }
}

/// Selected part of the text, with the edits to it.
struct ExtractionBuffer<'t> {
    text: &'t str,
    start: usize,
    end: usize,
    steps: Vec<ExtractionStep>,
}

impl<'t> ExtractionBuffer<'t> {
    fn edits_in_selection(&self) -> Vec<Edit> {
        let all = sorted_edits(&self.steps);
        all.into_iter().filter(|e| e.span.start >= self.start && e.span.end <= self.end).collect()
    }

    fn render(&self, start: usize, end: usize, more: &[Edit]) -> String {
        let mut all = self.edits_in_selection();
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

    fn selected(&self) -> &'t str {
        &self.text[self.start..self.end]
    }

    fn narrow(&mut self, code: &'static str, start: usize, end: usize) {
        let mut edits = Vec::new();
        if start > self.start {
            edits.push(deletion(self.start, start));
        }
        if end < self.end {
            edits.push(deletion(end, self.end));
        }
        if !edits.is_empty() {
            self.steps.retain_mut(|s| {
                s.edits.retain(|e| {
                    (e.span.start >= start && e.span.end <= end) || e.span.end <= self.start || e.span.start >= self.end
                });
                !s.edits.is_empty()
            });
            self.steps.push(ExtractionStep { code, edits });
        }
        (self.start, self.end) = (start, end);
    }
}

/// Extracts the SQL from a text that does not parse as it is.
///
/// Returns the steps of the first form that parses. If none does, returns the steps that are
/// correct in any case (such as a code fence), so that the remaining error is reported at its
/// location.
pub(crate) fn extract_sql(text: &str, parses: &dyn Fn(&str) -> bool) -> Vec<ExtractionStep> {
    let mut buffer = ExtractionBuffer { text, start: 0, end: text.len(), steps: Vec::new() };
    unwrap_json(&mut buffer);
    unwrap_fence(&mut buffer, parses);
    let mut done = parses_as_selected(&buffer, parses);
    // A JSON string is already unescaped.
    if !done && !buffer.steps.iter().any(|s| s.code == "json-wrapped") {
        unescape_markup(&mut buffer);
        done = parses_as_selected(&buffer, parses);
    }
    let sure = buffer.steps.clone();
    if !done {
        done = normalize_punctuation(&mut buffer, true, parses)
            || escape_apostrophes(&mut buffer, parses)
            || strip_foreign_comments(&mut buffer, parses)
            || restore_comment_newlines(&mut buffer, parses)
            || strip_prose(&mut buffer, parses);
    }
    if !done {
        buffer.steps = sure;
        return buffer.steps;
    }
    // Normalize punctuation in the extracted SQL as in SQL that was not wrapped.
    if has_typographic_quotes(buffer.selected()) && !buffer.steps.iter().any(|s| s.code == "typographic-punctuation") {
        normalize_punctuation(&mut buffer, false, parses);
    }
    let kept = buffer.selected();
    let bare = kept.trim_end().trim_end_matches(|c: char| c == ';' || c.is_whitespace()).len();
    if bare < kept.trim_end().len() {
        let (start, end) = (buffer.start, buffer.start + bare);
        buffer.narrow("trailing-semicolon", start, end);
    }
    buffer.steps
}

fn parses_as_selected(buffer: &ExtractionBuffer, parses: &dyn Fn(&str) -> bool) -> bool {
    let sql = buffer.render(buffer.start, buffer.end, &[]);
    !sql.trim().is_empty() && parses(&sql)
}

#[cfg(test)]
mod tests {
    use crate::dialect::SQLITE;
    use crate::parse::parsed_query::ParsedQuery;
    use crate::safety::policy::Policy;

    #[track_caller]
    fn check(text: &str, sql: &str, codes: &[&str]) {
        let policy = Policy::default();
        let restored = ParsedQuery::parse_restored(text, &SQLITE, &policy);
        let query = restored.unwrap_or_else(|| ParsedQuery::parse(text, &SQLITE, &policy));
        assert_eq!(query.sql.trim(), sql, "{:?}", query.steps);
        let found: Vec<_> = query.steps.iter().map(|s| s.code).collect();
        assert_eq!(found, codes);
        assert!(query.failure.is_none(), "{:?}", query.failure);
    }

    #[test]
    fn extracts_sql_from_model_replies() {
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
        check(r#"{"why": "or drop table t", "sql": "SELECT 1"}"#, "SELECT 1", &["json-wrapped"]);
        check("SELECT 1;", "SELECT 1;", &["trailing-semicolon"]);
        check(
            "It is `SELECT a FROM t WHERE b = 'x'`.",
            "SELECT a FROM t WHERE b = 'x'",
            &["continuation", "surrounding-prose"],
        );
        check("SELECT a FROM t \\G", "SELECT a FROM t", &["continuation"]);
        check("SELECT a FROM t WHERE b &gt; 1", "SELECT a FROM t WHERE b > 1", &["escaped-characters"]);
        check("SELECT a FROM t WHERE b = ‘x’s’", "SELECT a FROM t WHERE b = 'x''s'", &["typographic-punctuation"]);
        check("SELECT a\u{a0}FROM t", "SELECT a FROM t", &["typographic-punctuation"]);
        check(
            "SELECT a -- b\nFROM t # so it is\nWHERE a > 1",
            "SELECT a -- b\nFROM t \nWHERE a > 1",
            &["foreign-comment"],
        );
    }

    #[test]
    fn selects_last_code_block_unless_it_is_an_alternative() {
        let first = "We try\n```sql\nSELECT b\nFROM t\n```\n";
        let last = "```sql\nSELECT a\nFROM t\n```\n";
        check(&format!("{first}But the final query is:\n{last}"), "SELECT a\nFROM t", &["code-fence"]);
        check(&format!("{first}Alternatively:\n{last}"), "SELECT b\nFROM t", &["code-fence"]);
        check(&format!("{first}If you want more:\n{last}"), "SELECT b\nFROM t", &["code-fence"]);
        check(&format!("{first}It gives\n```\na | b\n```\n"), "SELECT b\nFROM t", &["code-fence"]);
    }

    #[test]
    fn never_removes_a_write_statement() {
        for text in [
            "SELECT 1; DROP TABLE t where is it",
            "CREATE FUNCTION f() AS $$ BEGIN SELECT 1; nonsense here $$",
            "DELETE FRM t;\nSELECT 1",
            "SELECT 1;\n-- then\nUPDATE t SET SET a",
            "To be safe DROP TABLE products; then SELECT name FROM t",
            "```sql\nSELECT 1\n```\nThen run DROP TABLE t",
            "{\"sql\": \"SELECT 1\"}; DROP TABLE t",
            "{\"sql\": \"SELECT 1\"} UPDATE shop.price_list SET a = 1",
            "FROM products INSERT OVERWRITE TABLE orders SELECT *",
        ] {
            let query = ParsedQuery::parse(text, &SQLITE, &Policy::default());
            assert!(query.failure.is_some(), "{text}: {:?}", query.sql);
        }
    }

    #[test]
    fn rejects_fragment_of_a_broken_query() {
        for text in [
            "SELECT a FROM t WHERE b IN (SELECT c FROM u",
            "WITH x AS (SELECT a FROM t",
            "SELECT a FROM t LIMIT 5 UNION ALL SELECT a FROM u",
            "SELECT a FORM t UNION SELECT a FROM u",
        ] {
            let query = ParsedQuery::parse(text, &SQLITE, &Policy::default());
            assert!(query.failure.is_some(), "{text}: {:?}", query.sql);
        }
    }
}
