#![doc = include_str!("trailing_comma.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, cut, fix, is_explained};
use crate::finding::{Applicability, Finding, Severity};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "trailing-comma", group: "syntax", page: include_str!("trailing_comma.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let idle: Vec<usize> =
        (0..broken.words.len()).filter(|&i| broken.is(i, &Token::Comma) && ends_list(&broken, i + 1)).collect();
    let Some(first) = idle.first().map(|&i| &broken.words[i]) else { return };
    let edits: Vec<_> = idle.iter().map(|&i| cut(broken.words[i].span)).collect();
    let next = subject.query.text(broken.words[idle[0] + 1].span);
    if !broken.mends(&edits) {
        return;
    }
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            first.span,
            ",",
            format!("an item is missing between this comma and `{next}`"),
        )
        .advise("A list ends without a comma.")
        .mend(fix(edits, Applicability::Likely, "a comma stands only between two items")),
    );
}

/// Whether a list cannot go on with this word.
fn ends_list(broken: &Broken<'_>, at: usize) -> bool {
    match broken.words.get(at).map(|w| &w.token) {
        Some(Token::RParen | Token::SemiColon) => true,
        Some(_) => {
            let set = matches!(broken.keyword(at), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT));
            // `SELECT a, (…)` and a subquery go on; any other clause does not.
            set || broken.clause(at).is_some_and(|c| c != crate::broken::Clause::Select)
        }
        None => false,
    }
}
