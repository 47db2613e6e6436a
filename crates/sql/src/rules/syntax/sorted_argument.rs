#![doc = include_str!("sorted_argument.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, cut, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "sorted-argument", group: "syntax", page: include_str!("sorted_argument.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 2..broken.end() {
        if !matches!(broken.keyword(at), Some(Keyword::DESC | Keyword::ASC)) || !sorts(&broken, at) {
            continue;
        }
        let span = broken.words[at].span;
        edits.push(cut(Span::new(broken.words[at - 1].span.end, span.end)));
        edits.push(insert(broken.words[at + 1].span.end, format!(" {}", subject.query.text(span))));
        first.get_or_insert(span);
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    let word = subject.query.text(span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            word,
            format!("{word} stands behind what is sorted by, not inside the call"),
        )
        .advise(format!("Write ORDER BY SUM(x) {word}, with {word} behind the parenthesis."))
        .mend(fix(
            edits,
            Applicability::Likely,
            "the call is what is sorted by, and the direction belongs behind it",
        )),
    );
}

/// Whether a direction is the last word of a call that is itself sorted by: `ORDER BY SUM(total DESC)`.
fn sorts(broken: &Broken<'_>, at: usize) -> bool {
    let Some(open) = broken.around(at).filter(|_| broken.is(at + 1, &Token::RParen)) else { return false };
    let called = open > 0 && matches!(broken.words[open - 1].token, Token::Word(_));
    // An aggregate may sort what it takes in.
    let own = (open..at).any(|i| broken.clause(i).is_some());
    let depth = broken.words[open].depth;
    let clause = (0..open).rev().filter(|&i| broken.words[i].depth == depth).find_map(|i| broken.clause(i));
    let behind = matches!(broken.keyword(at + 2), Some(Keyword::ASC | Keyword::DESC));
    called && !own && !behind && clause == Some(Clause::OrderBy)
}
