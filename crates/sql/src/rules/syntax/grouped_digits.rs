#![doc = include_str!("grouped_digits.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, fix, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "grouped-digits", group: "syntax", page: include_str!("grouped_digits.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    let mut at = 1;
    while at < broken.end() {
        let end = group_end(&broken, at);
        if end > at && is_one_value(&broken, at - 1) {
            let span = broken.words[at].span.join(broken.words[end].span);
            edits.push(Edit { span, text: subject.query.text(span).replace(',', "") });
            first.get_or_insert(span);
        }
        at = end + 1;
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    let text = subject.query.text(span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            text,
            format!("{text} is one number: digits are not grouped by commas"),
        )
        .advise("Write numbers without commas: 50000.")
        .mend(fix(
            edits,
            Applicability::Likely,
            "only one value can stand here, and three digits follow each comma",
        )),
    );
}

/// The last word of a number whose digits are grouped, `1,000,000`; the word itself if there is none.
fn group_end(broken: &Broken<'_>, at: usize) -> usize {
    let digits = |i: usize| match broken.words.get(i).map(|w| &w.token) {
        Some(Token::Number(n, _)) => n.split('.').next().map_or(0, str::len),
        _ => 0,
    };
    let mut end = at;
    if !(1..=3).contains(&digits(at)) {
        return at;
    }
    // Each comma touches both of its neighbours.
    while broken.is(end + 1, &Token::Comma)
        && digits(end + 2) == 3
        && broken.words[end].span.end == broken.words[end + 1].span.start
        && broken.words[end + 1].span.end == broken.words[end + 2].span.start
    {
        end += 2;
    }
    end
}

/// Whether only one value can stand behind a word.
fn is_one_value(broken: &Broken<'_>, at: usize) -> bool {
    let sign =
        matches!(broken.words[at].token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq);
    sign || matches!(broken.keyword(at), Some(Keyword::BETWEEN | Keyword::AND))
}
