//! The same rows, limited in the way of the dialect.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::LimitSyntax;
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend;
use crate::rules::Subject;

const SET_OPERATIONS: &[Keyword] = &[Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];

fn is(words: &[(Span, Token)], at: usize, keywords: &[Keyword]) -> bool {
    words.get(at).and_then(|(_, t)| mend::keyword(t)).is_some_and(|k| keywords.contains(&k))
}

fn number(words: &[(Span, Token)], at: usize) -> Option<String> {
    match &words.get(at)?.1 {
        Token::Number(n, _) => Some(n.clone()),
        _ => None,
    }
}

fn same_rows(span: Span, text: String) -> Fix {
    mend::replace(span, text, Applicability::Safe, "it asks for the same rows in the words of the dialect")
}

/// How many rows, and how many before them are left out.
fn limited(limit: LimitSyntax, count: &str, offset: Option<&str>) -> String {
    match offset {
        None => format!("LIMIT {count}"),
        Some(offset) if limit.offset_first => format!("OFFSET {offset} LIMIT {count}"),
        Some(offset) => format!("LIMIT {count} OFFSET {offset}"),
    }
}

/// `SELECT TOP n …` ends with LIMIT n.
pub(super) fn from_top(top: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let at = words.iter().position(|(span, _)| *span == top)?;
    let mut next = at + 1;
    let wrapped = words.get(next)?.1 == Token::LParen;
    next += usize::from(wrapped);
    let count = number(&words, next)?;
    next += 1 + usize::from(wrapped);
    // A share of the rows, or all that are as good as the last one, LIMIT cannot say.
    if is(&words, next, &[Keyword::PERCENT, Keyword::WITH]) {
        return None;
    }
    let select = (0..at).rev().find(|&i| is(&words, i, &[Keyword::SELECT]))?;
    let before = select.checked_sub(1);
    if before.is_some_and(|b| is(&words, b, SET_OPERATIONS) || is(&words, b, &[Keyword::ALL, Keyword::DISTINCT])) {
        return None;
    }
    let (mut depth, mut end) = (0usize, top.end);
    for (i, (span, token)) in words.iter().enumerate().skip(next) {
        match token {
            Token::SemiColon | Token::EOF => break,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::LParen => depth += 1,
            _ if depth == 0 && (is(&words, i, SET_OPERATIONS) || is(&words, i, &[Keyword::LIMIT, Keyword::FETCH])) => {
                return None;
            }
            _ => {}
        }
        end = span.end;
    }
    let gone = Span::new(top.start, words.get(next)?.0.start);
    let edits = vec![
        Edit { span: gone, text: String::new() },
        Edit { span: Span::new(end, end), text: format!(" LIMIT {count}") },
    ];
    Some(Fix { edits, ..same_rows(gone, String::new()) })
}

/// `LIMIT offset, n` in the order and the words of the dialect.
pub(super) fn from_comma(near: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let at = (0..words.len()).find(|&i| {
        let here = words[i].0.end <= near.start && words.get(i + 1).is_some_and(|(span, _)| near.start <= span.start);
        is(&words, i, &[Keyword::LIMIT]) && here
    })?;
    let (offset, count) = (number(&words, at + 1)?, number(&words, at + 3)?);
    (words[at + 2].1 == Token::Comma).then_some(())?;
    let text = limited(subject.context.dialect.limit, &count, Some(&offset));
    Some(same_rows(words[at].0.join(words[at + 3].0), text))
}

/// `LIMIT n OFFSET m`, where the dialect wants it the other way round.
pub(super) fn from_offset(near: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let at = words.iter().position(|(span, _)| span.start == near.start)?.checked_sub(1)?;
    let (count, offset) = (number(&words, at + 1)?, number(&words, at + 3)?);
    (is(&words, at, &[Keyword::LIMIT]) && is(&words, at + 2, &[Keyword::OFFSET])).then_some(())?;
    let text = limited(subject.context.dialect.limit, &count, Some(&offset));
    Some(same_rows(words[at].0.join(words[at + 3].0), text))
}

/// `[OFFSET m ROWS] FETCH FIRST n ROWS ONLY`.
pub(super) fn from_fetch(fetch: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let at = words.iter().position(|(span, _)| span.start == fetch.start)?;
    is(&words, at + 1, &[Keyword::FIRST, Keyword::NEXT]).then_some(())?;
    let given = number(&words, at + 2);
    let rows = at + 2 + usize::from(given.is_some());
    (is(&words, rows, &[Keyword::ROW, Keyword::ROWS]) && is(&words, rows + 1, &[Keyword::ONLY])).then_some(())?;
    let offset = at
        .checked_sub(3)
        .filter(|&o| is(&words, o, &[Keyword::OFFSET]) && is(&words, at - 1, &[Keyword::ROW, Keyword::ROWS]));
    let skipped = offset.and_then(|o| number(&words, o + 1));
    let start = if skipped.is_some() { words[at - 3].0 } else { words[at].0 };
    let count = given.unwrap_or_else(|| "1".into());
    let text = limited(subject.context.dialect.limit, &count, skipped.as_deref());
    Some(same_rows(start.join(words[rows + 1].0), text))
}
