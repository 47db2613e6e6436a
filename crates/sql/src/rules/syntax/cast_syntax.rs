#![doc = include_str!("cast_syntax.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::broken::fix;
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::mend::{keyword, tokens};
use crate::query::Failure;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "cast-syntax", group: "syntax", page: include_str!("cast_syntax.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    // Some grammars read `CAST(a, REAL)` as a call of a function that nobody has.
    let called = subject.facts.calls.iter().any(|c| c.lower == "cast");
    let broken = matches!(subject.query.failure, Some(Failure::Syntax { .. })) && subject.query.steps.is_empty();
    if !called && !broken {
        return;
    }
    let words: Vec<TokenWithSpan> =
        tokens(subject).iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).cloned().collect();
    let span = |i: usize| subject.query.span(words[i].span);
    let mut edits: Vec<Edit> = Vec::new();
    let mut first = None;
    for at in 0..words.len() {
        let casts = matches!(keyword(&words[at].token), Some(Keyword::CAST | Keyword::TRY_CAST));
        if !casts || words.get(at + 1).is_none_or(|w| w.token != Token::LParen) {
            continue;
        }
        let Some(own) = right(&words, at + 1, &span) else { continue };
        edits.extend(own);
        first.get_or_insert(span(at));
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let Some(span) = first else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            "the type stands inside the parentheses, behind AS: CAST(value AS type)",
        )
        .advise("Write CAST(value AS type).")
        .mend(fix(edits, Applicability::Likely, "the value and the type are both there")),
    );
}

/// The changes that put AS and the type where they belong.
fn right(words: &[TokenWithSpan], open: usize, span: &dyn Fn(usize) -> Span) -> Option<Vec<Edit>> {
    let mut depth = 0usize;
    let (mut comma, mut close, mut has_as) = (None, None, false);
    for (i, word) in words.iter().enumerate().skip(open) {
        match &word.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => {
                close = Some(i);
                break;
            }
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 1 => comma = Some(i),
            token if depth == 1 => has_as |= keyword(token) == Some(Keyword::AS),
            _ => {}
        }
    }
    let close = close?;
    if has_as || close == open + 1 {
        return None;
    }
    if let Some(comma) = comma {
        return is_type(words, comma + 1, close).then(|| vec![Edit { span: span(comma), text: " AS".into() }]);
    }
    // `CAST(a) AS REAL`: the type is taken inside.
    let is_as = words.get(close + 1).is_some_and(|w| keyword(&w.token) == Some(Keyword::AS));
    (is_as && is_type(words, close + 2, close + 3)).then(|| {
        let kind = span(close + 2);
        vec![
            Edit { span: span(close), text: String::new() },
            Edit { span: Span::new(kind.end, kind.end), text: ")".into() },
        ]
    })
}

/// Whether a type stands there: its name, and a size behind it.
fn is_type(words: &[TokenWithSpan], from: usize, to: usize) -> bool {
    let Some(Token::Word(word)) = words.get(from).map(|w| &w.token) else { return false };
    const TYPES: &[&str] = &[
        "bigint",
        "boolean",
        "char",
        "character",
        "date",
        "datetime",
        "decimal",
        "double",
        "float",
        "int",
        "integer",
        "numeric",
        "nvarchar",
        "real",
        "smallint",
        "string",
        "text",
        "time",
        "timestamp",
        "varchar",
    ];
    let sized = |t: &TokenWithSpan| {
        matches!(t.token, Token::LParen | Token::RParen | Token::Number(..) | Token::Comma | Token::Word(_))
    };
    TYPES.iter().any(|t| t.eq_ignore_ascii_case(&word.value)) && words[from + 1..to.max(from + 1)].iter().all(sized)
}
