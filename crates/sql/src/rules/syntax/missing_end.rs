#![doc = include_str!("missing_end.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, fix, insert, is_explained};
use crate::finding::{Applicability, Finding, Severity};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "missing-end", group: "syntax", page: include_str!("missing_end.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let Some(case) = open_case(&broken) else { return };
    let depth = broken.words[case].depth;
    let own = |i: &usize| broken.words[*i].depth == depth;
    let word = |i: usize| broken.keyword(i);
    let Some(last) =
        (case..broken.end()).rev().filter(own).find(|&i| matches!(word(i), Some(Keyword::THEN | Keyword::ELSE)))
    else {
        return;
    };
    let stops = |&i: &usize| {
        let here = &broken.words[i];
        (here.token == Token::RParen && here.depth < depth)
            || here.depth == depth
                && (matches!(here.token, Token::Comma | Token::SemiColon)
                    || matches!(word(i), Some(Keyword::AS | Keyword::ASC | Keyword::DESC))
                    || broken.clause(i).is_some())
    };
    // At the very end of a text that nothing closes, more was to come.
    let Some(end) = (last + 2..broken.words.len()).find(stops) else { return };
    let edits = vec![insert(broken.words[end - 1].span.end, " END")];
    if !broken.mends(&edits) {
        return;
    }
    // What is compared or computed behind it would become part of its last value.
    let compares = (last..end).filter(own).any(|i| {
        matches!(broken.words[i].token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
            || matches!(broken.words[i].token, Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod)
            || matches!(word(i), Some(Keyword::AND | Keyword::OR | Keyword::IN | Keyword::LIKE | Keyword::IS))
    });
    let sure = if compares { Applicability::Suggested } else { Applicability::Likely };
    let span = broken.words[case].span;
    out.push(
        Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), "this CASE has no END")
            .advise("Every CASE ends with END: CASE WHEN … THEN … ELSE … END.")
            .mend(fix(edits, sure, "its last value ends here, and so does the CASE")),
    );
}

/// The only CASE that has no END.
fn open_case(broken: &Broken<'_>) -> Option<usize> {
    let mut open: Vec<usize> = Vec::new();
    for at in 0..broken.end() {
        match broken.keyword(at) {
            Some(Keyword::CASE) => open.push(at),
            Some(Keyword::END) => _ = open.pop(),
            _ => {}
        }
    }
    // One before the FROM of its query is looked at; behind it, words of the condition are told apart by nothing.
    let [case] = open.as_slice() else { return None };
    let behind =
        (0..*case).rev().filter(|&i| broken.words[i].depth == broken.words[*case].depth).find_map(|i| broken.clause(i));
    (behind != Some(Clause::Where)).then_some(*case)
}
