//! Removes or replaces hints and modifiers of other dialects.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::{CanonicalFunction, Feature};
use crate::finding::{Applicability, Fix, Span};
use crate::fixes;
use crate::rule::RuleContext;
use crate::schema::{Column, Type};
use crate::transpile::arguments::parse_integer;
use crate::transpile::call::CanonicalCall;

/// Table hints of SQL Server, which control locking and isolation.
const TABLE_HINTS: &[&str] =
    &["nolock", "readuncommitted", "readcommitted", "readpast", "rowlock", "paglock", "tablock"];
/// Query hints of SQL Server, which control planning.
const QUERY_HINTS: &[&str] =
    &["recompile", "maxdop", "hash", "loop", "merge", "fast", "force", "optimize", "maxrecursion"];

/// Maximum number of rewrites per query.
const MAX_REWRITES: usize = 40;

/// Returns the span, feature and fix of every hint or modifier that the dialect lacks.
pub(crate) fn rewrite_hints(ctx: &RuleContext<'_>) -> Vec<(Span, Feature, Fix)> {
    let lacks = |feature: &Feature| !ctx.context.dialect.supports(*feature);
    const ALL: &[Feature] = &[
        Feature::NationalLiteral,
        Feature::NullSafeEqual,
        Feature::LimitAll,
        Feature::OffsetRows,
        Feature::TableHint,
        Feature::QueryHint,
    ];
    if !ALL.iter().any(lacks) || !fixes::within_fix_budget(ctx, &[]) {
        return Vec::new();
    }
    let tokens = fixes::significant_tokens(ctx);
    let found = (0..tokens.len()).filter_map(|at| rewrite_hint_at(&tokens, at));
    let mut found: Vec<_> = found.filter(|(_, feature, _)| lacks(feature)).collect();
    // A separator that the parser accepts is reported with its call.
    if ctx.query.failure.is_some() && lacks(&Feature::Separator) {
        found.extend((0..tokens.len()).filter_map(|at| rewrite_separator_at(&tokens, at)));
    }
    if ctx.query.failure.is_some() {
        let divided = (1..tokens.len()).filter_map(|at| rewrite_div_mod(&tokens, at, ctx));
        found.extend(divided.filter(|(_, feature, _)| lacks(feature)));
    }
    // Hand-written queries do not have more, and each rewrite is applied separately.
    if found.len() > MAX_REWRITES { Vec::new() } else { found }
}

fn rewrite_hint_at(tokens: &[(Span, Token)], at: usize) -> Option<(Span, Feature, Fix)> {
    let (span, token) = &tokens[at];
    let is = |at: usize, keyword| tokens.get(at).is_some_and(|(_, token)| fixes::keyword(token) == Some(keyword));
    // Also remove the whitespace before the tokens.
    let removed = |first: usize, last: usize, feature, why: &str| {
        let before = first.checked_sub(1).map_or(tokens[first].0.start, |before| tokens[before].0.end);
        let place = tokens[first].0.join(tokens[last].0);
        let fix = fixes::replace(Span::new(before, place.end), "", Applicability::Safe, why);
        Some((place, feature, fix))
    };
    match token {
        Token::NationalStringLiteral(_) => {
            let why = "all text is Unicode here, so no prefix is needed";
            let mark = Span::new(span.start, span.start + 1);
            Some((*span, Feature::NationalLiteral, fixes::replace(mark, "", Applicability::Safe, why)))
        }
        Token::Spaceship => {
            let why = "it is the same NULL-safe comparison";
            let fix = fixes::replace(*span, "IS NOT DISTINCT FROM", Applicability::Safe, why);
            Some((*span, Feature::NullSafeEqual, fix))
        }
        _ if is(at, Keyword::LIMIT) && is(at + 1, Keyword::ALL) && !is(at + 2, Keyword::OFFSET) => {
            removed(at, at + 1, Feature::LimitAll, "all rows are returned without a limit")
        }
        Token::Number(..)
            if at >= 3
                && is(at - 1, Keyword::OFFSET)
                && is(at - 3, Keyword::LIMIT)
                && (is(at + 1, Keyword::ROWS) || is(at + 1, Keyword::ROW))
                && !is(at + 2, Keyword::FETCH) =>
        {
            removed(at + 1, at + 1, Feature::OffsetRows, "OFFSET always counts rows")
        }
        Token::LParen if at > 0 => {
            let close = at + tokens[at..].iter().take(12).position(|(_, token)| *token == Token::RParen)?;
            let why = "it is an optimizer hint of another database and does not change the result";
            let hints = |known: &[&str]| {
                let mut inside = tokens[at + 1..close].iter().filter_map(|(_, token)| match token {
                    Token::Word(word) => Some(known.iter().any(|hint| word.value.eq_ignore_ascii_case(hint))),
                    _ => None,
                });
                inside.next() == Some(true)
            };
            let words_only = tokens[at + 1..close].iter().all(|(_, t)| matches!(t, Token::Word(_) | Token::Comma));
            let ends = tokens.get(close + 1).is_none_or(|(_, t)| matches!(t, Token::SemiColon | Token::EOF));
            if is(at - 1, Keyword::WITH) && words_only && hints(TABLE_HINTS) {
                return removed(at - 1, close, Feature::TableHint, why);
            }
            if is(at - 1, Keyword::OPTION) && ends && hints(QUERY_HINTS) {
                return removed(at - 1, close, Feature::QueryHint, why);
            }
            let table = matches!(tokens[at - 1].1, Token::Word(_)) && close == at + 2;
            (table && hints(&["nolock"])).then(|| removed(at, close, Feature::TableHint, why)).flatten()
        }
        _ => None,
    }
}

/// Rewrites `GROUP_CONCAT(x SEPARATOR '; ')` with a comma; `place` is the span of the separator.
///
/// Calls with ORDER BY are not rewritten.
pub(crate) fn rewrite_separator(place: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let at = tokens.iter().rposition(|(span, token)| span.start <= place.start && is_separator(token))?;
    rewrite_separator_at(&tokens, at).map(|(_, _, fix)| fix)
}

fn is_separator(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("separator"))
}

fn rewrite_separator_at(tokens: &[(Span, Token)], at: usize) -> Option<(Span, Feature, Fix)> {
    is_separator(&tokens[at].1).then_some(())?;
    let text = tokens.get(at + 1).filter(|(_, token)| matches!(token, Token::SingleQuotedString(_)))?;
    tokens.get(at + 2).filter(|(_, token)| *token == Token::RParen)?;
    let mut depth = 0usize;
    for before in (1..at).rev() {
        match &tokens[before].1 {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            Token::LParen => {
                let called = matches!(&tokens[before - 1].1, Token::Word(word) if word.value.eq_ignore_ascii_case("group_concat"));
                let gap = Span::new(tokens[at - 1].0.end, text.0.start);
                let why = "the separator is the second argument of the aggregate here";
                let fix = fixes::replace(gap, ", ", Applicability::Likely, why);
                return called.then(|| (tokens[at].0.join(text.0), Feature::Separator, fix));
            }
            Token::Comma if depth == 0 => return None,
            // Not every dialect allows a second argument beside ORDER BY or DISTINCT.
            token if depth == 0 && matches!(fixes::keyword(token), Some(Keyword::ORDER | Keyword::DISTINCT)) => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// Rewrites `a DIV 7` and `a MOD 7` that the parser does not accept.
///
/// Only integer columns are rewritten, since the remainder of other numbers has a fraction.
fn rewrite_div_mod(tokens: &[(Span, Token)], at: usize, ctx: &RuleContext<'_>) -> Option<(Span, Feature, Fix)> {
    let Token::Word(operator) = &tokens[at].1 else { return None };
    let (feature, function) = match operator.value.to_ascii_lowercase().as_str() {
        "div" => (Feature::DivOperator, CanonicalFunction::IntegerDivide),
        "mod" => (Feature::ModOperator, CanonicalFunction::Modulo),
        _ => return None,
    };
    let Token::Word(column) = &tokens[at - 1].1 else { return None };
    let (by, Token::Number(count, _)) = tokens.get(at + 1)? else { return None };
    parse_integer(count)?;
    let tables = ctx.context.schema?.tables();
    let mut kinds = tables.iter().filter_map(|table| table.column(&column.value)).map(Column::kind).peekable();
    (kinds.peek().is_some() && kinds.all(|kind| kind == Type::Integer)).then_some(())?;
    let mut start = at - 1;
    while start >= 2 && tokens[start - 1].1 == Token::Period {
        start -= 2;
    }
    let scaled = |token: &Token| match token {
        Token::Mul | Token::Div | Token::Mod | Token::Minus => true,
        Token::Word(word) => ["div", "mod"].iter().any(|w| word.value.eq_ignore_ascii_case(w)),
        _ => false,
    };
    (start == 0 || !scaled(&tokens[start - 1].1)).then_some(())?;
    let value = ctx.query.text(tokens[start].0.join(tokens[at - 1].0));
    let (text, template) = CanonicalCall::new(function, &[value, count]).render(ctx.context.dialect)?;
    let why = format!("{} writes it as `{template}`", ctx.context.dialect.name);
    let place = tokens[start].0.join(*by);
    Some((place, feature, fixes::replace(place, text, Applicability::Likely, why)))
}
