#![doc = include_str!("with_list.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, cut, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "with-list", group: "syntax", page: include_str!("with_list.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let Some(with_word) = (0..broken.words.len()).find(|&i| broken.keyword(i) == Some(Keyword::WITH)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    let said = broken.keyword(with_word + 1) == Some(Keyword::RECURSIVE);
    let mut at = with_word + 1 + usize::from(said);
    while let Some(close) = item(&broken, at) {
        let comma = broken.is(close + 1, &Token::Comma);
        let again = close + 1 + usize::from(comma);
        let with = broken.keyword(again) == Some(Keyword::WITH);
        let recursive = broken.keyword(again) == Some(Keyword::RECURSIVE);
        let next = again + usize::from(with || recursive);
        let more = item(&broken, next).is_some();
        let mut wrong: Vec<Edit> = Vec::new();
        if more && !comma {
            wrong.push(insert(broken.words[close].span.end, ","));
        }
        // The word is said once, of the whole list.
        if more && recursive {
            if !edits.iter().any(|e| e.text.contains("RECURSIVE")) && !said {
                edits.insert(0, insert(broken.words[with_word].span.end, " RECURSIVE"));
            }
            wrong.push(cut(Span::new(broken.words[again].span.start, broken.words[next].span.start)));
        }
        if more && with {
            wrong.push(cut(Span::new(broken.words[again].span.start, broken.words[next].span.start)));
        }
        if comma && broken.keyword(again) == Some(Keyword::SELECT) {
            wrong.push(cut(broken.words[close + 1].span));
        }
        if let Some(edit) = wrong.first() {
            first.get_or_insert(Span::new(edit.span.start, broken.words[again].span.end));
        }
        edits.extend(wrong);
        at = next;
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span).trim(),
            "the queries of WITH are one list: WITH a AS (…), b AS (…) SELECT …",
        )
        .advise("Write WITH once, a comma between its queries, and none before SELECT.")
        .mend(fix(
            edits,
            Applicability::Likely,
            "every query of the list is whole; only a comma or a word was wrong",
        )),
    );
}

/// The parenthesis that closes `name AS (…)` or `name (columns) AS (…)`, if that stands at a word.
fn item(broken: &Broken<'_>, at: usize) -> Option<usize> {
    matches!(broken.words.get(at)?.token, Token::Word(_)).then_some(())?;
    let mut next = at + 1;
    if broken.is(next, &Token::LParen) {
        next = broken.closing(next)? + 1;
    }
    (broken.keyword(next) == Some(Keyword::AS)).then_some(())?;
    next += 1;
    while matches!(broken.keyword(next), Some(Keyword::NOT | Keyword::MATERIALIZED)) {
        next += 1;
    }
    broken.is(next, &Token::LParen).then(|| broken.closing(next)).flatten()
}
