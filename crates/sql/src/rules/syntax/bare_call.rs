#![doc = include_str!("bare_call.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, fix, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "bare-call", group: "syntax", page: include_str!("bare_call.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::or_misread(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 0..broken.words.len() {
        let Token::Word(word) = &broken.words[at].token else { continue };
        if !word.value.eq_ignore_ascii_case("count") || word.quote_style.is_some() || broken.is_name(&word.value) {
            continue;
        }
        let Some(end) = argument_end(&broken, at + 1) else { continue };
        let argument = broken.slice(at + 1, end + 1);
        let span = Span::new(broken.words[at].span.end, broken.words[end].span.end);
        edits.push(Edit { span, text: format!("({argument})") });
        first.get_or_insert(broken.words[at].span.join(broken.words[end].span));
    }
    let Some(span) = first.filter(|_| broken.mends(&edits)) else { return };
    let text = subject.query.text(span);
    out.push(
        Finding::new(RULE.code, Severity::Error, span, text, "what is counted stands in parentheses: COUNT(…)")
            .advise("Write COUNT(*) or COUNT(DISTINCT column), with parentheses.")
            .mend(fix(edits, Applicability::Likely, "COUNT is called, and what it counts stands right behind it")),
    );
}

/// The last word of `*` or `DISTINCT column`, if the item or condition ends, or is compared, behind it.
fn argument_end(broken: &Broken<'_>, at: usize) -> Option<usize> {
    let name = |i: usize| matches!(broken.words.get(i).map(|w| &w.token), Some(Token::Word(_)));
    let end = if broken.is(at, &Token::Mul) {
        at
    } else if broken.keyword(at) == Some(Keyword::DISTINCT) && name(at + 1) {
        if broken.is(at + 2, &Token::Period) && name(at + 3) { at + 3 } else { at + 1 }
    } else {
        return None;
    };
    let behind = broken.words.get(end + 1).map(|w| &w.token);
    let ends = match behind {
        Some(Token::Comma | Token::RParen | Token::SemiColon | Token::Gt | Token::Lt | Token::Eq | Token::GtEq) => true,
        Some(Token::LtEq | Token::Neq) => true,
        Some(_) => {
            matches!(broken.keyword(end + 1), Some(Keyword::AS | Keyword::DESC | Keyword::ASC))
                || broken.clause(end + 1).is_some_and(|c| c != Clause::Select)
        }
        None => false,
    };
    ends.then_some(end)
}
