#![doc = include_str!("missing_operand.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "missing-operand", group: "syntax", page: include_str!("missing_operand.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..broken.end() {
        let joined = matches!(broken.keyword(at - 1), Some(Keyword::AND | Keyword::OR));
        let not = usize::from(broken.keyword(at) == Some(Keyword::NOT));
        if !joined || !compares(&broken, at + not) || (not == 1 && is_sign(&broken, at + 1)) {
            continue;
        }
        let Some(operand) = operand(&broken, at - 1) else { return };
        edits.push(insert(broken.words[at].span.start, format!("{operand} ")));
        first.get_or_insert(broken.words[at].span);
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    let sign = subject.query.text(span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            sign,
            format!("nothing stands before `{sign}` that could be compared"),
        )
        .advise("Write the column again before each comparison: a > 1 AND a < 5.")
        .mend(fix(edits, Applicability::Likely, "the comparison before it says what is compared")),
    );
}

fn is_sign(broken: &Broken<'_>, at: usize) -> bool {
    let token = broken.words.get(at).map(|w| &w.token);
    matches!(token, Some(Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq))
}

fn compares(broken: &Broken<'_>, at: usize) -> bool {
    is_sign(broken, at)
        || matches!(broken.keyword(at), Some(Keyword::LIKE | Keyword::IN | Keyword::BETWEEN | Keyword::IS))
}

/// What the comparison before a word compares: all that stands from the beginning of that condition to its sign.
fn operand<'b>(broken: &Broken<'b>, before: usize) -> Option<&'b str> {
    let depth = broken.words[before].depth;
    let begins = |i: usize| {
        let word = matches!(
            broken.keyword(i),
            Some(Keyword::AND | Keyword::OR | Keyword::WHERE | Keyword::ON | Keyword::HAVING | Keyword::WHEN)
        ) || (broken.keyword(i) == Some(Keyword::NOT) && !compares(broken, i + 1));
        (broken.words[i].depth == depth && word) || (broken.is(i, &Token::LParen) && broken.words[i].depth < depth)
    };
    let start = (0..before).rev().find(|&i| begins(i))? + 1;
    // What NOT is said of, the one comparison or both, is not known.
    if broken.keyword(start - 1) == Some(Keyword::NOT) {
        return None;
    }
    let own = |i: &usize| broken.words[*i].depth == depth;
    let sign = (start..before).filter(own).find(|&i| compares(broken, i) || broken.keyword(i) == Some(Keyword::NOT))?;
    let text = broken.slice(start, sign);
    let named = (start..sign).any(|i| matches!(broken.words[i].token, Token::Word(_)));
    (named && !text.is_empty()).then_some(text)
}
