//! What is known of the dates in a query: which columns hold them, whether with a time of day, and what they stand beside.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::meaning::negative;
use crate::dialect::phrase::{Said, number};
use crate::dialect::{Feature, Part, Phrase, Unit};
use crate::finding::{Applicability, Fix, Span};
use crate::mend;
use crate::rules::Subject;
use crate::schema::Type;
use crate::scope::{Meaning, Reference};

/// So many of a column's values tell what all of them look like.
const TELLING: usize = 20;

/// Whether a date is a side of a minus or a plus where dates are text: what comes out is neither the time between them nor a date.
pub(super) fn is_subtracted(date: Span, subject: &Subject<'_>) -> bool {
    if !subject.context.dialect.lacks.contains(&Feature::Interval) {
        return false;
    }
    let words = mend::words(subject);
    let counts = |token: &Token| matches!(token, Token::Minus | Token::Plus);
    let before = words.iter().rev().find(|(span, _)| span.end <= date.start);
    let mut behind = words.iter().skip_while(|(span, _)| span.start < date.end);
    let added = behind.next().is_some_and(|(_, token)| counts(token));
    let moved = behind
        .next()
        .is_some_and(|(_, token)| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("interval")));
    before.is_some_and(|(_, token)| counts(token)) || added && !moved
}

/// The column that is all there is in a place.
fn column<'s>(place: Span, subject: &Subject<'s>) -> Option<&'s Reference<'s>> {
    subject.facts.references.iter().find(|r| subject.query.span(r.place) == place)
}

/// What kind of value a place holds that is nothing but a column; any where it is more.
pub(super) fn kind(place: Span, subject: &Subject<'_>) -> Type {
    match column(place, subject).map(|r| &r.meaning) {
        Some(Meaning::Column(source, index)) => subject.facts.sources[*source].column_type(*index),
        _ => Type::Any,
    }
}

/// Values that the column of a reference holds, as far as they are known.
fn values<'s>(reference: &Reference<'_>, subject: &Subject<'s>) -> Option<&'s [String]> {
    let Meaning::Column(source, index) = reference.meaning else { return None };
    let (table, column) = subject.facts.sources[source].origin(index)?;
    let held = subject.context.schema?.values().and_then(|values| values.of(&table.name, &column.name));
    held.map(|held| held.values.as_slice()).or(Some(column.samples.as_slice())).filter(|values| !values.is_empty())
}

/// Whether a place is a column of numbers, from which no date can be read: they may count seconds, days, or be years. Some
/// databases keep text in such columns all the same.
pub(super) fn is_number(place: Span, subject: &Subject<'_>) -> bool {
    let dated = |value: &String| value.len() >= 10 && value.as_bytes()[4] == b'-';
    kind(place, subject).is_numeric()
        && !column(place, subject).and_then(|r| values(r, subject)).is_some_and(|v| v.iter().take(TELLING).all(dated))
}

/// Whether a value has a time of day by the columns in it: by their type, by what they hold, or by how they are called.
pub(super) fn is_timed(value: Span, subject: &Subject<'_>) -> bool {
    let lower = subject.query.text(value).trim().to_ascii_lowercase();
    if lower.starts_with("date(") || lower.ends_with("::date") || lower.ends_with("as date)") {
        return false;
    }
    let inside = |r: &&Reference<'_>| {
        let at = subject.query.span(r.place);
        value.start <= at.start && at.end <= value.end
    };
    subject.facts.references.iter().filter(inside).any(|r| holds_time(r, subject))
}

fn holds_time(reference: &Reference<'_>, subject: &Subject<'_>) -> bool {
    let Meaning::Column(source, index) = reference.meaning else { return false };
    match subject.facts.sources[source].column_type(index) {
        Type::Timestamp => true,
        Type::Text | Type::Any => match values(reference, subject) {
            Some(values) => values.iter().take(TELLING).any(|value| value.len() > 10 && value.contains(':')),
            None => {
                let name = reference.name.value.to_ascii_lowercase();
                name.ends_with("_at") || name.ends_with("time") || name.ends_with("timestamp")
            }
        },
        _ => false,
    }
}

/// Whether a place is compared with a column of numbers: a date that is text is never equal to one, nor before it.
pub(super) fn meets_numbers(date: Span, subject: &Subject<'_>) -> bool {
    let words = mend::words(subject);
    let numbers = |end: &dyn Fn(Span) -> bool| {
        let mut columns =
            subject.facts.references.iter().map(|r| subject.query.span(r.place)).filter(|span| end(*span));
        columns.any(|span| is_number(span, subject))
    };
    let before: Vec<&(Span, Token)> = words.iter().rev().filter(|(span, _)| span.end <= date.start).take(3).collect();
    let compared = |word: Option<&&(Span, Token)>| word.is_some_and(|(_, token)| compares(token) || is_between(token));
    let left = compared(before.first()) && before.get(1).is_some_and(|(at, _)| numbers(&|span| span.end == at.end));
    let mut behind = words.iter().skip_while(|(span, _)| span.start < date.end);
    let right = behind.next().is_some_and(|(_, token)| compares(token))
        && behind.next().is_some_and(|(at, _)| numbers(&|span| span.start == at.start));
    left || right
}

pub(super) fn compares(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::DoubleEq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq)
}

fn is_between(token: &Token) -> bool {
    mend::keyword(token) == Some(Keyword::BETWEEN)
}

/// The part that a date written out in such a format is, if that is a number and it is compared with one.
pub(super) fn compared_part(format: &str, written: Span, subject: &Subject<'_>) -> Option<Part> {
    let part = match format {
        "%Y" => Part::Year,
        "%m" => Part::Month,
        "%d" => Part::Day,
        "%H" => Part::Hour,
        "%M" => Part::Minute,
        "%S" => Part::Second,
        "%j" => Part::DayOfYear,
        _ => return None,
    };
    let words = mend::words(subject);
    let is_number = |word: Option<&(Span, Token)>| matches!(word, Some((_, Token::Number(..))));
    let first = words.iter().position(|(span, _)| span.start >= written.start)?;
    let next = words.iter().position(|(span, _)| span.start >= written.end);
    let left = first >= 2 && compares(&words[first - 1].1) && is_number(words.get(first - 2));
    let right = next.is_some_and(|next| {
        let not = usize::from(mend::keyword(&words[next].1) == Some(Keyword::NOT));
        let at = next + not;
        match words.get(at) {
            Some((_, token)) if compares(token) || is_between(token) => is_number(words.get(at + 1)),
            Some((_, token)) if mend::keyword(token) == Some(Keyword::IN) => {
                let listed = words[at + 1..].iter().take_while(|(_, token)| *token != Token::RParen);
                let mut listed = listed.skip(1).filter(|(_, token)| *token != Token::Comma).peekable();
                listed.peek().is_some() && listed.all(|word| is_number(Some(word)))
            }
            _ => false,
        }
    });
    (left || right).then_some(part)
}

/// `SYSDATE`, `LOCALTIMESTAMP`: the present moment where it is no word of the dialect. A number behind it counts days.
pub(crate) fn present(word: Span, subject: &Subject<'_>) -> Option<Fix> {
    let dialect = subject.context.dialect;
    let (now, template) = Said::new(Phrase::Now, &[]).in_words_of(dialect)?;
    let why = format!("{} says the present moment as `{template}`", dialect.name);
    let words = mend::words(subject);
    let next = words.iter().position(|(span, _)| span.start >= word.end).unwrap_or(words.len());
    let count = match (words.get(next), words.get(next + 1)) {
        (Some((_, Token::Minus | Token::Plus)), Some((at, Token::Number(count, _)))) => Some((*at, number(count)?)),
        _ => None,
    };
    if let Some((at, count)) = count {
        let scaled = words.get(next + 2).is_some_and(|(_, t)| matches!(t, Token::Mul | Token::Div | Token::Mod));
        let first = words.iter().position(|(span, _)| span.start >= word.start)?;
        let joined = first > 0 && matches!(words[first - 1].1, Token::Minus | Token::Plus | Token::Mul | Token::Div);
        let count = count.to_string();
        let count = if words[next].1 == Token::Minus { negative(&count) } else { count };
        let moved = Said { timed: true, ..Said::new(Phrase::Plus(Unit::Day), &[&now, &count]) };
        let (text, _) = moved.in_words_of(dialect).filter(|_| !scaled && !joined)?;
        return Some(mend::replace(word.join(at), text, Applicability::Likely, why));
    }
    // Cut back to its day it is today, and other functions take numbers.
    let before = words.iter().rposition(|(span, _)| span.end <= word.start)?;
    let cut = before > 0
        && words[before].1 == Token::LParen
        && matches!(&words[before - 1].1, Token::Word(called) if called.value.eq_ignore_ascii_case("trunc"));
    (!cut && !is_subtracted(word, subject) && !meets_numbers(word, subject)).then_some(())?;
    Some(mend::replace(word, now, Applicability::Likely, why))
}

/// Words that some dialect has for the present moment, and takes without parentheses.
pub(crate) fn is_present(name: &str) -> bool {
    ["sysdate", "systimestamp", "localtimestamp", "getdate", "sysdatetime"].iter().any(|w| name.eq_ignore_ascii_case(w))
}
