//! Findings as a compiler shows them: under the SQL, with `help:` and `note:`.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use querymend::lines::Lines;
use querymend_sql::{Applicability, Extracted, Finding, Severity};

use crate::out::counted;

/// Nobody reads more; the others come back when these are mended. JSON and SARIF have them all.
const MOST_FINDINGS: usize = 100;

/// All findings, each with the piece of the text that it is about.
pub fn findings(name: &str, text: &str, findings: &[Finding], color: bool) -> String {
    let lines = Lines::new(text);
    let mut shown: Vec<String> = findings.iter().take(MOST_FINDINGS).map(|f| finding(name, &lines, f, color)).collect();
    if findings.len() > MOST_FINDINGS {
        shown.push(format!("… and {}\n", counted(findings.len() - MOST_FINDINGS, "more finding")));
    }
    shown.join("\n")
}

fn finding(name: &str, lines: &Lines<'_>, finding: &Finding, color: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let mut group = Group::with_title(level.primary_title(one_line(&finding.message)).id(finding.code));
    let piece = lines.piece(finding.span);
    if piece.text.trim().is_empty() {
        group = group.element(Origin::path(name));
    } else {
        let mut snippet =
            Snippet::source(piece.text).line_start(piece.line).annotation(AnnotationKind::Primary.span(piece.marked));
        if piece.cut {
            // The renderer would count columns from the cut.
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

/// What was extracted from the query.
pub fn extracted(extracted: &Extracted) -> String {
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

/// `1 error, 2 warnings`, or nothing.
pub fn count(findings: &[Finding]) -> String {
    let mut words = Vec::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        match (findings.iter().filter(|f| f.severity == severity).count(), severity.word()) {
            (0, _) => {}
            (n, "info") => words.push(format!("{n} info")),
            (n, word) => words.push(counted(n, word)),
        }
    }
    words.join(", ")
}

/// The line that findings end with: where more stands about the worst of them and, where `fix` can be asked, that it may mend
/// them.
pub fn more(findings: &[Finding], fix: bool) -> Option<String> {
    let worst = findings.iter().min_by_key(|finding| finding.severity)?;
    let mend = if fix && may_be_mended(findings) { "; `querymend fix` may mend it" } else { "" };
    Some(format!("hint: `querymend explain {}` says more{mend}", worst.code))
}

/// Whether there is something that `fix` would apply, and no error that it has nothing against.
fn may_be_mended(findings: &[Finding]) -> bool {
    let mendable = |finding: &Finding| finding.fixes.iter().any(|fix| fix.applicability != Applicability::Suggested);
    let hopeless = |finding: &Finding| finding.severity == Severity::Error && !mendable(finding);
    let worth_it = |finding: &Finding| finding.severity <= Severity::Warning && mendable(finding);
    !findings.iter().any(hopeless) && findings.iter().any(worth_it)
}

/// Whether a sign steers a terminal or turns the direction of what follows.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of several lines, made harmless for a terminal.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) && !matches!(c, '\n' | '\t') { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// JSON, made harmless for a terminal; it stays the same JSON.
pub fn harmless_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) && !matches!(c, '\n' | '\t' | '\r') {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Text of a query or a database, made harmless for a terminal: control characters are written out.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || c == '\t' {
            out.push_str(if c == '\n' { "\\n" } else { "\\t" });
        } else if steers(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use querymend_sql::{Fix, Span};

    fn shown(text: &str, span: (usize, usize)) -> String {
        let finding = Finding::new("a-code", Severity::Warning, Span::new(span.0, span.1), "", "what\n is wrong");
        findings("q.sql", text, &[finding], false)
    }

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        assert_eq!(harmless("a\u{1b}[31m\tb\n\u{9b}\u{202e}é\r"), "a\\u{1b}[31m\tb\n\\u{9b}\\u{202e}é\\u{d}");
        let json = serde_json::to_string("\u{9b}31m \u{202e} é").unwrap();
        let shown = harmless_json(&json);
        assert!(shown.is_ascii() || !shown.contains(['\u{9b}', '\u{202e}']), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "\u{9b}31m \u{202e} é");
    }

    #[test]
    fn an_empty_span_is_marked_with_one_sign() {
        let expected = "warning[a-code]: what\\n is wrong\n --> q.sql:1:9\n  |\n1 | SELECT a\n  |         ^\n";
        assert_eq!(shown("SELECT a", (8, 8)), expected);
        // Behind the last line break there is nothing to show.
        assert_eq!(shown("SELECT a\n", (9, 9)), "warning[a-code]: what\\n is wrong\n--> q.sql\n");
    }

    #[test]
    fn a_span_over_lines_is_drawn_beside_them() {
        let shown = shown("SELECT 1,\r\n  (2 +\r\n  é)\r\n", (13, 24));
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
    fn wide_characters_and_tabs_keep_the_marks_in_place() {
        let text = "SELECT\t'日本é', x";
        let at = text.find('x').unwrap();
        let shown = shown(text, (at, at + 1));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!((lines[1], lines[3]), (" --> q.sql:1:15", "1 | SELECT    '日本é', x"));
        // Two columns for each of the two wide characters, four for the tab.
        assert_eq!(lines[4], format!("  | {}^", " ".repeat(6 + 4 + 1 + 2 + 2 + 1 + 1 + 2)));
    }

    #[test]
    fn a_long_line_is_cut_but_its_place_is_not() {
        let text = format!("SELECT {}needle", "x, ".repeat(3_000));
        let at = text.find("needle").unwrap();
        let shown = shown(&text, (at, at + 6));
        assert!(shown.contains(&format!("--> q.sql:1:{}", at + 1)), "{shown}");
        assert!(shown.contains("needle") && shown.contains("^^^^^^") && shown.len() < 1_500, "{shown}");
    }

    #[test]
    fn only_what_can_be_mended_is_said_to_be() {
        use Applicability::{Likely, Safe, Suggested};
        use Severity::{Error, Info, Warning};
        let found = |severity, applicability: Option<Applicability>| {
            let mut finding = Finding::new("a-code", severity, Span::default(), "", "x");
            let fix = |applicability| Fix { edits: Vec::new(), applicability, why: String::new(), tied: false };
            finding.fixes.extend(applicability.map(fix));
            finding
        };
        for (findings, mendable) in [
            (vec![found(Error, Some(Safe))], true),
            (vec![found(Error, Some(Likely)), found(Warning, None)], true),
            (vec![found(Warning, Some(Likely))], true),
            (vec![found(Error, Some(Suggested))], false),
            (vec![found(Error, Some(Safe)), found(Error, None)], false),
            (vec![found(Error, None), found(Warning, Some(Safe))], false),
            (vec![found(Info, Some(Safe))], false),
        ] {
            let plain = "hint: `querymend explain a-code` says more".to_string();
            assert_eq!(more(&findings, false), Some(plain.clone()));
            let mended = format!("{plain}{}", if mendable { "; `querymend fix` may mend it" } else { "" });
            assert_eq!(more(&findings, true), Some(mended), "{findings:?}");
        }
        assert_eq!(more(&[], true), None);
    }

    #[test]
    fn a_hundred_findings_are_enough() {
        let one = Finding::new("a-code", Severity::Info, Span::new(0, 1), "", "x");
        assert!(findings("q", "ab", &vec![one; 250], false).ends_with("… and 150 more findings\n"));
    }
}
