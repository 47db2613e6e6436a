#![doc = include_str!("using_columns.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, cut, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::mend;
use crate::query::Failure;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "using-columns", group: "syntax", page: include_str!("using_columns.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let parses = match &subject.query.failure {
        // Some grammars read a column with its table.
        None => true,
        Some(Failure::Syntax { .. }) if subject.query.steps.is_empty() && !is_explained(out) => false,
        Some(_) => return,
    };
    if !mend::worth_mending(subject, out) {
        return;
    }
    let words = mend::words(subject);
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..words.len() {
        if mend::keyword(&words[at].1) != Some(Keyword::USING) {
            continue;
        }
        let Some(own) = columns(&words, at) else { continue };
        edits.extend(own);
        first.get_or_insert(words[at].0);
    }
    let Some(span) = first else { return };
    if !Broken::becomes_query(subject, &edits) && !parses {
        return;
    }
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            "USING takes plain names of columns in parentheses: USING (column)",
        )
        .advise("Write USING (column), with names that both tables have, or ON a.column = b.column.")
        .mend(fix(
            edits,
            Applicability::Likely,
            "the column that both tables have is named; only how it is written was wrong",
        )),
    );
}

/// The changes that make a list of plain names, or a condition, of what stands behind USING; `None` if it is right.
fn columns(words: &[(Span, Token)], using: usize) -> Option<Vec<Edit>> {
    let is = |i: usize, token: &Token| words.get(i).is_some_and(|(_, t)| t == token);
    let name = |i: usize| words.get(i).is_some_and(|(_, t)| matches!(t, Token::Word(_)));
    if !is(using + 1, &Token::LParen) {
        // `USING id`, `USING c.id`
        let qualified = is(using + 2, &Token::Period) && name(using + 3);
        let at = if qualified { using + 3 } else { using + 1 };
        (name(at) && !is(at + 1, &Token::LParen) && !is(at + 1, &Token::Eq)).then_some(())?;
        let span = Span::new(words[using + 1].0.start, words[at].0.start);
        return Some(vec![Edit { span, text: "(".into() }, insert(words[at].0.end, ")")]);
    }
    let close = (using + 2..words.len()).find(|&i| is(i, &Token::RParen))?;
    // `USING (a.id = b.id)` is what ON takes.
    let equal = (using + 2..close).any(|i| is(i, &Token::Eq));
    if equal {
        let plain = (using + 2..close).all(|i| name(i) || is(i, &Token::Period) || is(i, &Token::Eq));
        return plain.then(|| vec![Edit { span: words[using].0, text: "ON".into() }]);
    }
    let dots: Vec<usize> =
        (using + 3..close).filter(|&i| is(i, &Token::Period) && name(i - 1) && name(i + 1)).collect();
    let edits: Vec<Edit> = dots.iter().map(|&i| cut(Span::new(words[i - 1].0.start, words[i + 1].0.start))).collect();
    (!edits.is_empty()).then_some(edits)
}
