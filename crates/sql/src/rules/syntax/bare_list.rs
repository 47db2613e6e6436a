#![doc = include_str!("bare_list.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "bare-list", group: "syntax", page: include_str!("bare_list.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let value = |i: usize| {
        matches!(broken.words.get(i).map(|w| &w.token), Some(Token::SingleQuotedString(_) | Token::Number(..)))
    };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in (0..broken.end()).filter(|&i| broken.keyword(i) == Some(Keyword::IN) && value(i + 1)) {
        let mut end = at + 1;
        while broken.is(end + 1, &Token::Comma) && value(end + 2) {
            end += 2;
        }
        let list = broken.words[at + 1].span.join(broken.words[end].span);
        edits.push(insert(list.start, "("));
        edits.push(insert(list.end, ")"));
        first.get_or_insert(list);
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            "the values of IN stand in parentheses",
        )
        .advise("Write IN (a, b, c), with parentheses.")
        .mend(fix(edits, Applicability::Likely, "all values between IN and the next word are its list")),
    );
}
