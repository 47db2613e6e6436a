#![doc = include_str!("limit_syntax.md")]

use sqlparser::ast::{LimitClause, SetExpr, Spanned};

use crate::finding::{Finding, Severity, Span};
use crate::query::Failure;
use crate::rules::{Rule, Subject};
use crate::scope::query_of;

/// See the page.
pub static RULE: Rule = Rule { code: "limit-syntax", group: "portable", page: include_str!("limit_syntax.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let limit = subject.context.dialect.limit;
    if let Some(Failure::Syntax { .. }) = &subject.query.failure {
        if let Some(span) = top(&subject.query.source).filter(|_| !limit.top) {
            out.push(finding(subject, span, "TOP n", "LIMIT n"));
        }
        return;
    }
    let Some(query) = subject.query.statements.first().and_then(query_of) else { return };
    let whole = subject.query.span(query.span());
    let end = Span::new(whole.end.saturating_sub(1).max(whole.start), whole.end);
    if let SetExpr::Select(select) = &*query.body
        && select.top.is_some()
        && !limit.top
    {
        let span = top(&subject.query.source).unwrap_or(whole);
        out.push(finding(subject, span, "TOP n", "LIMIT n"));
    }
    if query.fetch.is_some() && !limit.fetch {
        out.push(finding(subject, end, "FETCH FIRST n ROWS ONLY", "LIMIT n"));
    }
    if let Some(LimitClause::OffsetCommaLimit { offset, limit: count }) = &query.limit_clause
        && !limit.comma
    {
        let span = subject.query.span(offset.span()).join(subject.query.span(count.span()));
        out.push(finding(subject, span, "LIMIT offset, n", "LIMIT n OFFSET offset"));
    }
}

fn finding(subject: &Subject<'_>, span: Span, used: &str, right: &str) -> Finding {
    let dialect = subject.context.dialect.name;
    Finding::new("limit-syntax", Severity::Error, span, used, format!("{dialect} does not know {used}: write {right}"))
        .advise(format!("Limit rows with {right}, not {used}."))
}

/// `SELECT TOP 5` or `SELECT DISTINCT TOP (5)`.
fn top(text: &str) -> Option<Span> {
    let lower = text.to_ascii_lowercase();
    lower.match_indices("top").map(|(i, _)| i).find_map(|i| {
        let before = lower[..i].trim_end();
        let after = lower[i + 3..].trim_start().trim_start_matches('(').trim_start();
        let number = after.starts_with(|c: char| c.is_ascii_digit());
        let spaced = lower[i + 3..].starts_with([' ', '(', '\n']) && before.len() < i;
        ((before.ends_with("select") || before.ends_with("distinct")) && number && spaced).then(|| Span::new(i, i + 3))
    })
}
