#![doc = include_str!("between_bounds.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, fix, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "between-bounds", group: "syntax", page: include_str!("between_bounds.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in (0..broken.end()).filter(|&i| broken.keyword(i) == Some(Keyword::BETWEEN)) {
        let depth = broken.words[at].depth;
        let own = |i: &usize| broken.words[*i].depth == depth;
        let sign = (at + 2..broken.end()).filter(own).find(|&i| {
            broken.is(i, &Token::Comma)
                || matches!(broken.keyword(i), Some(Keyword::AND | Keyword::OR | Keyword::TO))
                || broken.clause(i).is_some()
        });
        let wrong = |&i: &usize| broken.is(i, &Token::Comma) || broken.keyword(i) == Some(Keyword::TO);
        let Some(sign) = sign.filter(wrong) else { continue };
        let span = broken.words[sign].span;
        let glued = subject.query.source[..span.start].ends_with(|c: char| !c.is_whitespace());
        edits.push(Edit { span, text: if glued { " AND".into() } else { "AND".into() } });
        first.get_or_insert(span);
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            "AND stands between the bounds of BETWEEN: BETWEEN low AND high",
        )
        .advise("Write BETWEEN low AND high.")
        .mend(fix(
            edits,
            Applicability::Likely,
            "both bounds are there; only the word between them is another",
        )),
    );
}
