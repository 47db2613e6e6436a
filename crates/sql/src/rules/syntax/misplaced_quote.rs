#![doc = include_str!("misplaced_quote.md")]

use crate::broken::{Broken, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::query::Failure;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "misplaced-quote", group: "syntax", page: include_str!("misplaced_quote.md"), check };

/// How many names are looked at.
const MOST_TRIES: usize = 12;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(Failure::Syntax { .. }) = &subject.query.failure else { return };
    if is_explained(out) || !subject.query.steps.is_empty() {
        return;
    }
    let candidates = [early(subject), doubled(subject), open(subject)];
    for (span, message, edits) in candidates.into_iter().flatten() {
        if !Broken::becomes_query(subject, &edits) {
            continue;
        }
        out.push(
            Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), message)
                .advise("Put one quote before and one behind each name that needs them.")
                .mend(fix(edits, Applicability::Likely, "so quoted, it is a name of the schema")),
        );
        return;
    }
}

type Found = (Span, String, Vec<Edit>);

/// The names of the schema, the longest first, so that a name is not taken for the beginning of another.
fn names<'s>(subject: &'s Subject<'_>) -> Vec<&'s str> {
    let tables = subject.context.schema.map_or(&[][..], |s| s.tables());
    let mut out: Vec<&str> = Vec::new();
    for table in tables {
        out.push(&table.name);
        out.extend(table.columns.iter().map(|c| c.name.as_str()));
    }
    out.sort_by_key(|n| (std::cmp::Reverse(n.len()), *n));
    out.dedup();
    out
}

fn starts_with(text: &str, name: &str) -> bool {
    text.get(..name.len()).is_some_and(|t| t.eq_ignore_ascii_case(name))
}

fn quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().filter(|(_, c)| matches!(c, '`' | '"'))
}

/// `` `Net Price (EUR`) ``: the quote closes before the name does.
fn early(subject: &Subject<'_>) -> Option<Found> {
    let source = &subject.query.source;
    let names = names(subject);
    let mut edits: Vec<Edit> = Vec::new();
    let mut first = None;
    for (start, quote) in quotes(source).take(4 * MOST_TRIES) {
        let inside = &source[start + 1..];
        let Some(len) = inside.find(quote).filter(|&n| n > 2) else { continue };
        let (head, tail) = (&inside[..len], &inside[len + 1..]);
        if names.iter().any(|n| n.eq_ignore_ascii_case(head)) {
            continue;
        }
        let rest = names.iter().find_map(|n| {
            let rest = n.get(head.len()..).filter(|r| !r.is_empty() && starts_with(n, head))?;
            // `name`s is more likely a plural than a name.
            (starts_with(tail, rest) && !rest.starts_with(char::is_alphanumeric)).then_some(rest.len())
        });
        let Some(rest) = rest else { continue };
        let close = start + 1 + len;
        edits.push(Edit { span: Span::new(close, close + 1), text: String::new() });
        edits.push(insert(close + 1 + rest, quote));
        first.get_or_insert((Span::new(close, close + 1), format!("`{}{}` is one name", head, &tail[..rest])));
    }
    first.map(|(span, message)| (span, message, edits))
}

/// ``` ``name`` ```: each quote was written twice.
fn doubled(subject: &Subject<'_>) -> Option<Found> {
    let source = &subject.query.source;
    let mut edits: Vec<Edit> = Vec::new();
    for mark in ["``", "\"\""] {
        edits.extend(source.match_indices(mark).map(|(i, _)| Edit { span: Span::new(i, i + 1), text: String::new() }));
    }
    edits.sort_by_key(|e| e.span.start);
    let span = edits.first()?.span;
    Some((Span::new(span.start, span.end + 1), "the quote stands twice".into(), edits))
}

/// `` `Item Name FROM``: a name of the schema begins behind a quote, and no quote closes it.
fn open(subject: &Subject<'_>) -> Option<Found> {
    let source = &subject.query.source;
    let names = names(subject);
    let mut found = None;
    let mut edits = Vec::new();
    for (start, quote) in quotes(source).take(4 * MOST_TRIES) {
        let inside = &source[start + 1..];
        let Some(name) = names.iter().find(|n| n.len() > 2 && starts_with(inside, n)) else { continue };
        let behind = inside[name.len()..].chars().next();
        if behind.is_some_and(|c| c == quote || c.is_alphanumeric() || c == '_') {
            continue;
        }
        let end = start + 1 + name.len();
        edits.push(insert(end, quote));
        found.get_or_insert((Span::new(start, start + 1), format!("the quote before `{name}` is not closed")));
    }
    found.map(|(span, message)| (span, message, edits))
}
