#![doc = include_str!("limit_syntax.md")]

use sqlparser::ast::{LimitClause, Spanned};

use crate::dialect::LimitSyntax;
use crate::finding::{Finding, Fix, Severity, Span};
use crate::pieces::code_only;
use crate::query::Failure;
use crate::rules::portable::limit_fixes;
use crate::rules::{Rule, Subject};
use crate::scope::query_of;

/// See the page.
pub static RULE: Rule = Rule { code: "limit-syntax", group: "portable", page: include_str!("limit_syntax.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let limit = subject.context.dialect.limit;
    // Words are looked for in the SQL alone: a fence around it reads like quotes.
    let (source, sql) = (&subject.query.source, &subject.query.sql);
    if let Some(span) = top(sql).filter(|_| !limit.top) {
        let span = subject.query.place(span);
        out.push(finding(subject, span, "TOP n", "LIMIT n", limit_fixes::from_top(span, subject)));
        return;
    }
    if let Some(Failure::Syntax { at, .. }) = &subject.query.failure {
        if let Some(span) = comma(source, at.start).filter(|_| !limit.comma) {
            let fix = limit_fixes::from_comma(span, subject);
            out.push(finding(subject, span, "LIMIT offset, n", right_order(limit), fix));
        }
        return;
    }
    let Some(query) = subject.query.statements.first().and_then(query_of) else { return };
    if query.fetch.is_some() && !limit.fetch {
        let start = code_only(sql).rfind("fetch");
        let place = |s: usize| subject.query.place(Span::new(s, s + "fetch".len()));
        let span = start.map_or(subject.query.span(query.span()), place);
        let fix = limit_fixes::from_fetch(span, subject);
        out.push(finding(subject, span, "FETCH FIRST n ROWS ONLY", "LIMIT n", fix));
    }
    match &query.limit_clause {
        Some(LimitClause::OffsetCommaLimit { offset, limit: count }) if !limit.comma => {
            let span = subject.query.span(offset.span()).join(subject.query.span(count.span()));
            let fix = limit_fixes::from_comma(span, subject);
            out.push(finding(subject, span, "LIMIT offset, n", right_order(limit), fix));
        }
        Some(LimitClause::LimitOffset { limit: Some(count), offset: Some(offset), .. }) if limit.offset_first => {
            let (count, offset) = (subject.query.span(count.span()), subject.query.span(offset.value.span()));
            if count.start < offset.start {
                let span = count.join(offset);
                let fix = limit_fixes::from_offset(span, subject);
                out.push(finding(subject, span, "LIMIT n OFFSET offset", right_order(limit), fix));
            }
        }
        _ => {}
    }
}

fn right_order(limit: LimitSyntax) -> &'static str {
    if limit.offset_first { "OFFSET offset LIMIT n" } else { "LIMIT n OFFSET offset" }
}

/// `LIMIT 10, 5`, where the parser stopped at the comma.
fn comma(text: &str, at: usize) -> Option<Span> {
    let before = text.get(..at)?.trim_end();
    let number = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_limit = number.trim_end().to_ascii_lowercase().ends_with("limit");
    (is_limit && number.len() < before.len() && text[at..].starts_with(',')).then(|| Span::new(number.len(), at + 1))
}

fn finding(subject: &Subject<'_>, span: Span, used: &str, right: &str, fix: Option<Fix>) -> Finding {
    let dialect = subject.context.dialect.name;
    let mut finding = Finding::new(
        "limit-syntax",
        Severity::Error,
        span,
        used,
        format!("{dialect} does not know {used}: write {right}"),
    )
    .advise(format!("Limit rows with {right}, not {used}."));
    finding.fixes.extend(fix);
    finding
}

/// `SELECT TOP 5` or `SELECT DISTINCT TOP (5)`.
fn top(text: &str) -> Option<Span> {
    let lower = code_only(text);
    lower.match_indices("top").map(|(i, _)| i).find_map(|i| {
        let before = lower[..i].trim_end();
        let after = lower[i + 3..].trim_start().trim_start_matches('(').trim_start();
        let number = after.starts_with(|c: char| c.is_ascii_digit());
        let spaced = lower[i + 3..].starts_with([' ', '(', '\n']) && before.len() < i;
        let leads = before.ends_with("select") || before.ends_with("distinct");
        (leads && number && spaced).then(|| Span::new(i, i + 3))
    })
}
