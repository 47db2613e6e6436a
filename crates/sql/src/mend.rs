//! What rules write fixes with: names that are qualified, tables that are joined (`joining.rs`), clauses that are found
//! (`places.rs`).

mod joining;
mod places;

pub(crate) use self::joining::{Joined, favour, fresh, joins, loose, misfit, partner, ties};
pub(crate) use self::places::{
    AFTER_FROM, before_join, call, clause_end, conditions, from_end, from_word, keyword, rest_of_query, tokens, words,
};
use crate::finding::{Applicability, Edit, Finding, Fix, Span};
use crate::rules::Subject;
use crate::scope::SourceId;

/// Whether a rule may still look for fixes. They read the text again and again, and a text that is this long, or has this many
/// faults, is mended by nobody: hostile input must not cost more than its review.
pub(crate) fn worth_mending(subject: &Subject<'_>, found: &[Finding]) -> bool {
    let facts = subject.facts;
    subject.query.sql.len() <= 20_000
        && facts.calls.len() <= 100
        && facts.references.len() <= 400
        && facts.operations.len() <= 400
        && found.iter().filter(|f| !f.fixes.is_empty()).count() < 20
}

/// A fix of one replacement.
pub(crate) fn replace(
    span: Span,
    text: impl Into<String>,
    applicability: Applicability,
    why: impl Into<String>,
) -> Fix {
    Fix { edits: vec![Edit { span, text: text.into() }], applicability, why: why.into(), tied: false }
}

/// `alias.column` as it must be written.
pub(crate) fn qualified(subject: &Subject<'_>, source: SourceId, column: &str) -> Option<String> {
    let dialect = subject.context.dialect;
    let source = &subject.facts.sources[source];
    let name = source.name?;
    let qualifier = if name.quote_style.is_some() { name.to_string() } else { dialect.quoted(&name.value) };
    Some(format!("{qualifier}.{}", dialect.quoted(column)))
}

/// Whether the words of the question name a table or column.
pub(crate) fn asked_for(subject: &Subject<'_>, name: &str) -> bool {
    let Some(question) = subject.context.question else { return false };
    let question = question.to_lowercase();
    let words: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let name = name.to_lowercase();
    let mut parts = name.split(|c: char| !c.is_alphanumeric()).filter(|p| p.len() > 2).peekable();
    parts.peek().is_some() && parts.all(|p| words.iter().any(|w| crate::near::is_nearly(w, p, 0.95)))
}
