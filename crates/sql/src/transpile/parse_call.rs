//! Recognizes the canonical form of calls from any dialect: `signatures.rs` lists them,
//! `arguments.rs` parses their arguments, and `idioms.rs` handles calls that match no signature.

use super::arguments::parse_integer;
use super::date_format::DateFormatStyle;
use super::function::CanonicalFunction;
use super::unit::{DatePart, Unit};
use crate::dialect::Dialect;
use crate::transpile::arguments::{
    as_call, as_type_name, parse_quoted_format, split_terms, string_literal, strip_parentheses, unquote,
};
pub(crate) use crate::transpile::arguments::{parenthesize_operand, parse_interval};
use crate::transpile::call::CanonicalCall;
use crate::transpile::idioms::{
    SQLITE_DATE_FUNCTIONS, is_sqlite_date_call, parse_choice, parse_concat_ws, parse_special_arguments,
    parse_sql_server_idiom, parse_sqlite_date,
};
use crate::transpile::signatures::{CONFLICTING_SIGNATURES, SIGNATURES};

/// Parses a call into its canonical form. `dialect` is the target dialect.
pub(crate) fn parse_call(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<CanonicalCall> {
    if is_sqlite_date_call(name, arguments) {
        return parse_sqlite_date(name, arguments, dialect);
    }
    let idiom = parse_sql_server_idiom(name, arguments, dialect)
        .or_else(|| parse_concat_ws(name, arguments, dialect))
        .or_else(|| parse_choice(name, arguments))
        .or_else(|| parse_special_arguments(name, arguments, dialect));
    idiom.or_else(|| {
        SIGNATURES
            .iter()
            .filter(|(n, _, _)| *n == name)
            .find_map(|(_, signature, function)| match_signature(signature, *function, arguments))
    })
}

/// Parses a part of a date, or of the time between two dates: `EXTRACT(DAY FROM a - b)`,
/// `EXTRACT(YEAR FROM AGE(b))`.
pub(crate) fn parse_date_part(part: DatePart, of: &str) -> Option<CanonicalCall> {
    if let Some((name, arguments)) = as_call(of)
        && name.eq_ignore_ascii_case("age")
    {
        return match (part, arguments.as_slice()) {
            (DatePart::Year, [later, earlier]) => {
                Some(CanonicalCall::new(CanonicalFunction::DateDiffElapsed(Unit::Year), &[later, earlier]))
            }
            (DatePart::Year, [earlier]) => {
                Some(CanonicalCall::new(CanonicalFunction::DateDiffElapsed(Unit::Year), &["CURRENT_DATE", earlier]))
            }
            _ => None,
        };
    }
    let of = strip_parentheses(of);
    let terms = split_terms(of);
    let moved = |term: &str| term.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("interval"));
    match terms.as_slice() {
        // A date, possibly shifted by intervals.
        [_, rest @ ..] if rest.iter().all(|(_, term)| moved(term)) => {
            Some(CanonicalCall::new(CanonicalFunction::DatePart(part), &[of]))
        }
        [(_, later), ('-', earlier)] => match part {
            DatePart::Day => Some(CanonicalCall::new(CanonicalFunction::DateDiffElapsed(Unit::Day), &[later, earlier])),
            DatePart::Epoch => Some(CanonicalCall::new(CanonicalFunction::SecondsBetween, &[later, earlier])),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a function name has a canonical form in any dialect.
pub(crate) fn has_canonical_form(name: &str) -> bool {
    SIGNATURES.iter().any(|(n, _, _)| *n == name)
}

/// Returns whether other dialects give a function of this name different arguments.
pub(crate) fn has_conflicting_signatures(name: &str, dialect: &Dialect) -> bool {
    CONFLICTING_SIGNATURES.iter().any(|(n, _)| *n == name)
        || lacks_date_modifiers(dialect) && SQLITE_DATE_FUNCTIONS.contains(&name)
}

/// Returns whether a call has a signature that the dialect does not support, although it has the
/// function.
pub(crate) fn is_foreign_signature(name: &str, arguments: &[&str], dialect: &Dialect) -> bool {
    let fitting = |signatures: &[(&str, &str)]| {
        // Only the signature matters, but a date shift needs a date to shift.
        let any =
            if name.starts_with("date") { CanonicalFunction::DateAdd(Unit::Any) } else { CanonicalFunction::Identity };
        signatures.iter().any(|(n, signature)| *n == name && match_signature(signature, any, arguments).is_some())
    };
    let modifiers = lacks_date_modifiers(dialect) && is_sqlite_date_call(name, arguments);
    // `format` with a literal as first argument is printf-style formatting.
    let printed = name == "format" && arguments.first().is_some_and(|first| string_literal(first).is_some());
    modifiers || !printed && fitting(CONFLICTING_SIGNATURES) && !fitting(dialect.signatures)
}

/// Returns whether the dialect lacks SQLite's date modifiers.
fn lacks_date_modifiers(dialect: &Dialect) -> bool {
    dialect.functions.get("strftime").is_none()
}

/// Returns the canonical call if the arguments match a signature.
fn match_signature(signature: &str, function: CanonicalFunction, arguments: &[&str]) -> Option<CanonicalCall> {
    if signature == "*" {
        // With a single argument, the call is an aggregate rather than GREATEST or LEAST.
        let enough =
            arguments.len() > usize::from(matches!(function, CanonicalFunction::Greatest | CanonicalFunction::Least));
        return enough.then(|| CanonicalCall::new(function, arguments));
    }
    let parts: Vec<&str> = signature.split_whitespace().collect();
    (parts.len() == arguments.len()).then_some(())?;
    let mut slots: Vec<Option<String>> = vec![None; 3];
    let (mut unit, mut read_part) = (None, None);
    for (&part, &argument) in parts.iter().zip(arguments) {
        match part {
            "'u" if string_literal(argument).is_none() => return None,
            "_u" if string_literal(argument).is_some() => return None,
            // Date parts include more than units, and serve as well where only the signature
            // matters.
            "_u" if Unit::from_name(argument).is_none() => read_part = Some(DatePart::from_name(argument)?),
            "u" | "'u" | "_u" => unit = Some(Unit::from_name(unquote(argument))?),
            "p" => read_part = Some(DatePart::from_name(unquote(argument))?),
            // If both arguments could be a type, it is ambiguous which one is the value.
            "t" if arguments.iter().filter(|a| as_type_name(a).is_some()).count() > 1 => return None,
            "t" => slots[1] = Some(as_type_name(argument)?.to_string()),
            "i" => {
                let (count, of) = parse_interval(argument)?;
                (slots[1], unit) = (Some(count), Some(of));
            }
            "f%" => slots[1] = Some(parse_quoted_format(DateFormatStyle::Percent, argument)?),
            "fm" => slots[1] = Some(parse_quoted_format(DateFormatStyle::MySql, argument)?),
            "ft" => slots[1] = Some(parse_quoted_format(DateFormatStyle::Template, argument)?),
            "fj" => slots[1] = Some(parse_quoted_format(DateFormatStyle::Java, argument)?),
            // An interval in any form is not a number of days.
            "1" if is_date_shift(function) && argument.to_ascii_lowercase().contains("interval") => return None,
            place => slots[place.parse::<usize>().ok()?] = Some(argument.to_string()),
        }
    }
    // An INTERVAL in place of a value belongs to another signature.
    let is_unit = |slot: &Option<String>| slot.as_deref().is_some_and(|text| parse_interval(text).is_some());
    (!slots.iter().any(is_unit)).then_some(())?;
    let mut arguments: Vec<String> = slots.into_iter().flatten().collect();
    // SQL Server's day 0 is not a date in other dialects.
    let date = arguments.first().is_some_and(|date| parse_integer(date).is_none());
    let function = match function {
        CanonicalFunction::DatePart(DatePart::Any) => return parse_date_part(read_part?, arguments.first()?),
        CanonicalFunction::DatePart(read) => return parse_date_part(read, arguments.first()?),
        CanonicalFunction::DateAdd(_)
        | CanonicalFunction::DateDiffBoundaries(_)
        | CanonicalFunction::DateDiffElapsed(_)
            if !date =>
        {
            return None;
        }
        CanonicalFunction::DateTrunc(Unit::Any) => CanonicalFunction::DateTrunc(unit?),
        CanonicalFunction::DateAdd(Unit::Any) => unit.map_or(function, CanonicalFunction::DateAdd),
        CanonicalFunction::DateDiffBoundaries(Unit::Any) => CanonicalFunction::DateDiffBoundaries(unit?),
        CanonicalFunction::DateDiffElapsed(Unit::Any) => CanonicalFunction::DateDiffElapsed(unit?),
        CanonicalFunction::DateSub(fixed) => {
            arguments[1] = negate(&arguments[1]);
            CanonicalFunction::DateAdd(unit.unwrap_or(fixed))
        }
        // The default separator is a comma.
        CanonicalFunction::StringAgg if arguments.len() == 1 => {
            arguments.push("','".into());
            function
        }
        // The default padding is spaces.
        CanonicalFunction::PadLeft | CanonicalFunction::PadRight if arguments.len() == 2 => {
            arguments.push("' '".into());
            function
        }
        // A text with these characters is a full-text search condition, not a substring.
        CanonicalFunction::Contains if string_literal(&arguments[1]).is_some_and(|text| text.contains(['"', '*'])) => {
            return None;
        }
        other => other,
    };
    Some(CanonicalCall { function, arguments, has_time_of_day: false })
}

/// Returns whether the second argument is the number of units to shift a date by.
fn is_date_shift(function: CanonicalFunction) -> bool {
    matches!(function, CanonicalFunction::DateAdd(_) | CanonicalFunction::DateSub(_))
}

/// Negates a count, which may be an expression.
pub(crate) fn negate(count: &str) -> String {
    parse_integer(count).and_then(i64::checked_neg).map_or_else(|| format!("-({count})"), |count| count.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, POSTGRES, SQLITE};

    fn translate(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<String> {
        Some(parse_call(name, arguments, dialect)?.render(dialect)?.0)
    }

    #[test]
    fn translates_function_calls_to_sqlite() {
        let translated = |name, arguments: &[&str]| translate(name, arguments, &SQLITE).unwrap();
        assert_eq!(translated("instr", &["title", "'x'"]), "instr(title, 'x')");
        assert_eq!(translated("dateadd", &["DAY", "-7", "GETDATE()"]), "datetime(GETDATE(), '-7 days')");
        assert_eq!(translated("date_sub", &["CURDATE()", "INTERVAL 3 MONTH"]), "date(CURDATE(), '-3 months')");
        assert_eq!(translated("date_add", &["d", "INTERVAL '1' WEEK"]), "date(d, '+7 days')");
        assert_eq!(translated("datediff", &["day", "a", "b"]), translated("datediff", &["b", "a"]));
        assert_eq!(translated("date_trunc", &["'month'", "d"]), "date(d, 'start of month')");
        assert_eq!(translated("timestamp_trunc", &["d", "MONTH"]), "date(d, 'start of month')");
        assert_eq!(translated("to_char", &["d", "'YYYY-MM'"]), "strftime('%Y-%m', d)");
        assert_eq!(translated("date_format", &["d", "'%H:%i'"]), "strftime('%H:%M', d)");
        assert!(parse_call("datediff", &["a", "b", "c"], &SQLITE).is_none());
        assert!(parse_call("dateadd", &["day", "7", "0"], &SQLITE).is_none());
        // An argument that is not a number of days is rejected in any form.
        for span in ["'1 day'::interval", "/* x */ INTERVAL 1 DAY", "n * INTERVAL '1 day'", "INTERVAL 1 MICROSECOND"] {
            assert!(parse_call("date_add", &["d", span], &POSTGRES).is_none(), "{span}");
            assert!(!is_foreign_signature("date_add", &["d", span], &MYSQL), "{span}");
        }
        assert!(!is_foreign_signature("format", &["s", "'-'"], &SQLITE));
    }

    #[test]
    fn translates_only_calls_with_supported_arguments() {
        let translated = |name, arguments: &[&str]| translate(name, arguments, &SQLITE);
        assert_eq!(translated("decode", &["x", "1", "'a'", "'b'"]).unwrap(), "CASE x WHEN 1 THEN 'a' ELSE 'b' END");
        // DECODE treats NULL as equal to NULL, CASE does not.
        assert_eq!(translated("decode", &["x", "NULL", "'a'", "'b'"]), None);
        assert_eq!(translated("choose", &["n", "'a'", "'b'"]).unwrap(), "CASE n WHEN 1 THEN 'a' WHEN 2 THEN 'b' END");
        assert_eq!(translated("split_part", &["x", "'-'", "2"]), None);
        assert_eq!(translated("truncate", &["x", "-1"]), None);
        assert_eq!(translated("contains", &["x", "'\"a*\"'"]), None);
        assert_eq!(
            translated("from_unixtime", &["n", "'%Y-%m'"]).unwrap(),
            "strftime('%Y-%m', datetime(n, 'unixepoch'))"
        );
        assert_eq!(translated("to_date", &["'31/12/2020'", "'DD/MM/YYYY'"]).unwrap(), "date('2020-12-31')");
        for text in ["'2020/12/31'", "'32/12/2020'", "'31/12/2020 x'", "d"] {
            assert_eq!(translated("to_date", &[text, "'DD/MM/YYYY'"]), None, "{text}");
        }
        assert_eq!(translate("split_part", &["x", "'-'", "1"], &MYSQL).unwrap(), "SUBSTRING_INDEX(x, '-', 1)");
        assert_eq!(translate("ends_with", &["x", "'a'"], &POSTGRES).unwrap(), "(right(x, length('a')) = 'a')");
    }

    #[test]
    fn translates_date_parts_of_date_differences() {
        let translated = |read, of| parse_date_part(read, of).and_then(|call| Some(call.render(&SQLITE)?.0));
        assert_eq!(translated(DatePart::Day, "a - b"), translate("timestampdiff", &["DAY", "b", "a"], &SQLITE));
        assert_eq!(translated(DatePart::Day, "(a - b)"), translated(DatePart::Day, "a - b"));
        let seconds = "((strftime('%s', (a)) - strftime('%s', f('x - y'))) * 1.0)";
        assert_eq!(translated(DatePart::Epoch, "(a) - f('x - y')").unwrap(), seconds);
        assert_eq!(translated(DatePart::Day, "a - b + INTERVAL '1 day'"), None);
        assert_eq!(translated(DatePart::Year, "AGE(CURRENT_DATE, born)"), translated(DatePart::Year, "age(born)"));
        assert_eq!(translated(DatePart::Month, "a - b"), None);
        assert_eq!(translated(DatePart::Day, "a - b - c"), None);
        assert_eq!(translated(DatePart::Month, "AGE(a, b)"), None);
        assert_eq!(
            translated(DatePart::Day, "a - INTERVAL '1 day'").unwrap(),
            "CAST(strftime('%d', a - INTERVAL '1 day') AS INTEGER)"
        );
    }

    #[test]
    fn translates_sql_server_idioms() {
        let translated = |arguments: &[&str]| translate("dateadd", arguments, &SQLITE).unwrap();
        assert_eq!(translated(&["MONTH", "DATEDIFF(MONTH, 0, d)", "0"]), "date(d, 'start of month')");
        assert_eq!(
            translated(&["week", "DATEDIFF(week, 0, GETDATE()) - 1", "0"]),
            "date(date(GETDATE(), 'weekday 0', '-6 days'), '-7 days')"
        );
        assert_eq!(translated(&["SECOND", "departure", "'1970-01-01'"]), "datetime(departure, 'unixepoch')");
        assert_eq!(
            translate("eomonth", &["d", "-1"], &SQLITE).unwrap(),
            "date(date(d, '-1 months'), 'start of month', '+1 month', '-1 day')"
        );
        assert_eq!(translate("convert", &["VARCHAR(10)", "x"], &SQLITE).unwrap(), "CAST(x AS VARCHAR(10))");
        assert!(parse_call("convert", &["x", "y"], &SQLITE).is_none());
        assert!(parse_call("convert", &["date", "CHAR"], &SQLITE).is_none());
    }

    #[test]
    fn translates_sqlite_date_functions() {
        let translated = |name, arguments: &[&str]| translate(name, arguments, &POSTGRES).unwrap();
        assert_eq!(translated("strftime", &["'%Y-%m'", "d"]), "TO_CHAR(d, 'YYYY-MM')");
        assert_eq!(translated("date", &["'now'", "'-7 days'"]), "CAST((CURRENT_DATE - INTERVAL '7 day') AS DATE)");
        assert_eq!(translated("datetime", &["'now'"]), "CAST(now() AS TIMESTAMP)");
        assert_eq!(translate("strftime", &["'%Y'", "'now'"], &MYSQL).unwrap(), "DATE_FORMAT(NOW(), '%Y')");
        assert!(is_foreign_signature("date", &["'now'"], &MYSQL));
        assert!(!is_foreign_signature("date", &["d"], &MYSQL));
        assert!(!is_foreign_signature("date", &["'now'", "'-1 day'"], &SQLITE));
    }
}
