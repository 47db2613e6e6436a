#![doc = include_str!("percent_sign.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, cut, fix, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "percent-sign", group: "syntax", page: include_str!("percent_sign.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::or_misread(subject).filter(|_| !is_explained(out)) else { return };
    let hundred = |i: usize| matches!(&broken.words[i].token, Token::Number(n, _) if n.parse() == Ok(100.0));
    let signs: Vec<usize> = (2..broken.end())
        .filter(|&i| {
            broken.is(i, &Token::Mod) && hundred(i - 1) && broken.is(i - 2, &Token::Mul) && ends(&broken, i + 1)
        })
        .collect();
    let edits: Vec<Edit> = signs.iter().map(|&i| cut(broken.words[i].span)).collect();
    let Some(&first) = signs.first().filter(|_| broken.mends(&edits)) else { return };
    let span = broken.words[first - 1].span.join(broken.words[first].span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            "% divides and gives the rest; it is no sign of a share",
        )
        .advise("Multiply by 100, without the sign %.")
        .mend(fix(
            edits,
            Applicability::Likely,
            "times 100 makes a share of it, and nothing follows that % could divide by",
        )),
    );
}

/// Whether the item ends here.
fn ends(broken: &Broken<'_>, at: usize) -> bool {
    match broken.words.get(at).map(|w| &w.token) {
        Some(Token::Comma | Token::RParen | Token::SemiColon) | None => true,
        Some(_) => broken.keyword(at) == Some(Keyword::AS) || broken.clause(at).is_some_and(|c| c != Clause::Select),
    }
}
