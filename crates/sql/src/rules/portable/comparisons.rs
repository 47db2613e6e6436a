//! Comparisons with all or any of several values, in the words that every dialect has.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::mend;
use crate::rules::Subject;
use crate::rules::portable::respell::operand_start;

/// `= ANY (SELECT …)`, `>= ALL (SELECT …)`, `LIKE ANY (…)`: the span is that of the comparison, or of a part of it.
pub(super) fn any_all(place: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let at = (1..words.len()).find(|&i| {
        let near = place.start <= words[i].0.end && words[i].0.start <= place.end;
        near && quantifier(&words, i).is_some()
    })?;
    let any = quantifier(&words, at)?;
    if matches!(mend::keyword(&words[at - 1].1), Some(Keyword::LIKE | Keyword::ILIKE)) {
        return any.then(|| any_pattern(&words, at, subject)).flatten();
    }
    let queries = matches!(mend::keyword(&words.get(at + 2)?.1), Some(Keyword::SELECT));
    let sign = Span::new(words[at - 1].0.start, words[at].0.end);
    let equal = |text: &str| {
        let why = "it says the same, by definition, in words that every dialect has";
        Some(mend::replace(sign, text, Applicability::Safe, why))
    };
    let larger = matches!(words[at - 1].1, Token::Gt | Token::GtEq);
    match &words[at - 1].1 {
        Token::Eq if any && queries => equal("IN"),
        Token::Neq if !any && queries => equal("NOT IN"),
        Token::Gt | Token::GtEq | Token::Lt | Token::LtEq if queries => {
            extreme(&words, at, if larger == any { "MIN" } else { "MAX" }, subject)
        }
        _ => None,
    }
}

/// Whether ANY (true) or ALL (false) with a list or query stands at a word, behind a comparison.
fn quantifier(words: &[(Span, Token)], at: usize) -> Option<bool> {
    let any = match mend::keyword(&words[at].1)? {
        Keyword::ANY | Keyword::SOME => true,
        Keyword::ALL => false,
        _ => return None,
    };
    let compared =
        matches!(words[at - 1].1, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
            || matches!(mend::keyword(&words[at - 1].1), Some(Keyword::LIKE | Keyword::ILIKE));
    (compared && words.get(at + 1)?.1 == Token::LParen).then_some(any)
}

/// `> ALL (SELECT x …)` is `> (SELECT MAX(x) …)`, as long as there is a row and no NULL among them.
fn extreme(words: &[(Span, Token)], at: usize, aggregate: &str, subject: &Subject<'_>) -> Option<Fix> {
    let first = at + 3;
    let mut depth = 0usize;
    let mut from = None;
    for (i, (_, token)) in words.iter().enumerate().skip(first) {
        match token {
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::LParen => depth += 1,
            Token::Comma if depth == 0 && from.is_none() => return None,
            _ if depth > 0 => {}
            _ => match mend::keyword(token) {
                Some(Keyword::FROM) if from.is_none() => from = Some(i),
                Some(
                    Keyword::DISTINCT
                    | Keyword::GROUP
                    | Keyword::HAVING
                    | Keyword::LIMIT
                    | Keyword::OFFSET
                    | Keyword::FETCH
                    | Keyword::UNION
                    | Keyword::EXCEPT
                    | Keyword::INTERSECT
                    | Keyword::AS,
                ) => return None,
                _ => {}
            },
        }
    }
    let item = words[first].0.join(words[from?.checked_sub(1)?].0);
    let aggregates = subject.facts.calls.iter().any(|c| {
        let call = subject.query.span(c.place);
        c.aggregate && item.start <= call.start && call.end <= item.end
    });
    // `SELECT price p FROM …` names its item without AS.
    let plain = from? == first + 1 || (from? == first + 3 && words[first + 1].1 == Token::Period);
    if aggregates || !plain {
        return None;
    }
    let edits = vec![
        Edit { span: Span::new(words[at].0.start, words[at + 1].0.start), text: String::new() },
        Edit { span: item, text: format!("{aggregate}({})", subject.query.text(item)) },
    ];
    let why = format!("what holds against that of them all holds against their {aggregate}");
    Some(Fix { edits, applicability: Applicability::Likely, why, tied: false })
}

/// `x LIKE ANY ('a', 'b')` is `(x LIKE 'a' OR x LIKE 'b')`.
fn any_pattern(words: &[(Span, Token)], at: usize, subject: &Subject<'_>) -> Option<Fix> {
    let start = operand_start(words, at.checked_sub(2)?, subject)?;
    let not = mend::keyword(&words[at - 2].1) == Some(Keyword::NOT);
    let close = (at + 2..words.len()).find(|&i| words[i].1 == Token::RParen)?;
    let patterns: Vec<&(Span, Token)> = words[at + 2..close].iter().filter(|(_, t)| *t != Token::Comma).collect();
    let texts = patterns.iter().all(|(_, t)| matches!(t, Token::SingleQuotedString(_)));
    let commas = close - (at + 2) - patterns.len();
    if not || !texts || patterns.is_empty() || commas + 1 != patterns.len() {
        return None;
    }
    let like = subject.query.text(Span::new(words[start].0.start, words[at - 1].0.end));
    let each: Vec<String> = patterns.iter().map(|(span, _)| format!("{like} {}", subject.query.text(*span))).collect();
    let span = words[start].0.join(words[close].0);
    let why = "one of the patterns fits if the first does, or the second, and so on";
    Some(mend::replace(span, format!("({})", each.join(" OR ")), Applicability::Safe, why))
}

/// `= ANY (ARRAY[1, 2])` in text that does not parse, because brackets are quotes here.
pub(super) fn any_array(code: &'static str, subject: &Subject<'_>) -> Option<Finding> {
    let words = mend::words(subject);
    let (at, any) = (1..words.len()).find_map(|i| Some((i, quantifier(&words, i)?)))?;
    let is_array =
        |t: &Token| matches!(t, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("array"));
    let list = match &words.get(at + 3)?.1 {
        Token::Word(word) if word.quote_style == Some('[') && is_array(&words[at + 2].1) => {
            word.value.trim().to_string()
        }
        _ => return None,
    };
    let text = match (&words[at - 1].1, any) {
        (Token::Eq, true) => "IN",
        (Token::Neq, false) => "NOT IN",
        _ => return None,
    };
    if list.is_empty() || words.get(at + 4)?.1 != Token::RParen {
        return None;
    }
    let dialect = subject.context.dialect.name;
    let span = Span::new(words[at].0.start, words[at + 4].0.end);
    let whole = words[at - 1].0.join(span);
    Some(
        Finding::new(
            code,
            Severity::Error,
            span,
            subject.query.text(span),
            format!("{dialect} has no arrays to compare with: use {text} (…)"),
        )
        .advise(format!("{dialect} has no ANY (ARRAY[…]): write {text} (…)."))
        .mend(mend::replace(
            whole,
            format!("{text} ({list})"),
            Applicability::Safe,
            "a list says the same, by definition",
        )),
    )
}
