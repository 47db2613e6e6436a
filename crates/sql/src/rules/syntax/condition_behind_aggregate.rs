#![doc = include_str!("condition_behind_aggregate.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, fix, insert, is_explained};
use crate::dialect::Feature;
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule {
    code: "condition-behind-aggregate",
    group: "syntax",
    page: include_str!("condition_behind_aggregate.md"),
    check,
};

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..broken.words.len() {
        if broken.clause(at) != Some(Clause::Where) {
            continue;
        }
        let Some(own) = conditional(subject, &broken, at) else { continue };
        edits.extend(own);
        first.get_or_insert(broken.words[at].span);
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let overlap = edits.windows(2).any(|e| e[1].span.start < e[0].span.end);
    let Some(span) = first.filter(|_| !overlap && broken.mends(&edits)) else { return };
    let right = match subject.context.dialect.lacks.contains(&Feature::Filter) {
        true => "an aggregate over CASE WHEN … END",
        false => "FILTER (WHERE …)",
    };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            format!("a condition for one aggregate is written {right}"),
        )
        .advise(format!("To aggregate only some rows, use {right}."))
        .mend(fix(
            edits,
            Applicability::Likely,
            "the condition stands right behind the aggregate, with no FROM of its own",
        )),
    );
}

/// The changes that tie the condition of a WHERE to the aggregate before it.
fn conditional(subject: &Subject<'_>, broken: &Broken<'_>, at: usize) -> Option<Vec<Edit>> {
    let close = at.checked_sub(1).filter(|&i| broken.is(i, &Token::RParen))?;
    let open = broken.opening(close)?;
    let name = open.checked_sub(1).filter(|&i| broken.is_aggregate(i))?;
    let depth = broken.words[at].depth;
    let beside = |i: &usize| broken.words[*i].depth == depth;
    let end = match broken.around(at) {
        Some(around) => {
            let end = broken.closing(around)?;
            // A WHERE with a SELECT of its own is where it belongs; a second condition is somebody else's.
            let clause = |i: usize| broken.clause(i).is_some();
            if (around + 1..end).filter(beside).any(|i| i != at && (clause(i) || (i > at && broken.is_aggregate(i)))) {
                return None;
            }
            end
        }
        None => item_end(broken, at)?,
    };
    let condition = broken.slice(at + 1, end);
    if !subject.context.dialect.lacks.contains(&Feature::Filter) {
        let behind = broken.words[end - 1].span.end;
        return Some(vec![insert(broken.words[at].span.start, "FILTER ("), insert(behind, ")")]);
    }
    let distinct = broken.keyword(open + 1) == Some(Keyword::DISTINCT);
    let from = open + 1 + usize::from(distinct);
    let value = broken.slice(from, close);
    let value = if value == "*" { "1" } else { value };
    let word = if distinct { "DISTINCT " } else { "" };
    let call = format!("{}({word}CASE WHEN {condition} THEN {value} END)", subject.query.text(broken.words[name].span));
    let span = Span::new(broken.words[name].span.start, broken.words[end - 1].span.end);
    Some(vec![Edit { span, text: call }])
}

/// Where the condition ends that stands in the SELECT list itself, before any FROM: before a comma, the name of the item, the next
/// clause, or a sign behind which another aggregate begins.
fn item_end(broken: &Broken<'_>, at: usize) -> Option<usize> {
    let beside = |i: &usize| broken.words[*i].depth == 0;
    let before = (0..at).rev().filter(beside).find_map(|i| broken.clause(i).filter(|c| *c != Clause::Where))?;
    if before != Clause::Select {
        return None;
    }
    let sign = |i: usize| matches!(broken.words[i].token, Token::Plus | Token::Minus | Token::Mul | Token::Div);
    let ends = |i: &usize| {
        matches!(broken.words[*i].token, Token::Comma | Token::SemiColon)
            || broken.keyword(*i) == Some(Keyword::AS)
            || broken.clause(*i).is_some()
            || (sign(*i) && broken.is_aggregate(*i + 1))
    };
    Some((at + 1..broken.words.len()).filter(beside).find(ends).unwrap_or(broken.words.len()))
}
