//! A call said in the words of the dialect.

use sqlparser::ast::FunctionArguments;
use sqlparser::tokenizer::Token;

use crate::dialect::meaning::{interval, is_contested, is_of_another, meaning, negative, part};
use crate::dialect::phrase::{STANDARD, Said, number};
use crate::dialect::{Part, Phrase, Unit};
use crate::finding::{Applicability, Fix, Span};
use crate::mend;
use crate::rules::Subject;
use crate::rules::portable::moments::{
    compared_part, compares, is_number, is_subtracted, is_timed, kind, meets_numbers, present,
};
use crate::rules::portable::respell::operand_start;
use crate::schema::Type;
use crate::scope::Call;

/// The fix of a call whose meaning is known and which the dialect can say.
pub(crate) fn rephrase(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    if !mend::worth_mending(subject, &[]) {
        return None;
    }
    let (whole, spans) = mend::call(subject, subject.query.span(call.place))?;
    let spans: Vec<Span> = spans.into_iter().map(|span| trimmed(span, subject)).collect();
    let dialect = subject.context.dialect;
    let texts: Vec<&str> = spans.iter().map(|span| subject.query.text(*span)).collect();
    let mut said = meaning(&call.lower, &texts, dialect)?;
    let place_of = |text: &String| spans.iter().copied().find(|span| subject.query.text(*span) == text);
    let first = said.arguments.first().and_then(place_of);
    let kind = first.map_or(Type::Any, |first| kind(first, subject));
    if said.arguments.iter().take(said.phrase.dates()).filter_map(place_of).any(|date| is_number(date, subject)) {
        return None;
    }
    match said.phrase {
        // Seconds are numbers, and what is written out as a date is none.
        Phrase::FromUnix if !matches!(kind, Type::Any | Type::Integer | Type::Number) => {
            said.phrase = Phrase::ToTimestamp
        }
        Phrase::FromUnix if said.arguments.first().is_some_and(|first| first.starts_with('\'')) => {
            said.phrase = Phrase::ToTimestamp
        }
        Phrase::Format => {
            if let Some(part) = said.arguments.get(1).and_then(|format| compared_part(format, whole, subject)) {
                said = Said::new(Phrase::Part(part), &[said.arguments.first()?]);
            }
        }
        _ => {}
    }
    said.timed = first.is_some_and(|first| is_timed(first, subject));
    // A text is made a date where the dialect would take it for anything else.
    if kind == Type::Text && dialect.strict_types && said.phrase.dates() > 0 {
        said.arguments[0] = format!("CAST({} AS TIMESTAMP)", said.arguments[0]);
    }
    // What stands behind a call belongs to it: OVER, FILTER, WITHIN GROUP. DISTINCT is the argument's.
    let aggregate = matches!(
        said.phrase,
        Phrase::CountIf
            | Phrase::JoinTexts
            | Phrase::Deviation
            | Phrase::DeviationOfAll
            | Phrase::Variance
            | Phrase::VarianceOfAll
    );
    if aggregate
        && (call.window
            || call.distinct
            || has_clauses(call)
            || call.node.is_some_and(|n| n.filter.is_some() || !n.within_group.is_empty()))
    {
        return None;
    }
    if said.phrase.gives_date() && (is_subtracted(whole, subject) || meets_numbers(whole, subject)) {
        // SQL Server counts days from the present moment.
        return (call.lower == "getdate").then(|| present(whole, subject)).flatten();
    }
    let (text, template) = said.in_words_of(dialect)?;
    (text != subject.query.text(whole)).then_some(())?;
    let why = format!("{} says {} as `{template}`", dialect.name, call.lower.to_uppercase());
    Some(mend::replace(whole, text, Applicability::Likely, why))
}

/// Whether a call has the form that another dialect gives it, by a name that this one has as well.
pub(crate) fn is_foreign_form(call: &Call<'_>, subject: &Subject<'_>) -> bool {
    let dialect = subject.context.dialect;
    is_contested(&call.lower, dialect)
        && mend::worth_mending(subject, &[])
        && with_arguments(call, subject).is_some_and(|(_, arguments)| {
            let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
            is_of_another(&call.lower, &texts, dialect)
        })
}

/// A place without the white space around what stands in it.
fn trimmed(span: Span, subject: &Subject<'_>) -> Span {
    let text = subject.query.text(span);
    let start = span.start + text.len() - text.trim_start().len();
    Span::new(start, start + text.trim().len())
}

/// Whether more than arguments stands in a call's parentheses: ORDER BY, SEPARATOR.
fn has_clauses(call: &Call<'_>) -> bool {
    call.node.is_some_and(|node| matches!(&node.args, FunctionArguments::List(list) if !list.clauses.is_empty()))
}

/// The whole of a call and its arguments as they are written.
fn with_arguments(call: &Call<'_>, subject: &Subject<'_>) -> Option<(Span, Vec<String>)> {
    let (whole, spans) = mend::call(subject, subject.query.span(call.place))?;
    Some((whole, spans.iter().map(|span| subject.query.text(*span).trim().to_string()).collect()))
}

/// `COUNT(DISTINCT a, b)` and `STRING_AGG(DISTINCT x, ',')` where DISTINCT takes one argument.
pub(crate) fn distinct_of_several(name: Span, subject: &Subject<'_>) -> Option<Fix> {
    let (whole, spans) = mend::call(subject, name)?;
    let texts: Vec<&str> = spans.iter().map(|span| subject.query.text(*span).trim()).collect();
    let (first, rest) = texts.split_first()?;
    let first = first.get(8..).filter(|_| first[..8].eq_ignore_ascii_case("distinct"))?.trim();
    let dialect = subject.context.dialect;
    let (text, why) = match subject.query.text(name).to_ascii_lowercase().as_str() {
        "count" => {
            let values: Vec<&str> = std::iter::once(first).chain(rest.iter().copied()).collect();
            let said = |value: &&str| Some(Said::new(Phrase::Written, &[value]).in_words_of(dialect)?.0);
            let written: Option<Vec<String>> = values.iter().map(said).collect();
            let known: Vec<String> = values.iter().map(|value| format!("({value}) IS NOT NULL")).collect();
            let text = written.filter(|_| dialect.concat.pipes)?.join(" || ',' || ");
            let text = format!("COUNT(DISTINCT CASE WHEN {} THEN {text} END)", known.join(" AND "));
            (text, "rows that differ in any of the values, and have all of them, are counted as texts that differ")
        }
        "group_concat" | "string_agg" | "listagg" => {
            let [separator] = rest else { return None };
            let (text, template) = Said::new(Phrase::JoinDistinct, &[first, separator]).in_words_of(dialect)?;
            (*separator == "','" || template.ends_with("y)")).then_some(())?;
            (text, "the separator is the one that it has anyway")
        }
        _ => return None,
    };
    Some(mend::replace(whole, text, Applicability::Likely, why))
}

/// The fix of a call that the dialect has and this database lacks: another spelling of the dialect, or what every one has.
pub(crate) fn say_otherwise(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    if !mend::worth_mending(subject, &[]) {
        return None;
    }
    let dialect = subject.context.dialect;
    // An order within an aggregate is as late as the functions that this is about.
    if call.distinct || has_clauses(call) {
        return None;
    }
    let (whole, arguments) = with_arguments(call, subject)?;
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = meaning(&call.lower, &texts, dialect)?;
    let calls_it = |text: &str| text.to_ascii_lowercase().starts_with(&format!("{}(", call.lower));
    let (text, template) = said.in_words_of(dialect).filter(|(text, _)| !calls_it(text)).or_else(|| {
        let (_, standard) = STANDARD.iter().find(|(p, _)| *p == said.phrase)?;
        let plain = said
            .filled(standard)
            .filter(|text| !calls_it(text) && (dialect.concat.pipes || !standard.contains("{|}")))?;
        Some((plain, Said::shown(standard)))
    })?;
    let why = format!("{} also says {} as `{template}`", dialect.name, call.lower.to_uppercase());
    Some(mend::replace(whole, text, Applicability::Likely, why))
}

/// CONCAT that leaves out NULL, as the dialect's own does, in words that it had before.
pub(crate) fn joined_without_null(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let dialect = subject.context.dialect;
    (call.lower == "concat" && mend::worth_mending(subject, &[])).then_some(())?;
    let (whole, arguments) = with_arguments(call, subject)?;
    let is_literal = |text: &str| text.starts_with('\'') || number(text).is_some();
    let parts: Vec<String> = arguments
        .iter()
        .map(|text| if is_literal(text) { text.clone() } else { format!("COALESCE({text}, '')") })
        .collect();
    let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (text, template) = Said::new(Phrase::Concat, &texts).in_words_of(dialect)?;
    let why = format!("{} also says CONCAT as `{template}`", dialect.name);
    Some(mend::replace(whole, text, Applicability::Likely, why))
}

/// `EXTRACT(YEAR FROM x)` in the words of the dialect; the span begins with the word.
pub(crate) fn extract(subject: &Subject<'_>, start: usize) -> Option<Fix> {
    let (whole, arguments) = mend::call(subject, Span::new(start, start + "EXTRACT".len()))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = subject.query.text(*argument).trim();
    let from = text.to_ascii_uppercase().find(" FROM ")?;
    let of = trimmed(*argument, subject);
    let of = trimmed(Span::new(of.start + from + 6, of.end), subject);
    if is_number(of, subject) {
        return None;
    }
    let said = part(Part::from_word(text[..from].trim())?, text[from + 6..].trim())?;
    let (words, template) = said.in_words_of(subject.context.dialect)?;
    let why = format!("{} says it as `{template}`", subject.context.dialect.name);
    Some(mend::replace(whole, words, Applicability::Likely, why))
}

/// `x - INTERVAL '7 days'` in the words of the dialect. The first one in the text is mended: others may stand around it.
pub(crate) fn moved_by_interval(subject: &Subject<'_>, near: Span) -> Option<Fix> {
    let words = mend::words(subject);
    let at = words.iter().rposition(|(span, token)| {
        span.start <= near.start && matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("interval"))
    })?;
    let end = interval_end(&words, at)?;
    let (count, unit) = interval(subject.query.text(words[at].0.join(words[end].0)))?;
    let mut operator = at.checked_sub(1)?;
    if compares(&words[operator].1) {
        return longer_than(&words, operator, words[end].0, (&count, unit), subject);
    }
    let mut count = count;
    // `n * INTERVAL '1 minute'`
    if words[operator].1 == Token::Mul {
        let first = operand_start(&words, operator.checked_sub(1)?, subject)?;
        let times = subject.query.text(words[first].0.join(words[operator - 1].0));
        count = if count == "1" { times.to_string() } else { format!("({times}) * ({count})") };
        operator = first.checked_sub(1)?;
    }
    let count = match words[operator].1 {
        Token::Plus => count,
        Token::Minus => negative(&count),
        _ => return None,
    };
    let start = operand_start(&words, operator.checked_sub(1)?, subject)?;
    // What is taken from or added to something before it is not what is moved; nor is the INTERVAL before this one.
    let before = start.checked_sub(1).map(|before| &words[before].1);
    let part_of_more = before.is_some_and(|token| match token {
        Token::Word(word) => word.value.eq_ignore_ascii_case("interval"),
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => true,
        _ => false,
    });
    (!part_of_more).then_some(())?;
    let date = subject.query.text(words[start].0.join(words[operator - 1].0));
    let dialect = subject.context.dialect;
    // A part of a span, or several of them, is another one.
    let scaled = words.get(end + 1).is_some_and(|(_, token)| matches!(token, Token::Mul | Token::Div | Token::Mod));
    (!scaled).then_some(())?;
    let inside = words[start].0.join(words[operator - 1].0);
    let all = words[start].0.join(words[end].0);
    if is_number(inside, subject) || meets_numbers(all, subject) {
        return None;
    }
    let timed = is_timed(inside, subject);
    let said = Said { timed, ..Said::new(Phrase::Plus(unit), &[date, &count]) };
    let (text, template) = said.in_words_of(dialect)?;
    let why = format!("{} moves a date as `{template}`", dialect.name);
    Some(mend::replace(all, text, Applicability::Likely, why))
}

/// `a - b > INTERVAL '6 hours'` compares seconds; the unit must be as long at all times.
fn longer_than(
    words: &[(Span, Token)],
    operator: usize,
    end: Span,
    (count, unit): (&str, Unit),
    subject: &Subject<'_>,
) -> Option<Fix> {
    let length = match unit {
        Unit::Second => 1,
        Unit::Minute => 60,
        Unit::Hour => 3_600,
        Unit::Day => 86_400,
        Unit::Week => 604_800,
        Unit::Each | Unit::Month | Unit::Quarter | Unit::Year => return None,
    };
    let seconds = number(count)?.checked_mul(length)?;
    // `(a - b) > INTERVAL …` is the same.
    let whole = operand_start(words, operator.checked_sub(1)?, subject)?;
    let in_parentheses = words[whole].1 == Token::LParen;
    let last = operator - 1 - usize::from(in_parentheses);
    let earlier = if in_parentheses { operand_start(words, last, subject)? } else { whole };
    let minus = earlier.checked_sub(1).filter(|&minus| words[minus].1 == Token::Minus)?;
    let later = operand_start(words, minus.checked_sub(1)?, subject)?;
    let begin = if in_parentheses { whole } else { later };
    (!in_parentheses || later == whole + 1).then_some(())?;
    let before = begin.checked_sub(1).map(|before| &words[before].1);
    let part_of_more = before.is_some_and(|token| {
        matches!(token, Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat)
    });
    let (first, second) = (words[later].0.join(words[minus - 1].0), words[earlier].0.join(words[last].0));
    (!part_of_more && !is_number(first, subject) && !is_number(second, subject)).then_some(())?;
    let dialect = subject.context.dialect;
    let said = Said::new(Phrase::Elapsed, &[subject.query.text(first), subject.query.text(second)]);
    let (text, template) = said.in_words_of(dialect)?;
    let text = format!("{text} {} {seconds}", subject.query.text(words[operator].0));
    let why = format!("{} tells the seconds between two moments as `{template}`", dialect.name);
    Some(mend::replace(words[begin].0.join(end), text, Applicability::Likely, why))
}

/// The last word of an INTERVAL: its unit, or its text if that has the unit in it.
pub(crate) fn interval_end(words: &[(Span, Token)], interval: usize) -> Option<usize> {
    let unit = |at: usize| match &words.get(at)?.1 {
        Token::Word(word) => Unit::from_word(&word.value),
        _ => None,
    };
    let mut depth = 0usize;
    for (at, (_, token)) in words.iter().enumerate().skip(interval + 1).take(40) {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            // A function may be called like a unit.
            Token::Word(_)
                if depth == 0 && unit(at).is_some() && words.get(at + 1).is_none_or(|(_, t)| *t != Token::LParen) =>
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

/// `CAST(x AS DATE)` by the function that makes a date; the span begins with the word.
pub(crate) fn cast_to_date(subject: &Subject<'_>, start: usize) -> Option<Fix> {
    let (whole, arguments) = mend::call(subject, Span::new(start, start + "CAST".len()))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = subject.query.text(*argument).trim();
    let at = text.to_ascii_uppercase().rfind(" AS ")?;
    let phrase = conversion(text[at + 4..].trim())?;
    if is_subtracted(whole, subject) {
        return None;
    }
    let (words, template) = Said::new(phrase, &[text[..at].trim()]).in_words_of(subject.context.dialect)?;
    let why = format!("{} makes a number of it with CAST; it is `{template}`", subject.context.dialect.name);
    Some(mend::replace(whole, words, Applicability::Likely, why))
}

/// `CONVERT(x, type)` as CAST, or as the dialect makes such values; the span begins with the word.
pub(crate) fn convert(subject: &Subject<'_>, start: usize) -> Option<Fix> {
    let (whole, arguments) = mend::call(subject, Span::new(start, start + "CONVERT".len()))?;
    let texts: Vec<&str> = arguments.iter().map(|span| subject.query.text(*span).trim()).collect();
    let dialect = subject.context.dialect;
    let said = meaning("convert", &texts, dialect)?;
    let (value, to) = (said.arguments.first()?, said.arguments.get(1)?);
    // MySQL's names of integers are its own.
    let whole_number = ["signed", "unsigned"].iter().any(|word| to.to_ascii_lowercase().starts_with(word));
    let to = if whole_number { "BIGINT" } else { to.as_str() };
    let own = conversion(to).and_then(|phrase| Said::new(phrase, &[value]).in_words_of(dialect));
    let (words, template) = own.or_else(|| Said::new(Phrase::Cast, &[value, to]).in_words_of(dialect))?;
    let why = format!("{} says it as `{template}`", dialect.name);
    Some(mend::replace(whole, words, Applicability::Likely, why))
}

/// How a value becomes one of a type, where that may take other words than CAST.
pub(super) fn conversion(type_name: &str) -> Option<Phrase> {
    Some(match Type::from_name(type_name) {
        Type::Integer => Phrase::ToInteger,
        Type::Text => Phrase::ToText,
        Type::Date => Phrase::ToDate,
        Type::Timestamp => Phrase::ToTimestamp,
        Type::Time => Phrase::ToTime,
        _ => return None,
    })
}

/// `COUNT(x WHERE condition)` as an aggregate over CASE.
pub(crate) fn filter_inside(subject: &Subject<'_>, condition: Span) -> Option<Fix> {
    let calls = subject.facts.calls.iter().filter_map(|c| mend::call(subject, subject.query.span(c.place)));
    let around = calls.filter(|(whole, _)| whole.start < condition.start && condition.end <= whole.end);
    let (_, arguments) = around.min_by_key(|(whole, _)| whole.end - whole.start)?;
    let [argument] = arguments.as_slice() else { return None };
    let text = subject.query.text(*argument);
    let at = text.to_ascii_uppercase().find(" WHERE ")?;
    let (value, condition) = (text[..at].trim(), text[at + 7..].trim());
    let (distinct, value) = match value.get(..9) {
        Some(word) if word.eq_ignore_ascii_case("distinct ") => ("DISTINCT ", value[9..].trim()),
        _ => ("", value),
    };
    let value = if value == "*" { "1" } else { value };
    let text = format!("{distinct}CASE WHEN {condition} THEN {value} END");
    Some(mend::replace(
        *argument,
        text,
        Applicability::Safe,
        "an aggregate leaves out NULL, which CASE gives where the condition fails",
    ))
}
