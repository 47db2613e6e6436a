//! Rewrites of row limits (TOP, LIMIT, FETCH) in the syntax of the dialect.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::LimitSyntax;
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::rule::RuleContext;

const SET_OPERATIONS: &[Keyword] = &[Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];

fn is_keyword(tokens: &[(Span, Token)], at: usize, keywords: &[Keyword]) -> bool {
    tokens.get(at).and_then(|(_, t)| fixes::keyword(t)).is_some_and(|k| keywords.contains(&k))
}

fn number_at(tokens: &[(Span, Token)], at: usize) -> Option<String> {
    match &tokens.get(at)?.1 {
        Token::Number(n, _) => Some(n.clone()),
        _ => None,
    }
}

fn equivalent_fix(span: Span, text: String) -> Fix {
    fixes::replace(span, text, Applicability::Safe, "it returns the same rows in the syntax of the dialect")
}

/// Formats a LIMIT clause with an optional OFFSET.
fn limit_clause(limit: LimitSyntax, count: &str, offset: Option<&str>) -> String {
    match offset {
        None => format!("LIMIT {count}"),
        Some(offset) if limit.offset_first => format!("OFFSET {offset} LIMIT {count}"),
        Some(offset) => format!("LIMIT {count} OFFSET {offset}"),
    }
}

/// Rewrites `SELECT TOP n …` as LIMIT n.
pub(crate) fn from_top(top: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let at = tokens.iter().position(|(span, _)| *span == top)?;
    let mut next = at + 1;
    let wrapped = tokens.get(next)?.1 == Token::LParen;
    next += usize::from(wrapped);
    let count = number_at(&tokens, next)?;
    next += 1 + usize::from(wrapped);
    // LIMIT cannot express PERCENT or WITH TIES.
    if is_keyword(&tokens, next, &[Keyword::PERCENT, Keyword::WITH]) {
        return None;
    }
    let select = (0..at).rev().find(|&i| is_keyword(&tokens, i, &[Keyword::SELECT]))?;
    let before = select.checked_sub(1);
    if before.is_some_and(|b| {
        is_keyword(&tokens, b, SET_OPERATIONS) || is_keyword(&tokens, b, &[Keyword::ALL, Keyword::DISTINCT])
    }) {
        return None;
    }
    let (mut depth, mut end) = (0usize, top.end);
    for (i, (span, token)) in tokens.iter().enumerate().skip(next) {
        match token {
            Token::SemiColon | Token::EOF => break,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::LParen => depth += 1,
            _ if depth == 0
                && (is_keyword(&tokens, i, SET_OPERATIONS)
                    || is_keyword(&tokens, i, &[Keyword::LIMIT, Keyword::FETCH])) =>
            {
                return None;
            }
            _ => {}
        }
        end = span.end;
    }
    let removed = Span::new(top.start, tokens.get(next)?.0.start);
    let edits = vec![
        Edit { span: removed, text: String::new() },
        Edit { span: Span::new(end, end), text: format!(" LIMIT {count}") },
    ];
    Some(Fix { edits, ..equivalent_fix(removed, String::new()) })
}

/// Rewrites `LIMIT offset, n` in the syntax of the dialect.
pub(crate) fn from_comma(near: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let at = (0..tokens.len()).find(|&i| {
        let here = tokens[i].0.end <= near.start && tokens.get(i + 1).is_some_and(|(span, _)| near.start <= span.start);
        is_keyword(&tokens, i, &[Keyword::LIMIT]) && here
    })?;
    let (offset, count) = (number_at(&tokens, at + 1)?, number_at(&tokens, at + 3)?);
    (tokens[at + 2].1 == Token::Comma).then_some(())?;
    let text = limit_clause(ctx.context.dialect.limit, &count, Some(&offset));
    Some(equivalent_fix(tokens[at].0.join(tokens[at + 3].0), text))
}

/// Rewrites `LIMIT n OFFSET m` for dialects that require the opposite order.
pub(crate) fn from_offset(near: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let at = tokens.iter().position(|(span, _)| span.start == near.start)?.checked_sub(1)?;
    let (count, offset) = (number_at(&tokens, at + 1)?, number_at(&tokens, at + 3)?);
    (is_keyword(&tokens, at, &[Keyword::LIMIT]) && is_keyword(&tokens, at + 2, &[Keyword::OFFSET])).then_some(())?;
    let text = limit_clause(ctx.context.dialect.limit, &count, Some(&offset));
    Some(equivalent_fix(tokens[at].0.join(tokens[at + 3].0), text))
}

/// Rewrites `[OFFSET m ROWS] FETCH FIRST n ROWS ONLY` as LIMIT.
pub(crate) fn from_fetch(fetch: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let at = tokens.iter().position(|(span, _)| span.start == fetch.start)?;
    is_keyword(&tokens, at + 1, &[Keyword::FIRST, Keyword::NEXT]).then_some(())?;
    let given = number_at(&tokens, at + 2);
    let rows = at + 2 + usize::from(given.is_some());
    (is_keyword(&tokens, rows, &[Keyword::ROW, Keyword::ROWS]) && is_keyword(&tokens, rows + 1, &[Keyword::ONLY]))
        .then_some(())?;
    let offset = at.checked_sub(3).filter(|&o| {
        is_keyword(&tokens, o, &[Keyword::OFFSET]) && is_keyword(&tokens, at - 1, &[Keyword::ROW, Keyword::ROWS])
    });
    let skipped = offset.and_then(|o| number_at(&tokens, o + 1));
    let start = if skipped.is_some() { tokens[at - 3].0 } else { tokens[at].0 };
    let count = given.unwrap_or_else(|| "1".into());
    let text = limit_clause(ctx.context.dialect.limit, &count, skipped.as_deref());
    Some(equivalent_fix(start.join(tokens[rows + 1].0), text))
}
