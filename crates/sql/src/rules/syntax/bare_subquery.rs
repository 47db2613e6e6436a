#![doc = include_str!("bare_subquery.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, fix, insert, is_explained};
use crate::finding::{Applicability, Finding, Severity};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "bare-subquery", group: "syntax", page: include_str!("bare_subquery.md"), check };

/// How many places for the closing parenthesis are tried.
const MOST_TRIES: usize = 8;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let Some(select) =
        (1..broken.words.len()).find(|&i| broken.clause(i) == Some(Clause::Select) && compares(&broken, i - 1))
    else {
        return;
    };
    let depth = broken.words[select].depth;
    let end = broken.block_end(select, depth).min(broken.end());
    // The query may end where a word stands that the one around it could go on with.
    let goes_on = |i: usize| {
        let word = matches!(broken.keyword(i), Some(Keyword::AND | Keyword::OR));
        let clause = matches!(
            broken.clause(i),
            Some(Clause::GroupBy | Clause::Having | Clause::OrderBy | Clause::Limit | Clause::Offset | Clause::Fetch)
        );
        broken.words[i].depth == depth && (word || clause)
    };
    let places = std::iter::once(end).chain((select + 1..end).filter(|&i| goes_on(i))).take(MOST_TRIES);
    let edits =
        |end: usize| vec![insert(broken.words[select].span.start, "("), insert(broken.words[end - 1].span.end, ")")];
    let found: Vec<usize> = places.filter(|&i| i > select + 1 && broken.mends(&edits(i))).collect();
    let sure = if found.len() == 1 { Applicability::Likely } else { Applicability::Suggested };
    if found.is_empty() {
        return;
    }
    let span = broken.words[select].span;
    let mut finding = Finding::new(
        RULE.code,
        Severity::Error,
        span,
        subject.query.text(span),
        "a query inside a condition stands in parentheses",
    )
    .advise("Put every subquery in parentheses: a = (SELECT …).");
    finding.fixes =
        found.into_iter().map(|i| fix(edits(i), sure, "so the condition is compared with a query")).collect();
    out.push(finding);
}

/// Whether a word waits for a value that a query can give.
fn compares(broken: &Broken<'_>, at: usize) -> bool {
    matches!(broken.words[at].token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
        || matches!(broken.keyword(at), Some(Keyword::IN | Keyword::EXISTS))
}
