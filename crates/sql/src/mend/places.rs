//! Places in the text: tokens, calls and their arguments, where clauses begin and end.

use std::borrow::Cow;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::finding::Span;
use crate::rules::Subject;
use crate::scope::BlockId;

/// The whole of a call whose name stands there, and its arguments, told apart by the commas between them.
pub(crate) fn call(subject: &Subject<'_>, name: Span) -> Option<(Span, Vec<Span>)> {
    let tokens = tokens(subject);
    let spans = tokens.iter().filter(|t| !is_space(t)).map(|t| (subject.query.span(t.span), &t.token));
    let mut behind = spans.skip_while(|(span, _)| span.start < name.end);
    let (open, _) = behind.next().filter(|(_, t)| **t == Token::LParen)?;
    let mut depth = 0usize;
    let mut from = open.end;
    let mut arguments = Vec::new();
    for (span, token) in behind {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => {
                if !subject.query.text(Span::new(from, span.start)).trim().is_empty() {
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

/// The conditions of a block's WHERE that AND joins at its top, and where the word WHERE stands. `None` if OR does.
pub(crate) fn conditions(subject: &Subject<'_>, block: BlockId) -> Option<(Span, Vec<Span>)> {
    let mut word: Option<Span> = None;
    let mut parts: Vec<Span> = Vec::new();
    let (mut open, mut between) = (None::<Span>, false);
    for (depth, span, token) in rest_of_query(subject, subject.facts.blocks[block].from) {
        match keyword(&token).filter(|_| depth == 0) {
            Some(Keyword::WHERE) => {
                word = Some(span);
                continue;
            }
            Some(k) if word.is_some() && AFTER_FROM.contains(&k) => break,
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

/// The tokens of the SQL that are not white space, with their places in the given text.
pub(crate) fn words(subject: &Subject<'_>) -> Vec<(Span, Token)> {
    let tokens = tokens(subject);
    let words = tokens.iter().filter(|t| !is_space(t));
    words.map(|t| (subject.query.span(t.span), t.token.clone())).collect()
}

/// The tokens of the SQL with their places in it, white space perhaps among them: those that it was parsed from, if it was.
pub(crate) fn tokens<'s>(subject: &Subject<'s>) -> Cow<'s, [TokenWithSpan]> {
    let query = subject.query;
    if !query.tokens.is_empty() {
        return Cow::Borrowed(&query.tokens);
    }
    let read = Tokenizer::new(subject.context.dialect.grammar, &query.sql).tokenize_with_location();
    Cow::Owned(read.unwrap_or_default())
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

pub(crate) const AFTER_FROM: &[Keyword] = &[
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

/// The word FROM of a block.
pub(crate) fn from_word(subject: &Subject<'_>, block: BlockId) -> Option<Span> {
    let start = subject.facts.blocks[block].from;
    let tokens = tokens(subject);
    let before = tokens
        .iter()
        .filter(|t| !is_space(t))
        .take_while(|t| (t.span.start.line, t.span.start.column) < (start.line, start.column))
        .last()?;
    (keyword(&before.token) == Some(Keyword::FROM)).then(|| subject.query.span(before.span))
}

/// Where the FROM clause of a block ends, in the given text.
pub(crate) fn from_end(subject: &Subject<'_>, block: BlockId) -> Option<usize> {
    clause_end(subject, subject.facts.blocks[block].from, AFTER_FROM)
}

/// The end of the clause that holds a place: before one of the keywords, the parenthesis that closes the query, or the end.
pub(crate) fn clause_end(subject: &Subject<'_>, start: Location, stops: &[Keyword]) -> Option<usize> {
    if start.line == 0 {
        return None;
    }
    let stop = |depth: usize, token: &Token| depth == 0 && keyword(token).is_some_and(|k| stops.contains(&k));
    let rest = rest_of_query(subject, start).into_iter();
    rest.take_while(|(depth, _, token)| !stop(*depth, token)).last().map(|(_, span, _)| span.end)
}

/// Where the text before the JOIN of a source ends: before JOIN and the words that go with it.
pub(crate) fn before_join(subject: &Subject<'_>, source: Location) -> Option<usize> {
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
    let tokens = tokens(subject);
    let mut back: Vec<&TokenWithSpan> = tokens.iter().take_while(|t| ahead(t)).filter(|t| !is_space(t)).collect();
    let before = back.len();
    while back.last().and_then(|t| keyword(&t.token)).is_some_and(|k| WORDS.contains(&k)) {
        back.pop();
    }
    // A comma joins without a word, and has no condition of its own.
    if back.len() == before { None } else { back.last().map(|t| subject.query.span(t.span).end) }
}

/// The tokens of a query from a place on, with how deep each stands, up to the parenthesis, semicolon or end that closes it.
pub(crate) fn rest_of_query(subject: &Subject<'_>, start: Location) -> Vec<(usize, Span, Token)> {
    let mut depth = 0;
    let mut out = Vec::new();
    let behind = |t: &TokenWithSpan| (t.span.start.line, t.span.start.column) >= (start.line, start.column);
    for TokenWithSpan { token, span } in tokens(subject).iter().filter(|t| behind(t)) {
        let span = subject.query.span(*span);
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

/// The keyword that a token is, if it is one and not a name in quotes.
pub(crate) fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}
