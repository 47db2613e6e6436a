#![doc = include_str!("misplaced_distinct.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, cut, fix, insert, is_explained};
use crate::finding::{Applicability, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "misplaced-distinct", group: "syntax", page: include_str!("misplaced_distinct.md"), check };

/// Text with more queries than this in it is mended by nobody.
const MOST_TRIES: usize = 16;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::or_misread(subject).filter(|_| !is_explained(out)) else { return };
    for block in broken.blocks().into_iter().take(MOST_TRIES) {
        let select = block.clauses[0].1;
        let end = block.clauses.get(1).map_or(block.end, |c| c.1);
        let own = |i: &usize| broken.words[*i].depth == block.depth;
        let late = (select + 2..end)
            .filter(own)
            .find(|&i| broken.keyword(i) == Some(Keyword::DISTINCT) && broken.is(i - 1, &Token::Comma));
        let Some(late) = late else { continue };
        let first = broken.keyword(select + 1) == Some(Keyword::DISTINCT);
        let span = broken.words[late].span;
        let next = broken.words.get(late + 1).map_or(span.end, |w| w.span.start);
        let mut edits = vec![cut(Span::new(span.start, next))];
        if !first {
            edits.insert(0, insert(broken.words[select].span.end, " DISTINCT"));
        }
        if block.clauses.get(1).is_none_or(|c| c.0 != Clause::From) || !broken.mends(&edits) {
            continue;
        }
        // Beside an aggregate, what is to be different may be what it takes in.
        let aggregates = (select..end).any(|i| broken.is_aggregate(i));
        let sure = if aggregates { Applicability::Suggested } else { Applicability::Likely };
        out.push(
            Finding::new(
                RULE.code,
                Severity::Error,
                span,
                subject.query.text(span),
                "DISTINCT stands right behind SELECT: it is whole rows that differ",
            )
            .advise("Write SELECT DISTINCT a, b: DISTINCT is said once, of the whole row.")
            .mend(fix(
                edits,
                sure,
                "only whole rows can be told apart, and DISTINCT says so at the beginning",
            )),
        );
        return;
    }
}
