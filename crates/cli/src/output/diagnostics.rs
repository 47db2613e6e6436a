//! Compiler-style rendering of findings: annotated SQL with `help:` and `note:`.

use crate::output::text::{one_line, pluralize};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use querymend::line_index::LineIndex;
use querymend_sql::{Applicability, Finding, QueryReferences, Severity};

/// Maximum number of findings to render; the rest appear once these are fixed. JSON and SARIF
/// contain all of them.
const MAX_FINDINGS: usize = 100;

/// Renders findings, each with the annotated snippet of its span.
pub fn render_findings(name: &str, text: &str, findings: &[Finding], color: bool) -> String {
    let lines = LineIndex::new(text);
    let mut shown: Vec<String> =
        findings.iter().take(MAX_FINDINGS).map(|f| render_finding(name, &lines, f, color)).collect();
    if findings.len() > MAX_FINDINGS {
        shown.push(format!("… and {}\n", pluralize(findings.len() - MAX_FINDINGS, "more finding")));
    }
    shown.join("\n")
}

fn render_finding(name: &str, lines: &LineIndex<'_>, finding: &Finding, color: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let mut group = Group::with_title(level.primary_title(one_line(&finding.message)).id(finding.code));
    let piece = lines.snippet(finding.span);
    if piece.text.trim().is_empty() {
        group = group.element(Origin::path(name));
    } else {
        let mut snippet = Snippet::source(piece.text)
            .line_start(piece.line)
            .annotation(AnnotationKind::Primary.span(piece.highlight));
        if piece.is_start_truncated {
            // The renderer would count columns from the start of the snippet.
            group = group.element(Origin::path(name).line(piece.line).char_column(piece.column));
        } else {
            snippet = snippet.path(name);
        }
        group = group.element(snippet);
    }
    if let Some(suggestion) = &finding.suggestion {
        group = group.element(Level::HELP.message(format!("write `{}`", one_line(suggestion))));
    } else if let Some(fix) = finding.fixes.first() {
        group = group.element(Level::HELP.message(one_line(&fix.why)));
    } else if finding.severity == Severity::Error && !finding.advice.is_empty() {
        group = group.element(Level::HELP.message(one_line(&finding.advice)));
    }
    for fact in &finding.evidence {
        group = group.element(Level::NOTE.message(one_line(fact)));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.render(&[group]);
    text.push('\n');
    text
}

/// Renders the references extracted from a query.
pub fn render_references(extracted: &QueryReferences) -> String {
    let or = |names: &[String], none: &str| if names.is_empty() { none.to_string() } else { names.join(", ") };
    let aliases: Vec<String> = extracted
        .aliases
        .iter()
        .map(
            |(alias, table)| {
                if table.is_empty() { format!("{alias} = (subquery)") } else { format!("{alias} = {table}") }
            },
        )
        .collect();
    let sql: String = extracted.sql.trim().lines().map(|line| format!("  {}\n", one_line(line))).collect();
    let unknown = match extracted.unknown_tables.as_slice() {
        [] => String::new(),
        names => format!("unknown tables: {}\n", one_line(&names.join(", "))),
    };
    format!(
        "tables: {}\n{unknown}CTEs: {}\naliases: {}\nallowed tables: {}\nSQL:\n{}",
        one_line(&or(&extracted.tables, "none")),
        one_line(&or(&extracted.ctes, "none")),
        one_line(&or(&aliases, "none")),
        one_line(&extracted.allowed_tables.as_deref().map_or("all".into(), |list| or(list, "none"))),
        if sql.is_empty() { "  none\n" } else { &sql },
    )
}

/// Formats counts by severity: `1 error, 2 warnings`; empty without findings.
pub fn count_by_severity(findings: &[Finding]) -> String {
    let mut words = Vec::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        match (findings.iter().filter(|f| f.severity == severity).count(), severity.as_str()) {
            (0, _) => {}
            (n, "info") => words.push(format!("{n} info")),
            (n, word) => words.push(pluralize(n, word)),
        }
    }
    words.join(", ")
}

/// Returns the hint after findings: `querymend explain` for the most severe one and, if `fix` is
/// set and can repair them, `querymend fix`.
pub fn explain_hint(findings: &[Finding], fix: bool) -> Option<String> {
    let worst = findings.iter().min_by_key(|finding| finding.severity)?;
    let fix_hint = if fix && is_fixable(findings) { "; it can be fixed with `querymend fix`" } else { "" };
    Some(format!("hint: `querymend explain {}` explains it{fix_hint}", worst.code))
}

/// Returns whether `fix` would apply at least one fix, and every error has an applicable fix.
fn is_fixable(findings: &[Finding]) -> bool {
    let has_applicable_fix =
        |finding: &Finding| finding.fixes.iter().any(|fix| fix.applicability != Applicability::Suggested);
    let hopeless = |finding: &Finding| finding.severity == Severity::Error && !has_applicable_fix(finding);
    let worth_it = |finding: &Finding| finding.severity <= Severity::Warning && has_applicable_fix(finding);
    !findings.iter().any(hopeless) && findings.iter().any(worth_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use querymend_sql::{Fix, Span};

    fn render_one(text: &str, span: (usize, usize)) -> String {
        let finding = Finding::new("a-code", Severity::Warning, Span::new(span.0, span.1), "", "what\n is wrong");
        render_findings("q.sql", text, &[finding], false)
    }

    #[test]
    fn marks_an_empty_span_with_one_caret() {
        let expected = "warning[a-code]: what\\n is wrong\n --> q.sql:1:9\n  |\n1 | SELECT a\n  |         ^\n";
        assert_eq!(render_one("SELECT a", (8, 8)), expected);
        // After the last line break there is no text to show.
        assert_eq!(render_one("SELECT a\n", (9, 9)), "warning[a-code]: what\\n is wrong\n--> q.sql\n");
    }

    #[test]
    fn draws_a_multiline_span_beside_its_lines() {
        let shown = render_one("SELECT 1,\r\n  (2 +\r\n  é)\r\n", (13, 24));
        let expected = "\
warning[a-code]: what\\n is wrong
 --> q.sql:2:3
  |
2 | /   (2 +
3 | |   é)
  | |____^
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn aligns_carets_under_wide_characters_and_tabs() {
        let text = "SELECT\t'日本é', x";
        let at = text.find('x').unwrap();
        let shown = render_one(text, (at, at + 1));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!((lines[1], lines[3]), (" --> q.sql:1:15", "1 | SELECT    '日本é', x"));
        // Two columns for each of the two wide characters, four for the tab.
        assert_eq!(lines[4], format!("  | {}^", " ".repeat(6 + 4 + 1 + 2 + 2 + 1 + 1 + 2)));
    }

    #[test]
    fn shortens_long_lines_around_the_span() {
        let text = format!("SELECT {}needle", "x, ".repeat(3_000));
        let at = text.find("needle").unwrap();
        let shown = render_one(&text, (at, at + 6));
        assert!(shown.contains(&format!("--> q.sql:1:{}", at + 1)), "{shown}");
        assert!(shown.contains("needle") && shown.contains("^^^^^^") && shown.len() < 1_500, "{shown}");
    }

    #[test]
    fn suggests_fix_only_for_fixable_findings() {
        use Applicability::{Likely, Safe, Suggested};
        use Severity::{Error, Info, Warning};
        let found = |severity, applicability: Option<Applicability>| {
            let mut finding = Finding::new("a-code", severity, Span::default(), "", "x");
            let fix = |applicability| Fix {
                edits: Vec::new(),
                applicability,
                why: String::new(),
                is_tied_with_previous: false,
            };
            finding.fixes.extend(applicability.map(fix));
            finding
        };
        for (findings, fixable) in [
            (vec![found(Error, Some(Safe))], true),
            (vec![found(Error, Some(Likely)), found(Warning, None)], true),
            (vec![found(Warning, Some(Likely))], true),
            (vec![found(Error, Some(Suggested))], false),
            (vec![found(Error, Some(Safe)), found(Error, None)], false),
            (vec![found(Error, None), found(Warning, Some(Safe))], false),
            (vec![found(Info, Some(Safe))], false),
        ] {
            let plain = "hint: `querymend explain a-code` explains it".to_string();
            assert_eq!(explain_hint(&findings, false), Some(plain.clone()));
            let expected = format!("{plain}{}", if fixable { "; it can be fixed with `querymend fix`" } else { "" });
            assert_eq!(explain_hint(&findings, true), Some(expected), "{findings:?}");
        }
        assert_eq!(explain_hint(&[], true), None);
    }

    #[test]
    fn shows_at_most_a_hundred_findings() {
        let one = Finding::new("a-code", Severity::Info, Span::new(0, 1), "", "x");
        assert!(render_findings("q", "ab", &vec![one; 250], false).ends_with("… and 150 more findings\n"));
    }
}
