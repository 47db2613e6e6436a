//! Spans of tokens, calls, arguments and clauses in the query text.

use std::borrow::Cow;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::finding::Span;
use crate::resolve::BlockId;
use crate::rule::RuleContext;

/// Returns the span of a call with the given name span, and the spans of its arguments.
pub(crate) fn call_span(ctx: &RuleContext<'_>, name: Span) -> Option<(Span, Vec<Span>)> {
    let tokens = tokens(ctx);
    let spans = tokens.iter().filter(|t| !is_whitespace(t)).map(|t| (ctx.query.span(t.span), &t.token));
    let mut after = spans.skip_while(|(span, _)| span.start < name.end);
    let (open, _) = after.next().filter(|(_, t)| **t == Token::LParen)?;
    let mut depth = 0usize;
    let mut from = open.end;
    let mut arguments = Vec::new();
    for (span, token) in after {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => {
                if !ctx.query.text(Span::new(from, span.start)).trim().is_empty() {
                    arguments.push(Span::new(from, span.start));
                }
                return Some((Span::new(name.start, span.end), arguments));
            }
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                arguments.push(Span::new(from, span.start));
                from = span.end;
            }
            _ => {}
        }
    }
    None
}

/// Returns the span of the WHERE keyword of a block and its top-level conjuncts.
///
/// Returns `None` if the top-level operator is OR.
pub(crate) fn where_conjuncts(ctx: &RuleContext<'_>, block: BlockId) -> Option<(Span, Vec<Span>)> {
    let mut word: Option<Span> = None;
    let mut parts: Vec<Span> = Vec::new();
    let (mut open, mut between) = (None::<Span>, false);
    for (depth, span, token) in tokens_to_end(ctx, ctx.resolution.blocks[block].from_start) {
        match keyword(&token).filter(|_| depth == 0) {
            Some(Keyword::WHERE) => {
                word = Some(span);
                continue;
            }
            Some(k) if word.is_some() && CLAUSES_AFTER_FROM.contains(&k) => break,
            Some(Keyword::OR) if word.is_some() => return None,
            Some(Keyword::BETWEEN) => between = true,
            Some(Keyword::AND) if between => between = false,
            Some(Keyword::AND) if word.is_some() => {
                parts.extend(open.take());
                continue;
            }
            _ => {}
        }
        if word.is_some() {
            open = Some(open.map_or(span, |o| o.join(span)));
        }
    }
    parts.extend(open);
    Some((word?, parts))
}

/// Returns the tokens without whitespace, with their spans in the source text.
pub(crate) fn significant_tokens(ctx: &RuleContext<'_>) -> Vec<(Span, Token)> {
    let tokens = tokens(ctx);
    let words = tokens.iter().filter(|t| !is_whitespace(t));
    words.map(|t| (ctx.query.span(t.span), t.token.clone())).collect()
}

/// Returns the tokens of the SQL, possibly including whitespace.
///
/// Reuses the tokens of the parser if the query was parsed.
pub(crate) fn tokens<'s>(ctx: &RuleContext<'s>) -> Cow<'s, [TokenWithSpan]> {
    let query = ctx.query;
    if !query.tokens.is_empty() {
        return Cow::Borrowed(&query.tokens);
    }
    let read = Tokenizer::new(ctx.context.dialect.grammar, &query.sql).tokenize_with_location();
    Cow::Owned(read.unwrap_or_default())
}

fn is_whitespace(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

pub(crate) const CLAUSES_AFTER_FROM: &[Keyword] = &[
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::WINDOW,
    Keyword::QUALIFY,
];

/// Returns the span of the FROM keyword of a block.
pub(crate) fn from_keyword(ctx: &RuleContext<'_>, block: BlockId) -> Option<Span> {
    let start = ctx.resolution.blocks[block].from_start;
    let tokens = tokens(ctx);
    let before = tokens
        .iter()
        .filter(|t| !is_whitespace(t))
        .take_while(|t| (t.span.start.line, t.span.start.column) < (start.line, start.column))
        .last()?;
    (keyword(&before.token) == Some(Keyword::FROM)).then(|| ctx.query.span(before.span))
}

/// Returns the end offset of the FROM clause of a block in the source text.
pub(crate) fn from_clause_end(ctx: &RuleContext<'_>, block: BlockId) -> Option<usize> {
    clause_end(ctx, ctx.resolution.blocks[block].from_start, CLAUSES_AFTER_FROM)
}

/// Returns the end of the clause at `start`.
///
/// The clause ends before one of the stop keywords, the closing parenthesis of the query, or the
/// end of the text.
pub(crate) fn clause_end(ctx: &RuleContext<'_>, start: Location, stops: &[Keyword]) -> Option<usize> {
    if start.line == 0 {
        return None;
    }
    let stop = |depth: usize, token: &Token| depth == 0 && keyword(token).is_some_and(|k| stops.contains(&k));
    let rest = tokens_to_end(ctx, start).into_iter();
    rest.take_while(|(depth, _, token)| !stop(*depth, token)).last().map(|(_, span, _)| span.end)
}

/// Returns the end of the text before the JOIN of a source and its modifiers (LEFT, OUTER, …).
pub(crate) fn end_before_join(ctx: &RuleContext<'_>, source: Location) -> Option<usize> {
    const WORDS: &[Keyword] = &[
        Keyword::JOIN,
        Keyword::INNER,
        Keyword::LEFT,
        Keyword::RIGHT,
        Keyword::FULL,
        Keyword::OUTER,
        Keyword::CROSS,
        Keyword::NATURAL,
    ];
    let ahead = |t: &TokenWithSpan| (t.span.start.line, t.span.start.column) < (source.line, source.column);
    let tokens = tokens(ctx);
    let mut back: Vec<&TokenWithSpan> = tokens.iter().take_while(|t| ahead(t)).filter(|t| !is_whitespace(t)).collect();
    let before = back.len();
    while back.last().and_then(|t| keyword(&t.token)).is_some_and(|k| WORDS.contains(&k)) {
        back.pop();
    }
    // A comma join has no keyword and no condition of its own.
    if back.len() == before { None } else { back.last().map(|t| ctx.query.span(t.span).end) }
}

/// Returns the tokens of a query from `start` on, each with its parenthesis depth.
///
/// Stops at the closing parenthesis, the semicolon or the end of the text.
pub(crate) fn tokens_to_end(ctx: &RuleContext<'_>, start: Location) -> Vec<(usize, Span, Token)> {
    let mut depth = 0;
    let mut out = Vec::new();
    let after = |t: &TokenWithSpan| (t.span.start.line, t.span.start.column) >= (start.line, start.column);
    for TokenWithSpan { token, span } in tokens(ctx).iter().filter(|t| after(t)) {
        let span = ctx.query.span(*span);
        match token {
            Token::Whitespace(_) => continue,
            Token::SemiColon | Token::EOF => break,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let opens = *token == Token::LParen;
        out.push((depth, span, token.clone()));
        depth += usize::from(opens);
    }
    out
}

/// Returns the keyword of a token unless it is a quoted identifier.
pub(crate) fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Returns the first token of the operand that ends at `last`.
///
/// An operand is an optionally qualified name, a literal, or parentheses with the function before
/// them.
pub(crate) fn operand_start(tokens: &[(Span, Token)], last: usize, ctx: &RuleContext<'_>) -> Option<usize> {
    let mut start = last;
    if tokens[last].1 == Token::RParen {
        let mut depth = 0usize;
        start = (0..=last).rev().find(|&i| {
            match tokens[i].1 {
                Token::RParen => depth += 1,
                Token::LParen => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        let Some(before) = start.checked_sub(1) else { return Some(start) };
        let called = ctx.resolution.calls.iter().any(|c| ctx.query.span(c.span).start == tokens[before].0.start);
        let cast = ctx.query.text(tokens[before].0).eq_ignore_ascii_case("cast");
        return Some(if called || cast { before } else { start });
    }
    if !matches!(tokens[last].1, Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_)) {
        return None;
    }
    while start >= 2 && tokens[start - 1].1 == Token::Period && matches!(tokens[start - 2].1, Token::Word(_)) {
        start -= 2;
    }
    Some(start)
}
