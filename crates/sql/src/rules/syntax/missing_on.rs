#![doc = include_str!("missing_on.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, cut, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "missing-on", group: "syntax", page: include_str!("missing_on.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for join in (0..broken.words.len()).filter(|&i| broken.keyword(i) == Some(Keyword::JOIN)) {
        // `JOIN ON orders o c.id = o.id`: the word stands before the table.
        let early = broken.keyword(join + 1) == Some(Keyword::ON);
        let Some(at) = condition(&broken, join + usize::from(early)) else { continue };
        if early {
            edits.push(cut(Span::new(broken.words[join + 1].span.start, broken.words[join + 2].span.start)));
        }
        edits.push(insert(broken.words[at].span.start, "ON "));
        first.get_or_insert(broken.words[at].span);
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            "ON is missing before what ties the tables",
        )
        .advise("Write JOIN table ON condition.")
        .mend(fix(
            edits,
            Applicability::Likely,
            "a comparison of two columns right behind the table can only be its condition",
        )),
    );
}

/// Where the condition of a JOIN begins that has no ON: `JOIN orders o c.id = o.id`.
fn condition(broken: &Broken<'_>, join: usize) -> Option<usize> {
    let name = |i: usize| matches!(broken.words.get(i)?.token, Token::Word(_)).then_some(());
    let is_as = |i: usize| broken.keyword(i) == Some(Keyword::AS);
    let column = |i: usize| {
        name(i)?;
        broken.is(i + 1, &Token::Period).then_some(())?;
        name(i + 2).map(|()| i + 3)
    };
    let compares =
        |i: usize| column(i).filter(|&end| broken.is(end, &Token::Eq)).and_then(|end| column(end + 1)).map(|_| i);
    name(join + 1)?;
    // Behind the table, or behind the name that it is given.
    let alias = if is_as(join + 2) { join + 4 } else { join + 3 };
    compares(join + 2).or_else(|| {
        name(alias - 1)?;
        let word = broken.keyword(alias - 1)?;
        (!matches!(word, Keyword::ON | Keyword::USING)).then_some(())?;
        compares(alias)
    })
}
