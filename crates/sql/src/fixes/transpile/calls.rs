//! Transpiles function calls of other dialects.

use sqlparser::ast::FunctionArguments;
use sqlparser::tokenizer::Token;

use crate::dialect::{CanonicalFunction, DatePart, Unit};
use crate::finding::{Applicability, Fix, Span};
use crate::fixes;
use crate::fixes::clause_spans::operand_start;
use crate::fixes::transpile::dates::{
    column_type_at, compared_date_part, current_time_fix, has_time_of_day, is_compared_with_numbers,
    is_comparison_token, is_date_arithmetic_operand, is_numeric_column,
};
use crate::resolve::FunctionCall;
use crate::rule::RuleContext;
use crate::schema::Type;
use crate::transpile::arguments::parse_integer;
use crate::transpile::call::CanonicalCall;
use crate::transpile::function::STANDARD_TEMPLATES;
use crate::transpile::parse_call::{
    has_conflicting_signatures, is_foreign_signature, negate, parse_call, parse_date_part, parse_interval,
};

/// Returns the fix for a call with a known canonical function that the dialect can express.
pub(crate) fn transpile_call(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    if !fixes::within_fix_budget(ctx, &[]) {
        return None;
    }
    let (whole, spans) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    let spans: Vec<Span> = spans.into_iter().map(|span| trim_span(span, ctx)).collect();
    let dialect = ctx.context.dialect;
    let texts: Vec<&str> = spans.iter().map(|span| ctx.query.text(*span)).collect();
    let mut canonical_call = parse_call(&call.lower_name, &texts, dialect)?;
    let place_of = |text: &String| spans.iter().copied().find(|span| ctx.query.text(*span) == text);
    let first = canonical_call.arguments.first().and_then(place_of);
    let kind = first.map_or(Type::Any, |first| column_type_at(first, ctx));
    if canonical_call
        .arguments
        .iter()
        .take(canonical_call.function.date_argument_count())
        .filter_map(place_of)
        .any(|date| is_numeric_column(date, ctx))
    {
        return None;
    }
    match canonical_call.function {
        // Unix time is numeric; any other argument is a date already.
        CanonicalFunction::FromUnixTime if !matches!(kind, Type::Any | Type::Integer | Type::Number) => {
            canonical_call.function = CanonicalFunction::ToTimestamp
        }
        CanonicalFunction::FromUnixTime
            if canonical_call.arguments.first().is_some_and(|first| first.starts_with('\'')) =>
        {
            canonical_call.function = CanonicalFunction::ToTimestamp
        }
        CanonicalFunction::FormatDate => {
            if let Some(part) =
                canonical_call.arguments.get(1).and_then(|format| compared_date_part(format, whole, ctx))
            {
                canonical_call =
                    CanonicalCall::new(CanonicalFunction::DatePart(part), &[canonical_call.arguments.first()?]);
            }
        }
        _ => {}
    }
    canonical_call.has_time_of_day = first.is_some_and(|first| has_time_of_day(first, ctx));
    // Cast text to a timestamp if the dialect would not do so implicitly.
    if kind == Type::Text && dialect.strict_types && canonical_call.function.date_argument_count() > 0 {
        canonical_call.arguments[0] = format!("CAST({} AS TIMESTAMP)", canonical_call.arguments[0]);
    }
    // OVER, FILTER and WITHIN GROUP belong to the call, DISTINCT to its argument; a rewrite would
    // misplace them.
    let aggregate = matches!(
        canonical_call.function,
        CanonicalFunction::CountIf
            | CanonicalFunction::StringAgg
            | CanonicalFunction::StddevSamp
            | CanonicalFunction::StddevPop
            | CanonicalFunction::VarSamp
            | CanonicalFunction::VarPop
    );
    if aggregate
        && (call.has_over
            || call.is_distinct
            || has_argument_clauses(call)
            || call.node.is_some_and(|n| n.filter.is_some() || !n.within_group.is_empty()))
    {
        return None;
    }
    if canonical_call.function.returns_date()
        && (is_date_arithmetic_operand(whole, ctx) || is_compared_with_numbers(whole, ctx))
    {
        // In SQL Server, a number added to GETDATE() counts days.
        return (call.lower_name == "getdate").then(|| current_time_fix(whole, ctx)).flatten();
    }
    let (text, template) = canonical_call.render(dialect)?;
    (text != ctx.query.text(whole)).then_some(())?;
    let why = format!("{} writes {} as `{template}`", dialect.name, call.lower_name.to_uppercase());
    Some(fixes::replace(whole, text, Applicability::Likely, why))
}

/// Returns whether a call has the signature of another dialect under a name that both have.
pub(crate) fn is_foreign_call(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> bool {
    let dialect = ctx.context.dialect;
    has_conflicting_signatures(&call.lower_name, dialect)
        && fixes::within_fix_budget(ctx, &[])
        && call_arguments(call, ctx).is_some_and(|(_, arguments)| {
            let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
            is_foreign_signature(&call.lower_name, &texts, dialect)
        })
}

/// Returns a span without leading and trailing whitespace.
fn trim_span(span: Span, ctx: &RuleContext<'_>) -> Span {
    let text = ctx.query.text(span);
    let start = span.start + text.len() - text.trim_start().len();
    Span::new(start, start + text.trim().len())
}

/// Returns whether a call has clauses among its arguments, such as ORDER BY or SEPARATOR.
fn has_argument_clauses(call: &FunctionCall<'_>) -> bool {
    call.node.is_some_and(|node| matches!(&node.args, FunctionArguments::List(list) if !list.clauses.is_empty()))
}

/// Returns the span of a call and the source text of its arguments.
fn call_arguments(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<(Span, Vec<String>)> {
    let (whole, spans) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    Some((whole, spans.iter().map(|span| ctx.query.text(*span).trim().to_string()).collect()))
}

/// Rewrites DISTINCT with several arguments for dialects that allow only one.
///
/// Applies to `COUNT(DISTINCT a, b)` and `STRING_AGG(DISTINCT x, ',')`.
pub(crate) fn rewrite_multi_distinct(name: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (whole, spans) = fixes::call_span(ctx, name)?;
    let texts: Vec<&str> = spans.iter().map(|span| ctx.query.text(*span).trim()).collect();
    let (first, rest) = texts.split_first()?;
    let first = first.get(8..).filter(|_| first[..8].eq_ignore_ascii_case("distinct"))?.trim();
    let dialect = ctx.context.dialect;
    let (text, why) = match ctx.query.text(name).to_ascii_lowercase().as_str() {
        "count" => {
            let values: Vec<&str> = std::iter::once(first).chain(rest.iter().copied()).collect();
            let canonical_call =
                |value: &&str| Some(CanonicalCall::new(CanonicalFunction::ToDistinctText, &[value]).render(dialect)?.0);
            let written: Option<Vec<String>> = values.iter().map(canonical_call).collect();
            let known: Vec<String> = values.iter().map(|value| format!("({value}) IS NOT NULL")).collect();
            let text = written.filter(|_| dialect.concat.pipes)?.join(" || ',' || ");
            let text = format!("COUNT(DISTINCT CASE WHEN {} THEN {text} END)", known.join(" AND "));
            (text, "distinct rows without NULLs are counted as distinct concatenated strings")
        }
        "group_concat" | "string_agg" | "listagg" => {
            let [separator] = rest else { return None };
            let (text, template) =
                CanonicalCall::new(CanonicalFunction::StringAggDistinct, &[first, separator]).render(dialect)?;
            (*separator == "','" || template.ends_with("y)")).then_some(())?;
            (text, "the separator is the default one")
        }
        _ => return None,
    };
    Some(fixes::replace(whole, text, Applicability::Likely, why))
}

/// Returns the fix for a call that the dialect has and this database version lacks.
///
/// Uses another spelling of the dialect, or else the one that all dialects share.
pub(crate) fn alternative_call(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    if !fixes::within_fix_budget(ctx, &[]) {
        return None;
    }
    let dialect = ctx.context.dialect;
    // ORDER BY inside an aggregate is as recent as the functions that are replaced here.
    if call.is_distinct || has_argument_clauses(call) {
        return None;
    }
    let (whole, arguments) = call_arguments(call, ctx)?;
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let canonical_call = parse_call(&call.lower_name, &texts, dialect)?;
    let calls_it = |text: &str| text.to_ascii_lowercase().starts_with(&format!("{}(", call.lower_name));
    let (text, template) = canonical_call.render(dialect).filter(|(text, _)| !calls_it(text)).or_else(|| {
        let (_, standard) = STANDARD_TEMPLATES.iter().find(|(p, _)| *p == canonical_call.function)?;
        let plain = canonical_call
            .expand(standard)
            .filter(|text| !calls_it(text) && (dialect.concat.pipes || !standard.contains("{|}")))?;
        Some((plain, CanonicalCall::display_template(standard)))
    })?;
    let why = format!("{} also writes {} as `{template}`", dialect.name, call.lower_name.to_uppercase());
    Some(fixes::replace(whole, text, Applicability::Likely, why))
}

/// Rewrites CONCAT in syntax of older versions, skipping NULL as the function of the dialect does.
pub(crate) fn concat_skipping_null(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    let dialect = ctx.context.dialect;
    (call.lower_name == "concat" && fixes::within_fix_budget(ctx, &[])).then_some(())?;
    let (whole, arguments) = call_arguments(call, ctx)?;
    let is_literal = |text: &str| text.starts_with('\'') || parse_integer(text).is_some();
    let parts: Vec<String> = arguments
        .iter()
        .map(|text| if is_literal(text) { text.clone() } else { format!("COALESCE({text}, '')") })
        .collect();
    let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (text, template) = CanonicalCall::new(CanonicalFunction::Concat, &texts).render(dialect)?;
    let why = format!("{} also writes CONCAT as `{template}`", dialect.name);
    Some(fixes::replace(whole, text, Applicability::Likely, why))
}

/// Transpiles `EXTRACT(YEAR FROM x)`; `start` is the offset of the keyword.
pub(crate) fn rewrite_extract(ctx: &RuleContext<'_>, start: usize) -> Option<Fix> {
    let (whole, arguments) = fixes::call_span(ctx, Span::new(start, start + "EXTRACT".len()))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = ctx.query.text(*argument).trim();
    let from = text.to_ascii_uppercase().find(" FROM ")?;
    let of = trim_span(*argument, ctx);
    let of = trim_span(Span::new(of.start + from + 6, of.end), ctx);
    if is_numeric_column(of, ctx) {
        return None;
    }
    let call = parse_date_part(DatePart::from_name(text[..from].trim())?, text[from + 6..].trim())?;
    let (words, template) = call.render(ctx.context.dialect)?;
    let why = format!("{} writes it as `{template}`", ctx.context.dialect.name);
    Some(fixes::replace(whole, words, Applicability::Likely, why))
}

/// Transpiles `x - INTERVAL '7 days'`.
///
/// Rewrites the first interval in the text, since others may enclose it.
pub(crate) fn rewrite_interval_arithmetic(ctx: &RuleContext<'_>, near: Span) -> Option<Fix> {
    let tokens = fixes::significant_tokens(ctx);
    let at = tokens.iter().rposition(|(span, token)| {
        span.start <= near.start && matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("interval"))
    })?;
    let end = interval_end(&tokens, at)?;
    let (count, unit) = parse_interval(ctx.query.text(tokens[at].0.join(tokens[end].0)))?;
    let mut operator = at.checked_sub(1)?;
    if is_comparison_token(&tokens[operator].1) {
        return rewrite_interval_comparison(&tokens, operator, tokens[end].0, (&count, unit), ctx);
    }
    let mut count = count;
    // `n * INTERVAL '1 minute'`
    if tokens[operator].1 == Token::Mul {
        let first = operand_start(&tokens, operator.checked_sub(1)?, ctx)?;
        let times = ctx.query.text(tokens[first].0.join(tokens[operator - 1].0));
        count = if count == "1" { times.to_string() } else { format!("({times}) * ({count})") };
        operator = first.checked_sub(1)?;
    }
    let count = match tokens[operator].1 {
        Token::Plus => count,
        Token::Minus => negate(&count),
        _ => return None,
    };
    let start = operand_start(&tokens, operator.checked_sub(1)?, ctx)?;
    // An operand of a larger arithmetic expression is not the date that is shifted, nor is a
    // preceding INTERVAL.
    let before = start.checked_sub(1).map(|before| &tokens[before].1);
    let part_of_more = before.is_some_and(|token| match token {
        Token::Word(word) => word.value.eq_ignore_ascii_case("interval"),
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => true,
        _ => false,
    });
    (!part_of_more).then_some(())?;
    let date = ctx.query.text(tokens[start].0.join(tokens[operator - 1].0));
    let dialect = ctx.context.dialect;
    // A scaled interval has a different length.
    let scaled = tokens.get(end + 1).is_some_and(|(_, token)| matches!(token, Token::Mul | Token::Div | Token::Mod));
    (!scaled).then_some(())?;
    let inside = tokens[start].0.join(tokens[operator - 1].0);
    let all = tokens[start].0.join(tokens[end].0);
    if is_numeric_column(inside, ctx) || is_compared_with_numbers(all, ctx) {
        return None;
    }
    let timed = has_time_of_day(inside, ctx);
    let canonical_call = CanonicalCall {
        has_time_of_day: timed,
        ..CanonicalCall::new(CanonicalFunction::DateAdd(unit), &[date, &count])
    };
    let (text, template) = canonical_call.render(dialect)?;
    let why = format!("{} shifts a date with `{template}`", dialect.name);
    Some(fixes::replace(all, text, Applicability::Likely, why))
}

/// Rewrites `a - b > INTERVAL '6 hours'` as a comparison of seconds.
///
/// Only units of fixed length are supported.
fn rewrite_interval_comparison(
    tokens: &[(Span, Token)],
    operator: usize,
    end: Span,
    (count, unit): (&str, Unit),
    ctx: &RuleContext<'_>,
) -> Option<Fix> {
    let length = match unit {
        Unit::Second => 1,
        Unit::Minute => 60,
        Unit::Hour => 3_600,
        Unit::Day => 86_400,
        Unit::Week => 604_800,
        Unit::Any | Unit::Month | Unit::Quarter | Unit::Year => return None,
    };
    let seconds = parse_integer(count)?.checked_mul(length)?;
    // `(a - b) > INTERVAL …` is equivalent.
    let whole = operand_start(tokens, operator.checked_sub(1)?, ctx)?;
    let in_parentheses = tokens[whole].1 == Token::LParen;
    let last = operator - 1 - usize::from(in_parentheses);
    let earlier = if in_parentheses { operand_start(tokens, last, ctx)? } else { whole };
    let minus = earlier.checked_sub(1).filter(|&minus| tokens[minus].1 == Token::Minus)?;
    let later = operand_start(tokens, minus.checked_sub(1)?, ctx)?;
    let begin = if in_parentheses { whole } else { later };
    (!in_parentheses || later == whole + 1).then_some(())?;
    let before = begin.checked_sub(1).map(|before| &tokens[before].1);
    let part_of_more = before.is_some_and(|token| {
        matches!(token, Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat)
    });
    let (first, second) = (tokens[later].0.join(tokens[minus - 1].0), tokens[earlier].0.join(tokens[last].0));
    (!part_of_more && !is_numeric_column(first, ctx) && !is_numeric_column(second, ctx)).then_some(())?;
    let dialect = ctx.context.dialect;
    let canonical_call =
        CanonicalCall::new(CanonicalFunction::SecondsBetween, &[ctx.query.text(first), ctx.query.text(second)]);
    let (text, template) = canonical_call.render(dialect)?;
    let text = format!("{text} {} {seconds}", ctx.query.text(tokens[operator].0));
    let why = format!("{} computes the seconds between two timestamps as `{template}`", dialect.name);
    Some(fixes::replace(tokens[begin].0.join(end), text, Applicability::Likely, why))
}

/// Returns the last token of an INTERVAL: its unit, or its text if that contains the unit.
pub(crate) fn interval_end(tokens: &[(Span, Token)], interval: usize) -> Option<usize> {
    let unit = |at: usize| match &tokens.get(at)?.1 {
        Token::Word(word) => Unit::from_name(&word.value),
        _ => None,
    };
    let mut depth = 0usize;
    for (at, (_, token)) in tokens.iter().enumerate().skip(interval + 1).take(40) {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            // A function may have the name of a unit.
            Token::Word(_)
                if depth == 0 && unit(at).is_some() && tokens.get(at + 1).is_none_or(|(_, t)| *t != Token::LParen) =>
            {
                return Some(at);
            }
            Token::SingleQuotedString(text) if at == interval + 1 && text.trim().contains(char::is_whitespace) => {
                return Some(at);
            }
            _ => {}
        }
    }
    None
}

/// Rewrites `CAST(x AS DATE)` with the date function of the dialect.
///
/// `start` is the offset of the keyword.
pub(crate) fn rewrite_cast_to_date(ctx: &RuleContext<'_>, start: usize) -> Option<Fix> {
    let (whole, arguments) = fixes::call_span(ctx, Span::new(start, start + "CAST".len()))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = ctx.query.text(*argument).trim();
    let at = text.to_ascii_uppercase().rfind(" AS ")?;
    let function = conversion_function(text[at + 4..].trim())?;
    if is_date_arithmetic_operand(whole, ctx) {
        return None;
    }
    let (words, template) = CanonicalCall::new(function, &[text[..at].trim()]).render(ctx.context.dialect)?;
    let why = format!("in {} CAST converts it to a number; the conversion is `{template}`", ctx.context.dialect.name);
    Some(fixes::replace(whole, words, Applicability::Likely, why))
}

/// Rewrites `CONVERT(x, type)` as CAST or as the conversion function of the dialect.
///
/// `start` is the offset of the keyword.
pub(crate) fn rewrite_convert(ctx: &RuleContext<'_>, start: usize) -> Option<Fix> {
    let (whole, arguments) = fixes::call_span(ctx, Span::new(start, start + "CONVERT".len()))?;
    let texts: Vec<&str> = arguments.iter().map(|span| ctx.query.text(*span).trim()).collect();
    let dialect = ctx.context.dialect;
    let canonical_call = parse_call("convert", &texts, dialect)?;
    let (value, to) = (canonical_call.arguments.first()?, canonical_call.arguments.get(1)?);
    // `SIGNED` and `UNSIGNED` are integer types of MySQL only.
    let whole_number = ["signed", "unsigned"].iter().any(|word| to.to_ascii_lowercase().starts_with(word));
    let to = if whole_number { "BIGINT" } else { to.as_str() };
    let own = conversion_function(to).and_then(|function| CanonicalCall::new(function, &[value]).render(dialect));
    let (words, template) =
        own.or_else(|| CanonicalCall::new(CanonicalFunction::Cast, &[value, to]).render(dialect))?;
    let why = format!("{} writes it as `{template}`", dialect.name);
    Some(fixes::replace(whole, words, Applicability::Likely, why))
}

/// Returns the canonical conversion to a type that some dialects do not express with CAST.
pub(crate) fn conversion_function(type_name: &str) -> Option<CanonicalFunction> {
    Some(match Type::from_name(type_name) {
        Type::Integer => CanonicalFunction::ToInteger,
        Type::Text => CanonicalFunction::ToText,
        Type::Date => CanonicalFunction::ToDate,
        Type::Timestamp => CanonicalFunction::ToTimestamp,
        Type::Time => CanonicalFunction::ToTime,
        _ => return None,
    })
}

/// Rewrites `COUNT(x WHERE condition)` as an aggregate over CASE.
pub(crate) fn rewrite_inline_filter(ctx: &RuleContext<'_>, condition: Span) -> Option<Fix> {
    let calls = ctx.resolution.calls.iter().filter_map(|c| fixes::call_span(ctx, ctx.query.span(c.span)));
    let around = calls.filter(|(whole, _)| whole.start < condition.start && condition.end <= whole.end);
    let (_, arguments) = around.min_by_key(|(whole, _)| whole.end - whole.start)?;
    let [argument] = arguments.as_slice() else { return None };
    let text = ctx.query.text(*argument);
    let at = text.to_ascii_uppercase().find(" WHERE ")?;
    let (value, condition) = (text[..at].trim(), text[at + 7..].trim());
    let (distinct, value) = match value.get(..9) {
        Some(word) if word.eq_ignore_ascii_case("distinct ") => ("DISTINCT ", value[9..].trim()),
        _ => ("", value),
    };
    let value = if value == "*" { "1" } else { value };
    let text = format!("{distinct}CASE WHEN {condition} THEN {value} END");
    Some(fixes::replace(
        *argument,
        text,
        Applicability::Safe,
        "aggregates ignore NULL, which CASE returns where the condition is false",
    ))
}
