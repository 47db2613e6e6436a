//! Idioms that match no signature: combinations of calls, and calls with special arguments.

use super::arguments::{as_call, parenthesize_operand, string_literal};
use crate::dialect::Dialect;
use crate::transpile::arguments::parse_integer;
use crate::transpile::call::CanonicalCall;
use crate::transpile::date_format::{DateFormatStyle, parse_format};
use crate::transpile::function::CanonicalFunction;
use crate::transpile::unit::Unit;

/// Date functions of SQLite.
pub(crate) const SQLITE_DATE_FUNCTIONS: &[&str] = &["date", "datetime", "julianday", "strftime"];

/// Returns whether a call is in SQLite's style: its dates take `'now'` and quoted modifiers.
pub(crate) fn is_sqlite_date_call(name: &str, arguments: &[&str]) -> bool {
    let dates = match name {
        "date" | "datetime" | "julianday" => arguments,
        "strftime" => arguments.get(1..).unwrap_or_default(),
        _ => return false,
    };
    let modifiers = dates.iter().skip(1).all(|modifier| string_literal(modifier).is_some());
    modifiers && (dates.len() > 1 || dates.first().is_some_and(|date| is_now(date)))
}

fn is_now(date: &str) -> bool {
    string_literal(date).is_some_and(|word| word.eq_ignore_ascii_case("now"))
}

/// Parses `date('now', '-7 days')` and similar calls, rendering one modifier after another in the
/// target dialect.
pub(crate) fn parse_sqlite_date(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<CanonicalCall> {
    let (format, dates) = match name {
        "strftime" => {
            (Some(parse_format(DateFormatStyle::Sqlite, string_literal(arguments.first()?)?)?), &arguments[1..])
        }
        _ => (None, arguments),
    };
    let render = |function, arguments: &[&str]| Some(CanonicalCall::new(function, arguments).render(dialect)?.0);
    let first = *dates.first()?;
    let mut date = match (is_now(first), name) {
        (true, "date") => render(CanonicalFunction::CurrentDate, &[])?,
        (true, _) => render(CanonicalFunction::Now, &[])?,
        (false, _) => first.to_string(),
    };
    for modifier in &dates[1..] {
        let modifier = string_literal(modifier)?.to_ascii_lowercase();
        let words: Vec<&str> = modifier.split_whitespace().collect();
        date = match words.as_slice() {
            ["localtime" | "utc" | "auto"] => date,
            ["unixepoch"] => render(CanonicalFunction::FromUnixTime, &[&date])?,
            ["start", "of", unit] => render(CanonicalFunction::DateTrunc(Unit::from_name(unit)?), &[&date])?,
            [count, unit] => {
                let count = parse_integer(count.strip_prefix('+').unwrap_or(count))?.to_string();
                render(CanonicalFunction::DateAdd(Unit::from_name(unit)?), &[&date, &count])?
            }
            _ => return None,
        };
    }
    Some(match (name, &format) {
        ("date", _) => CanonicalCall::new(CanonicalFunction::ToDate, &[&date]),
        ("julianday", _) => CanonicalCall::new(CanonicalFunction::JulianDay, &[&date]),
        (_, Some(format)) => CanonicalCall::new(CanonicalFunction::FormatDate, &[&date, format]),
        _ => CanonicalCall::new(CanonicalFunction::ToTimestamp, &[&date]),
    })
}

/// Rewrites `CONCAT_WS(', ', a, b)`: prepends the separator to each text that is not NULL and
/// removes the first separator.
pub(crate) fn parse_concat_ws(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<CanonicalCall> {
    let (separator, texts) = arguments.split_first().filter(|(_, texts)| !texts.is_empty())?;
    (name == "concat_ws" && dialect.concat.pipes).then_some(())?;
    let length = string_literal(separator)?.chars().count();
    let parts: Vec<String> =
        texts.iter().map(|text| format!("COALESCE({separator} || {}, '')", parenthesize_operand(text))).collect();
    Some(CanonicalCall::new(CanonicalFunction::Verbatim, &[&format!("SUBSTR({}, {})", parts.join(" || "), length + 1)]))
}

/// Rewrites `DECODE`, `FIELD`, `CHOOSE` and `ELT` as CASE.
pub(crate) fn parse_choice(name: &str, arguments: &[&str]) -> Option<CanonicalCall> {
    let (value, rest) = arguments.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let numbered = |pairs: Vec<(String, String)>, other: &str| {
        let whens: String = pairs.iter().map(|(when, then)| format!(" WHEN {when} THEN {then}")).collect();
        Some(CanonicalCall::new(CanonicalFunction::Verbatim, &[&format!("CASE {value}{whens}{other} END")]))
    };
    let from_one =
        |texts: &[&str]| (1..).map(|n: usize| n.to_string()).zip(texts.iter().map(|t| t.to_string())).collect();
    match name {
        "decode" if rest.len() > 1 => {
            let (pairs, other) = rest.as_chunks::<2>();
            // Only DECODE treats NULL as equal to NULL, so accept only literals, which cannot be
            // NULL.
            let plain = |[when, _]: &[&str; 2]| string_literal(when).is_some() || when.parse::<f64>().is_ok();
            pairs.iter().all(plain).then_some(())?;
            let other = other.first().map_or(String::new(), |other| format!(" ELSE {other}"));
            numbered(pairs.iter().map(|[when, then]| (when.to_string(), then.to_string())).collect(), &other)
        }
        "field" => {
            let places: Vec<(String, String)> = from_one(rest);
            numbered(places.into_iter().map(|(place, text)| (text, place)).collect(), " ELSE 0")
        }
        "choose" | "elt" => numbered(from_one(rest), ""),
        _ => None,
    }
}

/// Parses calls that have a canonical form only with certain numbers or formats as arguments.
pub(crate) fn parse_special_arguments(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<CanonicalCall> {
    match (name, arguments) {
        ("split_part" | "substring_index", [text, separator, "1"]) => {
            Some(CanonicalCall::new(CanonicalFunction::SplitFirst, &[text, separator]))
        }
        ("truncate", [value, digits]) => {
            let power = 10i64.checked_pow(u32::try_from(parse_integer(digits)?).ok().filter(|digits| *digits <= 6)?)?;
            Some(CanonicalCall::new(CanonicalFunction::TruncateNumber, &[value, digits, &format!("{power}.0")]))
        }
        ("from_unixtime", [seconds, format]) => {
            let text = string_literal(format)?;
            let format = if text.contains('%') {
                parse_format(DateFormatStyle::MySql, text)
            } else {
                parse_format(DateFormatStyle::Java, text)
            }?;
            let (moment, _) = CanonicalCall::new(CanonicalFunction::FromUnixTime, &[seconds]).render(dialect)?;
            format.contains('%').then(|| CanonicalCall::new(CanonicalFunction::FormatDate, &[&moment, &format]))
        }
        _ => None,
    }
}

/// Parses SQL Server idioms: truncating a date by adding its number of units to day 0, adding Unix
/// seconds to 1970-01-01, and `EOMONTH` with an offset.
pub(crate) fn parse_sql_server_idiom(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<CanonicalCall> {
    let [unit, count, base] = arguments else {
        let [date, months] = arguments else { return None };
        (name == "eomonth").then_some(())?;
        let moved = CanonicalCall::new(CanonicalFunction::DateAdd(Unit::Month), &[date, months]).render(dialect)?.0;
        return Some(CanonicalCall::new(CanonicalFunction::LastDay, &[&moved]));
    };
    let (unit, base) = (Unit::from_name(unit)?, base.trim());
    (name == "dateadd").then_some(())?;
    if unit == Unit::Second
        && string_literal(base).is_some_and(|day| day.starts_with("1970-01-01"))
        && parse_integer(count).is_none()
    {
        return Some(CanonicalCall::new(CanonicalFunction::FromUnixTime, &[count]));
    }
    (base == "0").then_some(())?;
    let end = count.rfind(')')? + 1;
    let (called, between) = as_call(&count[..end])?;
    let [of, zero, date] = between.as_slice() else { return None };
    let same = called.eq_ignore_ascii_case("datediff") && Unit::from_name(of) == Some(unit) && *zero == "0";
    same.then_some(())?;
    let start = CanonicalCall::new(CanonicalFunction::DateTrunc(unit), &[date]);
    let more: String = count[end..].chars().filter(|c| !c.is_whitespace()).collect();
    if more.is_empty() {
        return Some(start);
    }
    let more = parse_integer(more.strip_prefix('+').unwrap_or(&more))?;
    Some(CanonicalCall::new(CanonicalFunction::DateAdd(unit), &[&start.render(dialect)?.0, &more.to_string()]))
}
