#![doc = include_str!("missing_comma.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "missing-comma", group: "syntax", page: include_str!("missing_comma.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let value = |i: usize| matches!(broken.words[i].token, Token::SingleQuotedString(_) | Token::Number(..));
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..broken.end() {
        let listed = || broken.around(at).is_some_and(|open| open > 0 && broken.keyword(open - 1) == Some(Keyword::IN));
        if value(at - 1) && value(at) && listed() {
            edits.push(insert(broken.words[at - 1].span.end, ","));
            first.get_or_insert(broken.words[at].span);
        }
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            "a comma is missing before this value",
        )
        .advise("Put a comma between the values of a list.")
        .mend(fix(edits, Applicability::Likely, "two values side by side in a list are two of its items")),
    );
}
