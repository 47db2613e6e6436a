//! Rewrites quantified comparisons (ANY, ALL) in syntax that every dialect supports.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::fixes;
use crate::fixes::clause_spans::operand_start;
use crate::rule::RuleContext;

/// Rewrites `= ANY (SELECT …)`, `>= ALL (SELECT …)` and `LIKE ANY (…)`.
///
/// `span` covers the comparison or a part of it.
pub(crate) fn rewrite_quantifier(span: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let at = (1..tokens.len()).find(|&i| {
        let near = span.start <= tokens[i].0.end && tokens[i].0.start <= span.end;
        near && quantifier_at(&tokens, i).is_some()
    })?;
    let any = quantifier_at(&tokens, at)?;
    if matches!(fixes::keyword(&tokens[at - 1].1), Some(Keyword::LIKE | Keyword::ILIKE)) {
        return any.then(|| expand_like_any(&tokens, at, ctx)).flatten();
    }
    let queries = matches!(fixes::keyword(&tokens.get(at + 2)?.1), Some(Keyword::SELECT));
    let operator = Span::new(tokens[at - 1].0.start, tokens[at].0.end);
    let equal = |text: &str| {
        let why = "it is equivalent by definition, and every dialect supports it";
        Some(fixes::replace(operator, text, Applicability::Safe, why))
    };
    let larger = matches!(tokens[at - 1].1, Token::Gt | Token::GtEq);
    match &tokens[at - 1].1 {
        Token::Eq if any && queries => equal("IN"),
        Token::Neq if !any && queries => equal("NOT IN"),
        Token::Gt | Token::GtEq | Token::Lt | Token::LtEq if queries => {
            compare_with_extreme(&tokens, at, if larger == any { "MIN" } else { "MAX" }, ctx)
        }
        _ => None,
    }
}

/// Returns `true` for ANY and `false` for ALL if the token is a quantifier of a comparison.
fn quantifier_at(tokens: &[(Span, Token)], at: usize) -> Option<bool> {
    let any = match fixes::keyword(&tokens[at].1)? {
        Keyword::ANY | Keyword::SOME => true,
        Keyword::ALL => false,
        _ => return None,
    };
    let compared =
        matches!(tokens[at - 1].1, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
            || matches!(fixes::keyword(&tokens[at - 1].1), Some(Keyword::LIKE | Keyword::ILIKE));
    (compared && tokens.get(at + 1)?.1 == Token::LParen).then_some(any)
}

/// Rewrites `> ALL (SELECT x …)` as `> (SELECT MAX(x) …)`.
///
/// They are equivalent if the subquery returns at least one row and no NULL.
fn compare_with_extreme(tokens: &[(Span, Token)], at: usize, aggregate: &str, ctx: &RuleContext<'_>) -> Option<Fix> {
    let first = at + 3;
    let mut depth = 0usize;
    let mut from = None;
    for (i, (_, token)) in tokens.iter().enumerate().skip(first) {
        match token {
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::LParen => depth += 1,
            Token::Comma if depth == 0 && from.is_none() => return None,
            _ if depth > 0 => {}
            _ => match fixes::keyword(token) {
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
    let item = tokens[first].0.join(tokens[from?.checked_sub(1)?].0);
    let aggregates = ctx.resolution.calls.iter().any(|c| {
        let call = ctx.query.span(c.span);
        c.is_aggregate && item.start <= call.start && call.end <= item.end
    });
    // `SELECT price p FROM …` has an alias without AS.
    let plain = from? == first + 1 || (from? == first + 3 && tokens[first + 1].1 == Token::Period);
    if aggregates || !plain {
        return None;
    }
    let edits = vec![
        Edit { span: Span::new(tokens[at].0.start, tokens[at + 1].0.start), text: String::new() },
        Edit { span: item, text: format!("{aggregate}({})", ctx.query.text(item)) },
    ];
    let why = format!("comparing with all values is the same as comparing with their {aggregate}");
    Some(Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false })
}

/// Rewrites `x LIKE ANY ('a', 'b')` as `(x LIKE 'a' OR x LIKE 'b')`.
fn expand_like_any(tokens: &[(Span, Token)], at: usize, ctx: &RuleContext<'_>) -> Option<Fix> {
    let start = operand_start(tokens, at.checked_sub(2)?, ctx)?;
    let not = fixes::keyword(&tokens[at - 2].1) == Some(Keyword::NOT);
    let close = (at + 2..tokens.len()).find(|&i| tokens[i].1 == Token::RParen)?;
    let patterns: Vec<&(Span, Token)> = tokens[at + 2..close].iter().filter(|(_, t)| *t != Token::Comma).collect();
    let texts = patterns.iter().all(|(_, t)| matches!(t, Token::SingleQuotedString(_)));
    let commas = close - (at + 2) - patterns.len();
    if not || !texts || patterns.is_empty() || commas + 1 != patterns.len() {
        return None;
    }
    let like = ctx.query.text(Span::new(tokens[start].0.start, tokens[at - 1].0.end));
    let each: Vec<String> = patterns.iter().map(|(span, _)| format!("{like} {}", ctx.query.text(*span))).collect();
    let span = tokens[start].0.join(tokens[close].0);
    let why = "matching any of the patterns means matching the first, or the second, and so on";
    Some(fixes::replace(span, format!("({})", each.join(" OR ")), Applicability::Safe, why))
}

/// Rewrites `= ANY (ARRAY[1, 2])`, which does not parse in dialects with bracket quotes.
pub(crate) fn rewrite_any_array(code: &'static str, ctx: &RuleContext<'_>) -> Option<Finding> {
    let tokens = fixes::significant_tokens(ctx);
    let (at, any) = (1..tokens.len()).find_map(|i| Some((i, quantifier_at(&tokens, i)?)))?;
    let is_array =
        |t: &Token| matches!(t, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("array"));
    let list = match &tokens.get(at + 3)?.1 {
        Token::Word(word) if word.quote_style == Some('[') && is_array(&tokens[at + 2].1) => {
            word.value.trim().to_string()
        }
        _ => return None,
    };
    let text = match (&tokens[at - 1].1, any) {
        (Token::Eq, true) => "IN",
        (Token::Neq, false) => "NOT IN",
        _ => return None,
    };
    if list.is_empty() || tokens.get(at + 4)?.1 != Token::RParen {
        return None;
    }
    let dialect = ctx.context.dialect.name;
    let span = Span::new(tokens[at].0.start, tokens[at + 4].0.end);
    let whole = tokens[at - 1].0.join(span);
    Some(
        Finding::new(
            code,
            Severity::Error,
            span,
            ctx.query.text(span),
            format!("{dialect} has no arrays to compare with: use {text} (…)"),
        )
        .with_advice(format!("{dialect} has no ANY (ARRAY[…]): write {text} (…)."))
        .with_fix(fixes::replace(
            whole,
            format!("{text} ({list})"),
            Applicability::Safe,
            "a list is equivalent by definition",
        )),
    )
}
