#![doc = include_str!("broken_rest.md")]

use crate::broken::{Broken, cut, fix, is_explained};
use crate::finding::{Applicability, Finding, Severity, Span};
use crate::pieces::{PieceKind, pieces};
use crate::query::Failure;
use crate::rules::{Rule, Subject};
use crate::salvage::begins_a_statement;

/// See the page.
pub static RULE: Rule = Rule { code: "broken-rest", group: "syntax", page: include_str!("broken_rest.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(Failure::Syntax { .. }) = &subject.query.failure else { return };
    if is_explained(out) || !subject.query.steps.is_empty() {
        return;
    }
    let source = &subject.query.source;
    let Some(semicolon) = pieces(source).find(|p| p.kind == PieceKind::Semicolon) else { return };
    let rest = Span::new(semicolon.end, source.trim_end().len().max(semicolon.end));
    let text = subject.query.text(rest);
    // What would write is not for us to take away: whoever reads it must see it.
    if text.trim().is_empty() || begins_a_statement(text) || !Broken::becomes_query(subject, &[cut(rest)]) {
        return;
    }
    let shown = Span::new(rest.end - text.trim_start().len(), rest.end);
    out.push(
        Finding::new(RULE.code, Severity::Error, shown, "", "what stands behind the first query is no SQL")
            .advise("Answer with exactly one statement, and nothing behind it.")
            .mend(fix(vec![cut(rest)], Applicability::Likely, "the first query is whole, and a semicolon ends it")),
    );
}

#[cfg(test)]
mod tests {
    use crate::dialect::SQLITE;
    use crate::review::{Context, review};

    #[test]
    fn what_would_write_is_not_taken_away() {
        let policy = crate::Policy::default();
        let context = Context { schema: None, dialect: &SQLITE, policy: &policy, question: None };
        for (rest, gone) in [
            ("WITH x AS (\n  SELECT a\n  FROM t\n)\nSELECT a FROM x AS ON b", true),
            ("DROP TABLE t where is it", false),
            ("WITH x AS (SELECT a\n FROM t) SELECT a AS ON b; DELETE FROM t", false),
            ("WITH x AS (SELECT a\n FROM t) SELECT a AS ON b\n\nCREATE TABLE u (a", false),
        ] {
            let found = review(&format!("SELECT a FROM t;\n{rest}"), &context).findings;
            assert_eq!(found.iter().any(|f| f.code == super::RULE.code), gone, "{rest}: {found:?}");
        }
    }
}
