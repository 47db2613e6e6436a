//! Properties of the dates in a query: date columns, times of day, operands and comparisons.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::{CanonicalFunction, DatePart, Feature, Unit};
use crate::finding::{Applicability, Fix, Span};
use crate::fixes;
use crate::resolve::{ColumnBinding, ColumnReference};
use crate::rule::RuleContext;
use crate::schema::Type;
use crate::transpile::arguments::parse_integer;
use crate::transpile::call::CanonicalCall;
use crate::transpile::parse_call::negate;

/// Maximum number of sampled values that are checked per column.
const MAX_SAMPLED_VALUES: usize = 20;

/// Returns whether a date is an operand of `+` or `-` in a dialect that stores dates as text.
///
/// The result would be neither an interval nor a date.
pub(crate) fn is_date_arithmetic_operand(date: Span, ctx: &RuleContext<'_>) -> bool {
    if ctx.context.dialect.supports(Feature::Interval) {
        return false;
    }
    let tokens = fixes::significant_tokens(ctx);
    let counts = |token: &Token| matches!(token, Token::Minus | Token::Plus);
    let before = tokens.iter().rev().find(|(span, _)| span.end <= date.start);
    let mut after = tokens.iter().skip_while(|(span, _)| span.start < date.end);
    let added = after.next().is_some_and(|(_, token)| counts(token));
    let moved = after
        .next()
        .is_some_and(|(_, token)| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("interval")));
    before.is_some_and(|(_, token)| counts(token)) || added && !moved
}

/// Returns the column reference that covers exactly the span.
fn column_at<'s>(span: Span, ctx: &RuleContext<'s>) -> Option<&'s ColumnReference<'s>> {
    ctx.resolution.references.iter().find(|r| ctx.query.span(r.span) == span)
}

/// Returns the type of the column that covers exactly the span, or [`Type::Any`].
pub(crate) fn column_type_at(span: Span, ctx: &RuleContext<'_>) -> Type {
    match column_at(span, ctx).map(|r| &r.binding) {
        Some(ColumnBinding::Column(source, index)) => ctx.resolution.sources[*source].column_type(*index),
        _ => Type::Any,
    }
}

/// Returns the known values of a referenced column.
fn known_values<'s>(reference: &ColumnReference<'_>, ctx: &RuleContext<'s>) -> Option<&'s [String]> {
    let ColumnBinding::Column(source, index) = reference.binding else { return None };
    let (table, column) = ctx.resolution.sources[source].origin(index)?;
    let indexed = ctx.context.schema?.value_index().and_then(|values| values.column(&table.name, &column.name));
    indexed
        .map(|column| column.values.as_slice())
        .or(Some(column.samples.as_slice()))
        .filter(|values| !values.is_empty())
}

/// Returns whether the span is a numeric column, which cannot be read as a date.
///
/// Its numbers may be seconds, days or years. Some databases store text in such columns
/// nevertheless.
pub(crate) fn is_numeric_column(span: Span, ctx: &RuleContext<'_>) -> bool {
    let dated = |value: &String| value.len() >= 10 && value.as_bytes()[4] == b'-';
    column_type_at(span, ctx).is_numeric()
        && !column_at(span, ctx)
            .and_then(|r| known_values(r, ctx))
            .is_some_and(|v| v.iter().take(MAX_SAMPLED_VALUES).all(dated))
}

/// Returns whether a value includes a time of day.
///
/// Decides by the type, the known values or the name of its columns.
pub(crate) fn has_time_of_day(value: Span, ctx: &RuleContext<'_>) -> bool {
    let lower = ctx.query.text(value).trim().to_ascii_lowercase();
    if lower.starts_with("date(") || lower.ends_with("::date") || lower.ends_with("as date)") {
        return false;
    }
    let inside = |r: &&ColumnReference<'_>| {
        let at = ctx.query.span(r.span);
        value.start <= at.start && at.end <= value.end
    };
    ctx.resolution.references.iter().filter(inside).any(|r| column_has_time(r, ctx))
}

fn column_has_time(reference: &ColumnReference<'_>, ctx: &RuleContext<'_>) -> bool {
    let ColumnBinding::Column(source, index) = reference.binding else { return false };
    match ctx.resolution.sources[source].column_type(index) {
        Type::Timestamp => true,
        Type::Text | Type::Any => match known_values(reference, ctx) {
            Some(values) => values.iter().take(MAX_SAMPLED_VALUES).any(|value| value.len() > 10 && value.contains(':')),
            None => {
                let name = reference.name.value.to_ascii_lowercase();
                name.ends_with("_at") || name.ends_with("time") || name.ends_with("timestamp")
            }
        },
        _ => false,
    }
}

/// Returns whether a date is compared with a numeric column.
///
/// A text date is never equal to a number, nor less than one.
pub(crate) fn is_compared_with_numbers(date: Span, ctx: &RuleContext<'_>) -> bool {
    let tokens = fixes::significant_tokens(ctx);
    let numbers = |end: &dyn Fn(Span) -> bool| {
        let mut columns = ctx.resolution.references.iter().map(|r| ctx.query.span(r.span)).filter(|span| end(*span));
        columns.any(|span| is_numeric_column(span, ctx))
    };
    let before: Vec<&(Span, Token)> = tokens.iter().rev().filter(|(span, _)| span.end <= date.start).take(3).collect();
    let compared =
        |word: Option<&&(Span, Token)>| word.is_some_and(|(_, token)| is_comparison_token(token) || is_between(token));
    let left = compared(before.first()) && before.get(1).is_some_and(|(at, _)| numbers(&|span| span.end == at.end));
    let mut after = tokens.iter().skip_while(|(span, _)| span.start < date.end);
    let right = after.next().is_some_and(|(_, token)| is_comparison_token(token))
        && after.next().is_some_and(|(at, _)| numbers(&|span| span.start == at.start));
    left || right
}

pub(crate) fn is_comparison_token(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::DoubleEq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq)
}

fn is_between(token: &Token) -> bool {
    fixes::keyword(token) == Some(Keyword::BETWEEN)
}

/// Returns the date part that a format extracts if the result is compared with a number.
pub(crate) fn compared_date_part(format: &str, written: Span, ctx: &RuleContext<'_>) -> Option<DatePart> {
    let part = match format {
        "%Y" => DatePart::Year,
        "%m" => DatePart::Month,
        "%d" => DatePart::Day,
        "%H" => DatePart::Hour,
        "%M" => DatePart::Minute,
        "%S" => DatePart::Second,
        "%j" => DatePart::DayOfYear,
        _ => return None,
    };
    let tokens = fixes::significant_tokens(ctx);
    let is_number = |word: Option<&(Span, Token)>| matches!(word, Some((_, Token::Number(..))));
    let first = tokens.iter().position(|(span, _)| span.start >= written.start)?;
    let next = tokens.iter().position(|(span, _)| span.start >= written.end);
    let left = first >= 2 && is_comparison_token(&tokens[first - 1].1) && is_number(tokens.get(first - 2));
    let right = next.is_some_and(|next| {
        let not = usize::from(fixes::keyword(&tokens[next].1) == Some(Keyword::NOT));
        let at = next + not;
        match tokens.get(at) {
            Some((_, token)) if is_comparison_token(token) || is_between(token) => is_number(tokens.get(at + 1)),
            Some((_, token)) if fixes::keyword(token) == Some(Keyword::IN) => {
                let listed = tokens[at + 1..].iter().take_while(|(_, token)| *token != Token::RParen);
                let mut listed = listed.skip(1).filter(|(_, token)| *token != Token::Comma).peekable();
                listed.peek().is_some() && listed.all(|word| is_number(Some(word)))
            }
            _ => false,
        }
    });
    (left || right).then_some(part)
}

/// Transpiles `SYSDATE`, `LOCALTIMESTAMP` and similar keywords that the dialect lacks.
///
/// A number added to or subtracted from them counts days.
pub(crate) fn current_time_fix(word: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let dialect = ctx.context.dialect;
    let (now, template) = CanonicalCall::new(CanonicalFunction::Now, &[]).render(dialect)?;
    let why = format!("{} writes the current time as `{template}`", dialect.name);
    let tokens = fixes::significant_tokens(ctx);
    let next = tokens.iter().position(|(span, _)| span.start >= word.end).unwrap_or(tokens.len());
    let count = match (tokens.get(next), tokens.get(next + 1)) {
        (Some((_, Token::Minus | Token::Plus)), Some((at, Token::Number(count, _)))) => {
            Some((*at, parse_integer(count)?))
        }
        _ => None,
    };
    if let Some((at, count)) = count {
        let scaled = tokens.get(next + 2).is_some_and(|(_, t)| matches!(t, Token::Mul | Token::Div | Token::Mod));
        let first = tokens.iter().position(|(span, _)| span.start >= word.start)?;
        let joined = first > 0 && matches!(tokens[first - 1].1, Token::Minus | Token::Plus | Token::Mul | Token::Div);
        let count = count.to_string();
        let count = if tokens[next].1 == Token::Minus { negate(&count) } else { count };
        let moved = CanonicalCall {
            has_time_of_day: true,
            ..CanonicalCall::new(CanonicalFunction::DateAdd(Unit::Day), &[&now, &count])
        };
        let (text, _) = moved.render(dialect).filter(|_| !scaled && !joined)?;
        return Some(fixes::replace(word.join(at), text, Applicability::Likely, why));
    }
    // `TRUNC(SYSDATE)` is the current date, and elsewhere TRUNC takes numbers.
    let before = tokens.iter().rposition(|(span, _)| span.end <= word.start)?;
    let cut = before > 0
        && tokens[before].1 == Token::LParen
        && matches!(&tokens[before - 1].1, Token::Word(called) if called.value.eq_ignore_ascii_case("trunc"));
    (!cut && !is_date_arithmetic_operand(word, ctx) && !is_compared_with_numbers(word, ctx)).then_some(())?;
    Some(fixes::replace(word, now, Applicability::Likely, why))
}

/// Returns whether some dialect has this keyword, without parentheses, for the current time.
pub(crate) fn is_current_time_keyword(name: &str) -> bool {
    ["sysdate", "systimestamp", "localtimestamp", "getdate", "sysdatetime"].iter().any(|w| name.eq_ignore_ascii_case(w))
}

/// Extends the span of a keyword for the current time by the days added to it.
pub(crate) fn with_day_offset(word: Span, fixes: &[Fix]) -> Span {
    let edits = fixes.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span);
    edits.filter(|span| span.start == word.start).fold(word, Span::join)
}
