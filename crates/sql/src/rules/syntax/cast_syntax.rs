#![doc = include_str!("cast_syntax.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::fixes::{keyword, tokens};
use crate::parse::parsed_query::ParseFailure;
use crate::parse::token_stream::fix;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `cast-syntax` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "cast-syntax",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("cast_syntax.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    // Some grammars parse `CAST(a, REAL)` as a call of a function that does not exist.
    let called = ctx.resolution.calls.iter().any(|c| c.lower_name == "cast");
    let broken = matches!(ctx.query.failure, Some(ParseFailure::Syntax { .. })) && ctx.query.steps.is_empty();
    if !called && !broken {
        return;
    }
    let tokens: Vec<TokenWithSpan> =
        tokens(ctx).iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).cloned().collect();
    let span = |i: usize| ctx.query.span(tokens[i].span);
    let mut edits: Vec<Edit> = Vec::new();
    let mut first = None;
    for at in 0..tokens.len() {
        let casts = matches!(keyword(&tokens[at].token), Some(Keyword::CAST | Keyword::TRY_CAST));
        if !casts || tokens.get(at + 1).is_none_or(|w| w.token != Token::LParen) {
            continue;
        }
        let Some(own) = corrected_cast(&tokens, at + 1, &span) else { continue };
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
            ctx.query.text(span),
            "the type goes inside the parentheses, after AS: CAST(value AS type)",
        )
        .with_advice("Write CAST(value AS type).")
        .with_fix(fix(edits, Applicability::Likely, "the value and the type are both present")),
    );
}

/// Returns the edits that put AS and the type in the right position.
fn corrected_cast(tokens: &[TokenWithSpan], open: usize, span: &dyn Fn(usize) -> Span) -> Option<Vec<Edit>> {
    let mut depth = 0usize;
    let (mut comma, mut close, mut has_as) = (None, None, false);
    for (i, word) in tokens.iter().enumerate().skip(open) {
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
        return is_type_name(tokens, comma + 1, close).then(|| vec![Edit { span: span(comma), text: " AS".into() }]);
    }
    // `CAST(a) AS REAL`: the type moves inside.
    let is_as = tokens.get(close + 1).is_some_and(|w| keyword(&w.token) == Some(Keyword::AS));
    (is_as && is_type_name(tokens, close + 2, close + 3)).then(|| {
        let kind = span(close + 2);
        vec![
            Edit { span: span(close), text: String::new() },
            Edit { span: Span::new(kind.end, kind.end), text: ")".into() },
        ]
    })
}

/// Returns whether the tokens are the name of a type, possibly with a size.
fn is_type_name(tokens: &[TokenWithSpan], from: usize, to: usize) -> bool {
    let Some(Token::Word(word)) = tokens.get(from).map(|w| &w.token) else { return false };
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
    TYPES.iter().any(|t| t.eq_ignore_ascii_case(&word.value)) && tokens[from + 1..to.max(from + 1)].iter().all(sized)
}
