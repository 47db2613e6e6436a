#![doc = include_str!("missing_select.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "missing-select", group: "syntax", page: include_str!("missing_select.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for open in 0..broken.words.len() {
        if !broken.is(open, &Token::LParen) || is_call(&broken, open) {
            continue;
        }
        let Some(close) = broken.closing(open) else { continue };
        let depth = broken.words[open].depth + 1;
        let mut own = (open + 1..close).filter(|&i| broken.words[i].depth == depth).filter_map(|i| broken.clause(i));
        // FROM comes first where SELECT should; a name or value stands before it.
        if own.next() == Some(Clause::From) && broken.clause(open + 1).is_none() {
            edits.push(insert(broken.words[open + 1].span.start, "SELECT "));
            first.get_or_insert(broken.words[open + 1].span);
        }
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), "a subquery begins with SELECT")
            .advise("Write SELECT at the beginning of every subquery.")
            .mend(fix(edits, Applicability::Likely, "what stands in the parentheses has a FROM, so it is a query")),
    );
}

/// `EXTRACT(YEAR FROM day)`: what a name stands before has words of its own.
fn is_call(broken: &Broken<'_>, open: usize) -> bool {
    let Some(before) = open.checked_sub(1) else { return false };
    match broken.keyword(before) {
        Some(word) => !matches!(
            word,
            Keyword::SELECT
                | Keyword::IN
                | Keyword::EXISTS
                | Keyword::NOT
                | Keyword::AND
                | Keyword::OR
                | Keyword::FROM
                | Keyword::JOIN
                | Keyword::WHERE
                | Keyword::HAVING
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::WHEN
                | Keyword::AS
                | Keyword::ON
        ),
        None => matches!(broken.words[before].token, Token::Word(_)),
    }
}
