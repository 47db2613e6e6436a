//! The SQL inside a model's text: fences, prose, escapes, continuation.
//!
//! Each step is a change to the text as given, so that it can be shown as a finding with a fix. Nothing here decides
//! whether a query may run: what comes out is reviewed like anything else, and what would hide a second statement
//! that changes data is not salvaged at all.

mod lost;
mod prose;
mod signs;
mod wrapping;

use crate::finding::{Edit, Span};

use self::lost::{mend_apostrophes, unflatten_comments};
use self::prose::cut_prose;
pub(crate) use self::prose::{begins_a_statement, mentions_sql};
pub(crate) use self::signs::has_typographic_quotes;
use self::signs::{foreign_comments, plain_signs};
use self::wrapping::{open_fence, starts_like_sql, unescape, unwrap_json};

/// One thing that was done to get at the SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The rule that reports it.
    pub code: &'static str,
    /// What was changed in the given text.
    pub edits: Vec<Edit>,
}

/// Whether a rule speaks of what stands around a query and leaves the query itself as it is. Taking it off mends nothing:
/// the query was right already.
pub fn is_wrapping(code: &str) -> bool {
    matches!(code, "code-fence" | "json-wrapped" | "surrounding-prose" | "continuation" | "trailing-semicolon")
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

/// Whether a text that parses may have lost line ends or plain quotes. Cheap: most texts have neither sign.
pub(crate) fn may_be_damaged(text: &str) -> bool {
    is_one_line_with_comment(text) || has_typographic_quotes(text)
}

fn is_one_line_with_comment(text: &str) -> bool {
    text.contains("--") && !text.trim().contains('\n') && starts_like_sql(text)
}

/// Restores the clauses that a comment swallowed when the line ends of a query were lost.
///
/// The text parses either way, so this is evidence of nothing by itself: `review` asks for it only where names do not resolve.
pub(crate) fn swallowed_clauses(text: &str, parses: &dyn Fn(&str) -> bool) -> Vec<Step> {
    if !is_one_line_with_comment(text) {
        return Vec::new();
    }
    let mut draft = Draft { text, start: 0, end: text.len(), steps: Vec::new() };
    unflatten_comments(&mut draft, parses);
    draft.steps
}

/// Replaces typographic quotes and spaces in a query that parses with them as letters of names.
pub(crate) fn typographic_quotes(text: &str, parses: &dyn Fn(&str) -> bool) -> Vec<Step> {
    if !has_typographic_quotes(text) {
        return Vec::new();
    }
    let mut draft = Draft { text, start: 0, end: text.len(), steps: Vec::new() };
    plain_signs(&mut draft, false, parses);
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
    // Escapes of a JSON string are already undone.
    if !done && !draft.steps.iter().any(|s| s.code == "json-wrapped") {
        unescape(&mut draft);
        done = settled(&draft, parses);
    }
    let sure = draft.steps.clone();
    if !done {
        done = plain_signs(&mut draft, true, parses)
            || mend_apostrophes(&mut draft, parses)
            || foreign_comments(&mut draft, parses)
            || unflatten_comments(&mut draft, parses)
            || cut_prose(&mut draft, parses);
    }
    if !done {
        draft.steps = sure;
        return draft.steps;
    }
    // Signs in what is kept are written as they would be if nothing stood around it.
    if has_typographic_quotes(draft.kept()) && !draft.steps.iter().any(|s| s.code == "typographic-signs") {
        plain_signs(&mut draft, false, parses);
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

#[cfg(test)]
mod tests {
    use crate::dialect::SQLITE;
    use crate::policy::Policy;
    use crate::query::Query;

    #[track_caller]
    fn check(text: &str, sql: &str, codes: &[&str]) {
        let policy = Policy::default();
        let restored = Query::read_restored(text, &SQLITE, &policy);
        let query = restored.unwrap_or_else(|| Query::read(text, &SQLITE, &policy));
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
        check(r#"{"why": "or drop table t", "sql": "SELECT 1"}"#, "SELECT 1", &["json-wrapped"]);
        check("SELECT 1;", "SELECT 1;", &["trailing-semicolon"]);
        check(
            "It is `SELECT a FROM t WHERE b = 'x'`.",
            "SELECT a FROM t WHERE b = 'x'",
            &["continuation", "surrounding-prose"],
        );
        check("SELECT a FROM t \\G", "SELECT a FROM t", &["continuation"]);
        check("SELECT a FROM t WHERE b &gt; 1", "SELECT a FROM t WHERE b > 1", &["escaped-characters"]);
        check("SELECT a FROM t WHERE b = ‘x’s’", "SELECT a FROM t WHERE b = 'x''s'", &["typographic-signs"]);
        check("SELECT a\u{a0}FROM t", "SELECT a FROM t", &["typographic-signs"]);
        check(
            "SELECT a -- b\nFROM t # so it is\nWHERE a > 1",
            "SELECT a -- b\nFROM t \nWHERE a > 1",
            &["foreign-comment"],
        );
    }

    #[test]
    fn of_several_blocks_the_last_is_the_answer() {
        let first = "We try\n```sql\nSELECT b\nFROM t\n```\n";
        let last = "```sql\nSELECT a\nFROM t\n```\n";
        check(&format!("{first}But the final query is:\n{last}"), "SELECT a\nFROM t", &["code-fence"]);
        check(&format!("{first}Alternatively:\n{last}"), "SELECT b\nFROM t", &["code-fence"]);
        check(&format!("{first}If you want more:\n{last}"), "SELECT b\nFROM t", &["code-fence"]);
        check(&format!("{first}It gives\n```\na | b\n```\n"), "SELECT b\nFROM t", &["code-fence"]);
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
            "{\"sql\": \"SELECT 1\"}; DROP TABLE t",
            "{\"sql\": \"SELECT 1\"} UPDATE shop.price_list SET a = 1",
            "FROM products INSERT OVERWRITE TABLE orders SELECT *",
        ] {
            let query = Query::read(text, &SQLITE, &Policy::default());
            assert!(query.failure.is_some(), "{text}: {:?}", query.sql);
        }
    }

    #[test]
    fn a_part_of_a_broken_query_is_not_taken_for_the_whole() {
        for text in [
            "SELECT a FROM t WHERE b IN (SELECT c FROM u",
            "WITH x AS (SELECT a FROM t",
            "SELECT a FROM t LIMIT 5 UNION ALL SELECT a FROM u",
            "SELECT a FORM t UNION SELECT a FROM u",
        ] {
            let query = Query::read(text, &SQLITE, &Policy::default());
            assert!(query.failure.is_some(), "{text}: {:?}", query.sql);
        }
    }
}
