//! Rewrites syntax of other dialects.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::{CanonicalFunction, IntervalSyntax, Unit};
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::fixes;
use crate::fixes::clause_spans::operand_start;
use crate::fixes::transpile::calls::{conversion_function, interval_end};
use crate::fixes::transpile::dates::{column_type_at, is_date_arithmetic_operand};
use crate::resolve::spans;
use crate::rule::RuleContext;
use crate::schema::Type;
use crate::transpile::arguments::parse_integer;
use crate::transpile::call::CanonicalCall;
use crate::transpile::parse_call::parse_interval;

/// Rewrites `x::type` as `CAST(x AS type)` or with the conversion function of the dialect.
///
/// `operand` is the span of `x`.
pub(crate) fn rewrite_double_colon(operand: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let colon = tokens.iter().position(|(span, t)| *t == Token::DoubleColon && span.start >= operand.end)?;
    let start = operand_start(&tokens, colon.checked_sub(1)?, ctx)?;
    let mut end = colon + 1;
    let Token::Word(first) = &tokens.get(end)?.1 else { return None };
    let mut name = first.value.clone();
    // `double precision`, `timestamp with time zone`
    let more = ["precision", "varying", "with", "without", "time", "zone"];
    while let Some((_, Token::Word(word))) = tokens.get(end + 1)
        && more.contains(&word.value.to_lowercase().as_str())
    {
        name = format!("{name} {}", word.value);
        end += 1;
    }
    if tokens.get(end + 1).is_some_and(|(_, t)| *t == Token::LParen) {
        let close = (end + 1..tokens.len()).find(|&i| tokens[i].1 == Token::RParen)?;
        name.push_str(ctx.query.text(tokens[end + 1].0.join(tokens[close].0)));
        end = close;
    }
    if tokens.get(end + 1).is_some_and(|(_, t)| *t == Token::LBracket) {
        return None;
    }
    let span = tokens[start].0.join(tokens[end].0);
    let value = ctx.query.text(tokens[start].0.join(tokens[colon - 1].0));
    let function = conversion_function(&name);
    if function.is_some_and(CanonicalFunction::returns_date) && is_date_arithmetic_operand(span, ctx) {
        return rewrite_date_subtraction(span, value, ctx);
    }
    let dialect = ctx.context.dialect;
    // Other dialects have no conversion to an interval.
    if name.eq_ignore_ascii_case("interval") && tokens[colon - 1].0 == tokens[start].0 && value.starts_with('\'') {
        let why = "it is the same interval as a literal";
        return Some(fixes::replace(span, format!("INTERVAL {value}"), Applicability::Safe, why));
    }
    let exact = exact_conversion(&name, column_type_at(tokens[start].0.join(tokens[colon - 1].0), ctx), value);
    let canonical_call = exact.and_then(|call| call.render(dialect));
    let rendered = canonical_call.or_else(|| function.and_then(|f| CanonicalCall::new(f, &[value]).render(dialect)));
    let text = rendered.map_or_else(|| format!("CAST({value} AS {name})"), |(text, _)| text);
    let why = format!("`x::{name}` is a type conversion, which the dialect writes differently");
    Some(fixes::replace(span, text, Applicability::Likely, why))
}

/// Rewrites the difference of two dates in days if one of them is cast with `::date`.
fn rewrite_date_subtraction(cast: Span, value: &str, ctx: &RuleContext<'_>) -> Option<Fix> {
    let days = ctx.resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Minus);
    let (left, right) = days
        .filter(|o| o.left.kind == Type::Date && o.right.kind == Type::Date)
        .map(|o| (spans::expression_span(ctx.query, o.left_node), spans::expression_span(ctx.query, o.right_node)))
        .find(|(left, right)| left.start == cast.start || right.start == cast.start)?;
    // The parser's span of a cast may cover its operand only.
    let text = |side: Span| if side.start == cast.start { value } else { ctx.query.text(side) };
    let dialect = ctx.context.dialect;
    let canonical_call =
        CanonicalCall::new(CanonicalFunction::DateDiffBoundaries(Unit::Day), &[text(left), text(right)]);
    let (text, template) = canonical_call.render(dialect)?;
    let why = format!("{} counts the days between two dates as `{template}`", dialect.name);
    Some(fixes::replace(left.join(right).join(cast), text, Applicability::Likely, why))
}

/// Returns the call that reproduces the rounding and truncation of `::`.
///
/// CAST does not round numbers or truncate text in every dialect.
fn exact_conversion(type_name: &str, from: Type, value: &str) -> Option<CanonicalCall> {
    let lower = type_name.to_ascii_lowercase();
    let (word, sizes) = lower.split_once('(').unwrap_or((&lower, ""));
    let mut sizes = sizes.trim_end_matches(')').split(',').map(|size| parse_integer(size.trim()));
    match word.trim() {
        // `numeric(p)` has no decimal places; plain `numeric` keeps a decimal point even for whole
        // numbers.
        "decimal" | "numeric" => match (sizes.next().flatten(), sizes.next()) {
            (Some(_), digits) => {
                let digits = digits.map_or(Some(0), |digits| digits)?.to_string();
                Some(CanonicalCall::new(CanonicalFunction::RoundToScale, &[value, &digits]))
            }
            (None, _) => Some(CanonicalCall::new(CanonicalFunction::ToNumber, &[value])),
        },
        "varchar" | "character varying" => {
            let letters = sizes.next().flatten()?.to_string();
            Some(CanonicalCall::new(CanonicalFunction::TruncateText, &[value, &letters]))
        }
        _ if Type::from_name(type_name) == Type::Integer
            && !matches!(from, Type::Integer | Type::Text | Type::Boolean) =>
        {
            Some(CanonicalCall::new(CanonicalFunction::RoundToInteger, &[value]))
        }
        _ => None,
    }
}

/// Replaces `TRY_CAST(x AS type)` with CAST.
pub(crate) fn rewrite_try_cast(value: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let (word, _) = tokens.into_iter().rfind(|(span, _)| {
        let word = ctx.query.text(*span);
        span.start <= value.start && ["try_cast", "safe_cast"].iter().any(|cast| word.eq_ignore_ascii_case(cast))
    })?;
    let why = "the dialect converts with CAST, which may fail where TRY_CAST returns NULL";
    Some(fixes::replace(word, "CAST", Applicability::Likely, why))
}

/// Rewrites `x ILIKE y` as LIKE, with LOWER on both sides if LIKE is case-sensitive.
pub(crate) fn rewrite_ilike(place: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let (word, _) =
        tokens.into_iter().find(|(span, t)| span.start >= place.start && fixes::keyword(t) == Some(Keyword::ILIKE))?;
    let like = Edit { span: word, text: "LIKE".into() };
    if ctx.context.dialect.like_ignores_case {
        let why = "LIKE is case-insensitive here";
        return Some(Fix {
            edits: vec![like],
            applicability: Applicability::Likely,
            why: why.into(),
            is_tied_with_previous: false,
        });
    }
    let operation = ctx.resolution.operations.iter().find(|o| {
        let (left, right) = (ctx.query.span(o.left_node.span()), ctx.query.span(o.right_node.span()));
        *o.operator == BinaryOperator::PGLikeMatch
            && left.end <= word.start
            && word.end <= right.start
            && left.start >= place.start
    })?;
    let plain = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
    if !plain(operation.left_node) || !plain(operation.right_node) {
        return None;
    }
    let lower = |e: &Expr| {
        let span = ctx.query.span(e.span());
        Edit { span, text: format!("LOWER({})", ctx.query.text(span)) }
    };
    let edits = vec![lower(operation.left_node), like, lower(operation.right_node)];
    Some(Fix {
        is_tied_with_previous: false,
        edits,
        applicability: Applicability::Safe,
        why: "comparing strings in lower case ignores case".into(),
    })
}

/// Rewrites `DATE '2024-01-01'` as a plain literal.
pub(crate) fn rewrite_typed_literal(place: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let near = |span: Span| span.start <= place.end && place.start <= span.end;
    let at = (0..tokens.len().saturating_sub(1)).find(|&i| {
        matches!(tokens[i].1, Token::Word(_))
            && matches!(tokens[i + 1].1, Token::SingleQuotedString(_))
            && near(tokens[i].0.join(tokens[i + 1].0))
    })?;
    if is_date_arithmetic_operand(tokens[at].0.join(tokens[at + 1].0), ctx) {
        return None;
    }
    let removed = Span::new(tokens[at].0.start, tokens[at + 1].0.start);
    Some(fixes::replace(removed, "", Applicability::Likely, "dates are plain text here"))
}

/// Rewrites `SUBSTRING(x FROM n FOR m)` and `POSITION(x IN y)` with commas between the arguments.
pub(crate) fn rewrite_keyword_arguments(start: usize, word: &str, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (whole, arguments) = fixes::call_span(ctx, Span::new(start, start + word.len()))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = ctx.query.text(*argument).trim();
    let upper = text.to_ascii_uppercase();
    let (function, parts) = match word {
        "SUBSTRING" => {
            let (from, length) = (upper.find(" FROM ")?, upper.find(" FOR ")?);
            let parts = vec![text[..from].trim(), text.get(from + 6..length)?.trim(), text[length + 5..].trim()];
            (CanonicalFunction::Substring, parts)
        }
        _ => {
            let inside = upper.find(" IN ")?;
            (CanonicalFunction::Position, vec![text[..inside].trim(), text[inside + 4..].trim()])
        }
    };
    let (text, template) = CanonicalCall::new(function, &parts).render(ctx.context.dialect)?;
    let why = format!("{} writes it as `{template}`", ctx.context.dialect.name);
    Some(fixes::replace(whole, text, Applicability::Likely, why))
}

/// Returns the parentheses around a query and whether it is a plain SELECT.
///
/// A plain SELECT has no WITH, ORDER BY, LIMIT or set operation.
fn enclosing_parentheses(query: Span, ctx: &RuleContext<'_>) -> Option<(Span, Span, bool)> {
    const MORE: [Keyword; 8] = [
        Keyword::WITH,
        Keyword::UNION,
        Keyword::INTERSECT,
        Keyword::EXCEPT,
        Keyword::ORDER,
        Keyword::LIMIT,
        Keyword::OFFSET,
        Keyword::FETCH,
    ];
    let tokens = fixes::significant_tokens(ctx);
    let open = tokens.iter().rposition(|(span, token)| *token == Token::LParen && span.end <= query.start)?;
    // The span of VALUES covers its rows, which have parentheses of their own.
    fixes::keyword(&tokens.get(open + 1)?.1).filter(|word| matches!(word, Keyword::SELECT | Keyword::WITH))?;
    let (mut depth, mut plain) = (0usize, true);
    for (span, token) in &tokens[open..] {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => plain &= depth > 1 || fixes::keyword(token).is_none_or(|word| !MORE.contains(&word)),
        }
        if depth == 0 {
            return Some((tokens[open].0, *span, plain));
        }
    }
    None
}

/// Returns the span of a query including the parentheses around it.
pub(crate) fn parenthesized_span(query: Span, ctx: &RuleContext<'_>) -> Span {
    enclosing_parentheses(query, ctx).map_or(query, |(open, close, _)| open.join(close))
}

/// Removes the parentheses of a set operand: `(SELECT …) UNION (SELECT …)`.
///
/// An operand that is not a plain SELECT becomes a derived table instead.
pub(crate) fn unwrap_set_operand(query: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (open, close, plain) = enclosing_parentheses(query, ctx)?;
    let edits = match plain {
        true => [open, close].map(|span| Edit { span, text: String::new() }).into(),
        false => vec![Edit { span: Span::new(open.start, open.start), text: "SELECT * FROM ".into() }],
    };
    let why = "operands of UNION are written without parentheses here; the rows are the same".into();
    Some(Fix { edits, applicability: Applicability::Safe, why, is_tied_with_previous: false })
}

/// Rewrites string concatenation with the operator or function of the dialect.
pub(crate) fn rewrite_concat(span: Span, sign: &Token, ctx: &RuleContext<'_>) -> Option<Fix> {
    let mut depth = 0usize;
    let mut signs: Vec<Span> = Vec::new();
    for (at, token) in
        fixes::significant_tokens(ctx).into_iter().filter(|(s, _)| span.start <= s.start && s.end <= span.end)
    {
        match &token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            t if depth == 0 && t == sign => signs.push(at),
            Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat if depth == 0 => {
                return None;
            }
            _ => {}
        }
    }
    if depth > 0 || signs.is_empty() {
        return None;
    }
    let pipes = ctx.context.dialect.concat.pipes;
    let text = if pipes { "||" } else { "," };
    let mut edits: Vec<Edit> = signs.into_iter().map(|span| Edit { span, text: text.into() }).collect();
    if !pipes {
        edits.insert(0, Edit { span: Span::new(span.start, span.start), text: "CONCAT(".into() });
        edits.push(Edit { span: Span::new(span.end, span.end), text: ")".into() });
    }
    let why = format!("{} concatenates text with {}", ctx.context.dialect.name, if pipes { "||" } else { "CONCAT" });
    Some(Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false })
}

/// Removes the parentheses of `CURRENT_DATE()`.
pub(crate) fn remove_call_parentheses(name: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (whole, arguments) = fixes::call_span(ctx, name)?;
    arguments.is_empty().then_some(())?;
    let why = "it is a keyword here, not a function";
    Some(fixes::replace(Span::new(name.end, whole.end), "", Applicability::Safe, why))
}

/// Returns the span, text and fix of every interval literal that the dialect writes differently.
pub(crate) fn rewrite_intervals(ctx: &RuleContext<'_>) -> Vec<(Span, String, Fix)> {
    let syntax = ctx.context.dialect.interval;
    let all = syntax.tokens && syntax.bare && syntax.quoted;
    let none = !syntax.tokens && !syntax.bare && !syntax.quoted;
    if all || none || !contains_ignore_case(&ctx.query.sql, "interval") || !fixes::within_fix_budget(ctx, &[]) {
        return Vec::new();
    }
    let words = fixes::significant_tokens(ctx);
    let mut found = Vec::new();
    for (at, (span, token)) in words.iter().enumerate() {
        let is_word = matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("interval"));
        let Some(end) = is_word.then(|| interval_end(&words, at)).flatten() else { continue };
        let span = span.join(words[end].0);
        let text = ctx.query.text(span);
        let Some((count, unit)) = parse_interval(text) else { continue };
        let quotes = matches!(words.get(at + 1), Some((_, Token::SingleQuotedString(_))));
        let written = match (quotes, end == at + 1) {
            (true, true) => syntax.tokens,
            (true, false) => syntax.quoted,
            (false, _) => syntax.bare,
        };
        let plain = parse_integer(&count).is_some();
        // A unit both inside and after the quotes is not a valid interval.
        if quotes
            && end > at + 1
            && matches!(&words[at + 1].1, Token::SingleQuotedString(text) if text.trim().contains(' '))
        {
            continue;
        }
        // Quarters are not units everywhere, nor are weeks where only quoted intervals are
        // supported.
        let smaller = match unit {
            Unit::Quarter if !syntax.bare => Some((3, Unit::Month)),
            Unit::Week if !syntax.bare && !syntax.tokens => Some((7, Unit::Day)),
            _ => None,
        };
        let (count, unit) = match smaller {
            Some((times, smaller)) => {
                let Some(more) = parse_integer(&count).and_then(|count| count.checked_mul(times)) else { continue };
                (more.to_string(), smaller)
            }
            None => (count, unit),
        };
        let right = match syntax {
            _ if written => continue,
            IntervalSyntax { bare: true, .. } => format!("INTERVAL {count} {}", unit.as_str().to_uppercase()),
            _ if !plain => continue,
            IntervalSyntax { tokens: true, .. } => format!("INTERVAL '{count} {}'", unit.as_str()),
            _ => format!("INTERVAL '{count}' {}", unit.as_str().to_uppercase()),
        };
        let fix =
            fixes::replace(span, right, Applicability::Safe, "it is the same interval in the syntax of the dialect");
        found.push((span, text.to_string(), fix));
    }
    found
}

fn contains_ignore_case(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}
