#![doc = include_str!("reserved_word.md")]

use crate::broken::{is_a_name, is_explained, is_misplaced};
use crate::finding::{Applicability, Finding, Severity, Span};
use crate::mend;
use crate::query::Failure;
use crate::rules::names::is_bare_function;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "reserved-word", group: "names", page: include_str!("reserved_word.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    for name in &subject.facts.plain_names {
        // `FROM dual` is no name of the user's.
        let own = dialect.system_tables.iter().any(|t| t.eq_ignore_ascii_case(&name.value));
        if dialect.reserved.contains(&name.value) && !own && !is_bare_function(name, subject) {
            let span = subject.query.span(name.span);
            if is_misplaced(subject, name) {
                if !is_explained(out) {
                    out.push(misplaced(subject, span, &name.value));
                }
                continue;
            }
            let mut finding = finding(subject, span, &name.value);
            if is_cut_off(subject, span, &name.value) {
                finding.fixes.clear();
            }
            out.push(finding);
        }
    }
    // The parser stopped at a reserved word that is a name of the schema, or right behind one.
    let Some(Failure::Syntax { at, .. }) = &subject.query.failure else { return };
    if is_explained(out) {
        return;
    }
    let before = subject.query.source[..at.start].trim_end();
    let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
    for span in [*at, Span::new(start, before.len())] {
        let word = subject.query.text(span);
        // `ORDER BY` and `GROUP BY` are what they say.
        let by = subject.query.source[span.end..].trim_start().get(..2).is_some_and(|w| w.eq_ignore_ascii_case("by"));
        if dialect.reserved.contains(word) && is_a_name(subject, word) && !by {
            out.push(finding(subject, span, word));
            return;
        }
    }
}

/// `FROM matches OR`: at the end of a text the word is more likely itself than a name, unless AS stands before it.
fn is_cut_off(subject: &Subject<'_>, span: Span, word: &str) -> bool {
    let source = &subject.query.source;
    let named = source[..span.start].trim_end().to_ascii_lowercase().ends_with(" as");
    source[span.end..].trim().is_empty() && !named && !is_a_name(subject, word)
}

/// A word that a query is made of and that nothing is called by: what is wrong is not that it has no quotes.
fn misplaced(subject: &Subject<'_>, span: Span, word: &str) -> Finding {
    let message = format!("`{word}` stands where a name or a value should");
    Finding::new(RULE.code, Severity::Error, span, word, message)
        .advise(format!(
            "{word} is out of place: something before it is missing or in the wrong order. Write the query again in {} syntax.",
            subject.context.dialect.name
        ))
}

fn finding(subject: &Subject<'_>, span: Span, word: &str) -> Finding {
    let dialect = subject.context.dialect;
    let quoted = dialect.quoted(word);
    Finding::new(
        "reserved-word",
        Severity::Error,
        span,
        word,
        format!("`{word}` is a reserved word of {}: as a name it needs quotes", dialect.name),
    )
    .suggest(Some(quoted.clone()))
    .mend(mend::replace(span, quoted.clone(), Applicability::Safe, "a reserved word is a name only in quotes"))
    .advise(format!("{word} is a reserved word: write {quoted}."))
}
