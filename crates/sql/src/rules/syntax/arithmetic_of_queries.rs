#![doc = include_str!("arithmetic_of_queries.md")]

use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "arithmetic-of-queries", group: "syntax", page: include_str!("arithmetic_of_queries.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    if broken.clause(0) != Some(Clause::Select) {
        return;
    }
    let (end, top) = (broken.end(), |i: &usize| broken.words[*i].depth == 0);
    let signs: Vec<usize> = (1..end).filter(top).filter(|&i| joins_queries(&broken, i)).collect();
    let [sign] = signs.as_slice() else { return };
    let span = broken.words[*sign].span;
    let mut edits: Vec<Edit> = vec![insert(broken.words[0].span.start, "SELECT (")];
    edits.push(insert(broken.words[sign - 1].span.end, ")"));
    let second = if broken.clause(sign + 1) == Some(Clause::Select) { "(" } else { "(SELECT " };
    edits.push(insert(broken.words[sign + 1].span.start, second));
    // An alias behind the second condition names the result.
    let alias =
        (sign + 1..end).rev().take(2).find(|&i| subject.query.text(broken.words[i].span).eq_ignore_ascii_case("as"));
    let last = alias.filter(|_| broken.words[end - 1].depth == 0).unwrap_or(end);
    edits.push(insert(broken.words[last - 1].span.end, ")"));
    if !broken.mends(&edits) {
        return;
    }
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            Span::new(span.start, span.end),
            subject.query.text(span),
            "two queries are calculated with only as subqueries: SELECT (SELECT …) - (SELECT …)",
        )
        .advise("To calculate with two queries, put each in parentheses: SELECT (SELECT …) - (SELECT …).")
        .mend(fix(edits, Applicability::Likely, "what stands on each side of the sign is a whole query")),
    );
}

/// A sign of arithmetic with a whole query on both sides; the second may lack its SELECT if it begins with an aggregate.
fn joins_queries(broken: &Broken<'_>, at: usize) -> bool {
    if !matches!(broken.words[at].token, Token::Plus | Token::Minus | Token::Mul | Token::Div) {
        return false;
    }
    let from_before = (0..at).any(|i| broken.words[i].depth == 0 && broken.clause(i) == Some(Clause::From));
    let selects = broken.clause(at + 1) == Some(Clause::Select);
    let computes = broken.is_aggregate(at + 1)
        && broken.closing(at + 2).is_some_and(|close| broken.clause(close + 1) == Some(Clause::From));
    from_before && (selects || computes)
}
