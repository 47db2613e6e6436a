//! What is said with several calls, or with words of its own, and fits no form.

use super::argument::{as_call, operand, quoted};
use crate::dialect::Dialect;
use crate::dialect::date_format::{Style, read};
use crate::dialect::phrase::{Phrase, Said, number};
use crate::dialect::unit::Unit;

/// SQLite's functions for dates.
pub(super) const MOMENTS: &[&str] = &["date", "datetime", "julianday", "strftime"];

/// Whether a call is SQLite's: its dates take `'now'` and modifiers in quotes.
pub(super) fn is_sqlite_moment(name: &str, arguments: &[&str]) -> bool {
    let dates = match name {
        "date" | "datetime" | "julianday" => arguments,
        "strftime" => arguments.get(1..).unwrap_or_default(),
        _ => return false,
    };
    let modifiers = dates.iter().skip(1).all(|modifier| quoted(modifier).is_some());
    modifiers && (dates.len() > 1 || dates.first().is_some_and(|date| is_now(date)))
}

fn is_now(date: &str) -> bool {
    quoted(date).is_some_and(|word| word.eq_ignore_ascii_case("now"))
}

/// `date('now', '-7 days')` and its kin, one step after the other in the words of the dialect.
pub(super) fn of_sqlite(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
    let (format, dates) = match name {
        "strftime" => (Some(read(Style::Sqlite, quoted(arguments.first()?)?)?), &arguments[1..]),
        _ => (None, arguments),
    };
    let say = |phrase, arguments: &[&str]| Some(Said::new(phrase, arguments).in_words_of(dialect)?.0);
    let first = *dates.first()?;
    let mut date = match (is_now(first), name) {
        (true, "date") => say(Phrase::Today, &[])?,
        (true, _) => say(Phrase::Now, &[])?,
        (false, _) => first.to_string(),
    };
    for modifier in &dates[1..] {
        let modifier = quoted(modifier)?.to_ascii_lowercase();
        let words: Vec<&str> = modifier.split_whitespace().collect();
        date = match words.as_slice() {
            ["localtime" | "utc" | "auto"] => date,
            ["unixepoch"] => say(Phrase::FromUnix, &[&date])?,
            ["start", "of", unit] => say(Phrase::Truncate(Unit::from_word(unit)?), &[&date])?,
            [count, unit] => {
                let count = number(count.strip_prefix('+').unwrap_or(count))?.to_string();
                say(Phrase::Plus(Unit::from_word(unit)?), &[&date, &count])?
            }
            _ => return None,
        };
    }
    Some(match (name, &format) {
        ("date", _) => Said::new(Phrase::ToDate, &[&date]),
        ("julianday", _) => Said::new(Phrase::Julian, &[&date]),
        (_, Some(format)) => Said::new(Phrase::Format, &[&date, format]),
        _ => Said::new(Phrase::ToTimestamp, &[&date]),
    })
}

/// `CONCAT_WS(', ', a, b)`: each text that is not NULL with the separator before it, and the first of these taken away.
pub(super) fn of_separated(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
    let (separator, texts) = arguments.split_first().filter(|(_, texts)| !texts.is_empty())?;
    (name == "concat_ws" && dialect.concat.pipes).then_some(())?;
    let length = quoted(separator)?.chars().count();
    let parts: Vec<String> =
        texts.iter().map(|text| format!("COALESCE({separator} || {}, '')", operand(text))).collect();
    Some(Said::new(Phrase::Already, &[&format!("SUBSTR({}, {})", parts.join(" || "), length + 1)]))
}

/// `DECODE`, `FIELD`, `CHOOSE` and `ELT` as a CASE.
pub(super) fn of_choices(name: &str, arguments: &[&str]) -> Option<Said> {
    let (value, rest) = arguments.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let numbered = |pairs: Vec<(String, String)>, other: &str| {
        let whens: String = pairs.iter().map(|(when, then)| format!(" WHEN {when} THEN {then}")).collect();
        Some(Said::new(Phrase::Already, &[&format!("CASE {value}{whens}{other} END")]))
    };
    let from_one =
        |texts: &[&str]| (1..).map(|n: usize| n.to_string()).zip(texts.iter().map(|t| t.to_string())).collect();
    match name {
        "decode" if rest.len() > 1 => {
            let (pairs, other) = rest.as_chunks::<2>();
            // NULL is equal to NULL in DECODE alone: only what cannot be NULL is compared.
            let plain = |[when, _]: &[&str; 2]| quoted(when).is_some() || when.parse::<f64>().is_ok();
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

/// Calls that mean a phrase only with certain numbers or formats among their arguments.
pub(super) fn of_few(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
    match (name, arguments) {
        ("split_part" | "substring_index", [text, separator, "1"]) => {
            Some(Said::new(Phrase::Before, &[text, separator]))
        }
        ("truncate", [value, digits]) => {
            let power = 10i64.checked_pow(u32::try_from(number(digits)?).ok().filter(|digits| *digits <= 6)?)?;
            Some(Said::new(Phrase::CutNumber, &[value, digits, &format!("{power}.0")]))
        }
        ("from_unixtime", [seconds, format]) => {
            let text = quoted(format)?;
            let format = if text.contains('%') { read(Style::MySql, text) } else { read(Style::Java, text) }?;
            let (moment, _) = Said::new(Phrase::FromUnix, &[seconds]).in_words_of(dialect)?;
            format.contains('%').then(|| Said::new(Phrase::Format, &[&moment, &format]))
        }
        _ => None,
    }
}

/// What SQL Server cannot say otherwise: a date cut back to its unit is so many units after day 0, and seconds since 1970 are
/// added to that day.
pub(super) fn of_sql_server(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
    let [unit, count, base] = arguments else {
        let [date, months] = arguments else { return None };
        (name == "eomonth").then_some(())?;
        let moved = Said::new(Phrase::Plus(Unit::Month), &[date, months]).in_words_of(dialect)?.0;
        return Some(Said::new(Phrase::LastDay, &[&moved]));
    };
    let (unit, base) = (Unit::from_word(unit)?, base.trim());
    (name == "dateadd").then_some(())?;
    if unit == Unit::Second && quoted(base).is_some_and(|day| day.starts_with("1970-01-01")) && number(count).is_none()
    {
        return Some(Said::new(Phrase::FromUnix, &[count]));
    }
    (base == "0").then_some(())?;
    let end = count.rfind(')')? + 1;
    let (called, between) = as_call(&count[..end])?;
    let [of, zero, date] = between.as_slice() else { return None };
    let same = called.eq_ignore_ascii_case("datediff") && Unit::from_word(of) == Some(unit) && *zero == "0";
    same.then_some(())?;
    let start = Said::new(Phrase::Truncate(unit), &[date]);
    let more: String = count[end..].chars().filter(|c| !c.is_whitespace()).collect();
    if more.is_empty() {
        return Some(start);
    }
    let more = number(more.strip_prefix('+').unwrap_or(&more))?;
    Some(Said::new(Phrase::Plus(unit), &[&start.in_words_of(dialect)?.0, &more.to_string()]))
}
