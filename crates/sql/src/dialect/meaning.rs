//! What calls mean, whatever dialect they are of: `table.rs` lists them, `argument.rs` reads what stands in their parentheses,
//! `idioms.rs` has what fits no table.

mod argument;
mod idioms;
mod table;

use self::argument::{as_call, bare, format, quoted, terms, type_name, without_parentheses};
pub(crate) use self::argument::{interval, operand};
use self::idioms::{MOMENTS, is_sqlite_moment, of_choices, of_few, of_separated, of_sql_server, of_sqlite};
use self::table::{FORMS, MEANINGS};
use super::Dialect;
use super::date_format::Style;
use super::phrase::{Phrase, Said, number};
use super::unit::{Part, Unit};

/// What a call means. The dialect is the one that the words are wanted of.
pub(crate) fn meaning(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
    if is_sqlite_moment(name, arguments) {
        return of_sqlite(name, arguments, dialect);
    }
    let idiom = of_sql_server(name, arguments, dialect)
        .or_else(|| of_separated(name, arguments, dialect))
        .or_else(|| of_choices(name, arguments))
        .or_else(|| of_few(name, arguments, dialect));
    idiom.or_else(|| {
        MEANINGS.iter().filter(|(n, _, _)| *n == name).find_map(|(_, form, phrase)| fits(form, *phrase, arguments))
    })
}

/// A part of a date, or of the time between two: `EXTRACT(DAY FROM a - b)`, `EXTRACT(YEAR FROM AGE(b))`.
pub(crate) fn part(part: Part, of: &str) -> Option<Said> {
    if let Some((name, arguments)) = as_call(of)
        && name.eq_ignore_ascii_case("age")
    {
        return match (part, arguments.as_slice()) {
            (Part::Year, [later, earlier]) => Some(Said::new(Phrase::Full(Unit::Year), &[later, earlier])),
            (Part::Year, [earlier]) => Some(Said::new(Phrase::Full(Unit::Year), &["CURRENT_DATE", earlier])),
            _ => None,
        };
    }
    let of = without_parentheses(of);
    let terms = terms(of);
    let moved = |term: &str| term.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("interval"));
    match terms.as_slice() {
        // A date, perhaps some time later or earlier.
        [_, rest @ ..] if rest.iter().all(|(_, term)| moved(term)) => Some(Said::new(Phrase::Part(part), &[of])),
        [(_, later), ('-', earlier)] => match part {
            Part::Day => Some(Said::new(Phrase::Full(Unit::Day), &[later, earlier])),
            Part::Epoch => Some(Said::new(Phrase::Elapsed, &[later, earlier])),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a name means something in some dialect.
pub(crate) fn is_meant(name: &str) -> bool {
    MEANINGS.iter().any(|(n, _, _)| *n == name)
}

/// Whether dialects give a function of that name other arguments than this one does.
pub(crate) fn is_contested(name: &str, dialect: &Dialect) -> bool {
    FORMS.iter().any(|(n, _)| *n == name) || takes_no_modifiers(dialect) && MOMENTS.contains(&name)
}

/// Whether a call that the dialect knows by its name has a form that it does not know.
pub(crate) fn is_of_another(name: &str, arguments: &[&str], dialect: &Dialect) -> bool {
    let fitting = |forms: &[(&str, &str)]| {
        // Only the form matters; what moves a date must have a date to move.
        let any = if name.starts_with("date") { Phrase::Plus(Unit::Each) } else { Phrase::Itself };
        forms.iter().any(|(n, form)| *n == name && fits(form, any, arguments).is_some())
    };
    let modifiers = takes_no_modifiers(dialect) && is_sqlite_moment(name, arguments);
    // What begins with a text is written out by that text.
    let printed = name == "format" && arguments.first().is_some_and(|first| quoted(first).is_some());
    modifiers || !printed && fitting(FORMS) && !fitting(dialect.forms)
}

/// Whether dates are others than SQLite's.
fn takes_no_modifiers(dialect: &Dialect) -> bool {
    dialect.functions.get("strftime").is_none()
}

/// The phrase of a call whose arguments fit a form.
fn fits(form: &str, phrase: Phrase, arguments: &[&str]) -> Option<Said> {
    if form == "*" {
        // One value is an aggregate's where the greatest of several are wanted.
        let enough = arguments.len() > usize::from(matches!(phrase, Phrase::Greatest | Phrase::Least));
        return enough.then(|| Said::new(phrase, arguments));
    }
    let parts: Vec<&str> = form.split_whitespace().collect();
    (parts.len() == arguments.len()).then_some(())?;
    let mut slots: Vec<Option<String>> = vec![None; 3];
    let (mut unit, mut read_part) = (None, None);
    for (&part, &argument) in parts.iter().zip(arguments) {
        match part {
            "'u" if quoted(argument).is_none() => return None,
            "_u" if quoted(argument).is_some() => return None,
            // Parts are more than units, and as good where only the form matters.
            "_u" if Unit::from_word(argument).is_none() => read_part = Some(Part::from_word(argument)?),
            "u" | "'u" | "_u" => unit = Some(Unit::from_word(bare(argument))?),
            "p" => read_part = Some(Part::from_word(bare(argument))?),
            // Where both could be a type, nobody knows which is the value.
            "t" if arguments.iter().filter(|a| type_name(a).is_some()).count() > 1 => return None,
            "t" => slots[1] = Some(type_name(argument)?.to_string()),
            "i" => {
                let (count, of) = interval(argument)?;
                (slots[1], unit) = (Some(count), Some(of));
            }
            "f%" => slots[1] = Some(format(Style::Percent, argument)?),
            "fm" => slots[1] = Some(format(Style::MySql, argument)?),
            "ft" => slots[1] = Some(format(Style::Template, argument)?),
            "fj" => slots[1] = Some(format(Style::Java, argument)?),
            // A span of time is no number of days, in whatever form it stands.
            "1" if counts(phrase) && argument.to_ascii_lowercase().contains("interval") => return None,
            place => slots[place.parse::<usize>().ok()?] = Some(argument.to_string()),
        }
    }
    // A bare word where a value belongs is a unit in a form that another row has.
    let is_unit = |slot: &Option<String>| slot.as_deref().is_some_and(|text| interval(text).is_some());
    (!slots.iter().any(is_unit)).then_some(())?;
    let mut arguments: Vec<String> = slots.into_iter().flatten().collect();
    // SQL Server's day 0 is no date elsewhere.
    let date = arguments.first().is_some_and(|date| number(date).is_none());
    let phrase = match phrase {
        Phrase::Part(Part::Each) => return part(read_part?, arguments.first()?),
        Phrase::Part(read) => return part(read, arguments.first()?),
        Phrase::Plus(_) | Phrase::Between(_) | Phrase::Full(_) if !date => return None,
        Phrase::Truncate(Unit::Each) => Phrase::Truncate(unit?),
        Phrase::Plus(Unit::Each) => unit.map_or(phrase, Phrase::Plus),
        Phrase::Between(Unit::Each) => Phrase::Between(unit?),
        Phrase::Full(Unit::Each) => Phrase::Full(unit?),
        Phrase::Minus(fixed) => {
            arguments[1] = negative(&arguments[1]);
            Phrase::Plus(unit.unwrap_or(fixed))
        }
        // Without a separator it is a comma.
        Phrase::JoinTexts if arguments.len() == 1 => {
            arguments.push("','".into());
            phrase
        }
        // Without a filling it is spaces.
        Phrase::PadLeft | Phrase::PadRight if arguments.len() == 2 => {
            arguments.push("' '".into());
            phrase
        }
        // A text with such signs is no text that is looked for, but a condition on words.
        Phrase::Contains if quoted(&arguments[1]).is_some_and(|text| text.contains(['"', '*'])) => return None,
        other => other,
    };
    Some(Said { phrase, arguments, timed: false })
}

/// Whether the second argument of a phrase is how many units a date is moved by.
fn counts(phrase: Phrase) -> bool {
    matches!(phrase, Phrase::Plus(_) | Phrase::Minus(_))
}

/// A count the other way.
pub(crate) fn negative(count: &str) -> String {
    number(count).and_then(i64::checked_neg).map_or_else(|| format!("-({count})"), |count| count.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, POSTGRES, SQLITE};

    fn says(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<String> {
        Some(meaning(name, arguments, dialect)?.in_words_of(dialect)?.0)
    }

    #[test]
    fn a_call_is_said_anew() {
        let said = |name, arguments: &[&str]| says(name, arguments, &SQLITE).unwrap();
        assert_eq!(said("instr", &["title", "'x'"]), "instr(title, 'x')");
        assert_eq!(said("dateadd", &["DAY", "-7", "GETDATE()"]), "datetime(GETDATE(), '-7 days')");
        assert_eq!(said("date_sub", &["CURDATE()", "INTERVAL 3 MONTH"]), "date(CURDATE(), '-3 months')");
        assert_eq!(said("date_add", &["d", "INTERVAL '1' WEEK"]), "date(d, '+7 days')");
        assert_eq!(said("datediff", &["day", "a", "b"]), said("datediff", &["b", "a"]));
        assert_eq!(said("date_trunc", &["'month'", "d"]), "date(d, 'start of month')");
        assert_eq!(said("timestamp_trunc", &["d", "MONTH"]), "date(d, 'start of month')");
        assert_eq!(said("to_char", &["d", "'YYYY-MM'"]), "strftime('%Y-%m', d)");
        assert_eq!(said("date_format", &["d", "'%H:%i'"]), "strftime('%H:%M', d)");
        assert!(meaning("datediff", &["a", "b", "c"], &SQLITE).is_none());
        assert!(meaning("dateadd", &["day", "7", "0"], &SQLITE).is_none());
        // What is no number of days is none, whatever it is.
        for span in ["'1 day'::interval", "/* x */ INTERVAL 1 DAY", "n * INTERVAL '1 day'", "INTERVAL 1 MICROSECOND"] {
            assert!(meaning("date_add", &["d", span], &POSTGRES).is_none(), "{span}");
            assert!(!is_of_another("date_add", &["d", span], &MYSQL), "{span}");
        }
        assert!(!is_of_another("format", &["s", "'-'"], &SQLITE));
    }

    #[test]
    fn what_has_meaning_only_with_certain_arguments_has_none_with_others() {
        let said = |name, arguments: &[&str]| says(name, arguments, &SQLITE);
        assert_eq!(said("decode", &["x", "1", "'a'", "'b'"]).unwrap(), "CASE x WHEN 1 THEN 'a' ELSE 'b' END");
        // NULL is equal to NULL in DECODE, and in CASE it is not.
        assert_eq!(said("decode", &["x", "NULL", "'a'", "'b'"]), None);
        assert_eq!(said("choose", &["n", "'a'", "'b'"]).unwrap(), "CASE n WHEN 1 THEN 'a' WHEN 2 THEN 'b' END");
        assert_eq!(said("split_part", &["x", "'-'", "2"]), None);
        assert_eq!(said("truncate", &["x", "-1"]), None);
        assert_eq!(said("contains", &["x", "'\"a*\"'"]), None);
        assert_eq!(said("from_unixtime", &["n", "'%Y-%m'"]).unwrap(), "strftime('%Y-%m', datetime(n, 'unixepoch'))");
        assert_eq!(said("to_date", &["'31/12/2020'", "'DD/MM/YYYY'"]).unwrap(), "date('2020-12-31')");
        for text in ["'2020/12/31'", "'32/12/2020'", "'31/12/2020 x'", "d"] {
            assert_eq!(said("to_date", &[text, "'DD/MM/YYYY'"]), None, "{text}");
        }
        assert_eq!(says("split_part", &["x", "'-'", "1"], &MYSQL).unwrap(), "SUBSTRING_INDEX(x, '-', 1)");
        assert_eq!(says("ends_with", &["x", "'a'"], &POSTGRES).unwrap(), "(right(x, length('a')) = 'a')");
    }

    #[test]
    fn time_between_two_dates_is_no_date() {
        let said = |read, of| part(read, of).and_then(|said| Some(said.in_words_of(&SQLITE)?.0));
        assert_eq!(said(Part::Day, "a - b"), says("timestampdiff", &["DAY", "b", "a"], &SQLITE));
        assert_eq!(said(Part::Day, "(a - b)"), said(Part::Day, "a - b"));
        let seconds = "((strftime('%s', (a)) - strftime('%s', f('x - y'))) * 1.0)";
        assert_eq!(said(Part::Epoch, "(a) - f('x - y')").unwrap(), seconds);
        assert_eq!(said(Part::Day, "a - b + INTERVAL '1 day'"), None);
        assert_eq!(said(Part::Year, "AGE(CURRENT_DATE, born)"), said(Part::Year, "age(born)"));
        assert_eq!(said(Part::Month, "a - b"), None);
        assert_eq!(said(Part::Day, "a - b - c"), None);
        assert_eq!(said(Part::Month, "AGE(a, b)"), None);
        assert_eq!(
            said(Part::Day, "a - INTERVAL '1 day'").unwrap(),
            "CAST(strftime('%d', a - INTERVAL '1 day') AS INTEGER)"
        );
    }

    #[test]
    fn sql_servers_idioms_are_understood() {
        let said = |arguments: &[&str]| says("dateadd", arguments, &SQLITE).unwrap();
        assert_eq!(said(&["MONTH", "DATEDIFF(MONTH, 0, d)", "0"]), "date(d, 'start of month')");
        assert_eq!(
            said(&["week", "DATEDIFF(week, 0, GETDATE()) - 1", "0"]),
            "date(date(GETDATE(), 'weekday 0', '-6 days'), '-7 days')"
        );
        assert_eq!(said(&["SECOND", "departure", "'1970-01-01'"]), "datetime(departure, 'unixepoch')");
        assert_eq!(
            says("eomonth", &["d", "-1"], &SQLITE).unwrap(),
            "date(date(d, '-1 months'), 'start of month', '+1 month', '-1 day')"
        );
        assert_eq!(says("convert", &["VARCHAR(10)", "x"], &SQLITE).unwrap(), "CAST(x AS VARCHAR(10))");
        assert!(meaning("convert", &["x", "y"], &SQLITE).is_none());
        assert!(meaning("convert", &["date", "CHAR"], &SQLITE).is_none());
    }

    #[test]
    fn sqlites_dates_are_said_anew() {
        let said = |name, arguments: &[&str]| says(name, arguments, &POSTGRES).unwrap();
        assert_eq!(said("strftime", &["'%Y-%m'", "d"]), "TO_CHAR(d, 'YYYY-MM')");
        assert_eq!(said("date", &["'now'", "'-7 days'"]), "CAST((CURRENT_DATE - INTERVAL '7 day') AS DATE)");
        assert_eq!(said("datetime", &["'now'"]), "CAST(now() AS TIMESTAMP)");
        assert_eq!(says("strftime", &["'%Y'", "'now'"], &MYSQL).unwrap(), "DATE_FORMAT(NOW(), '%Y')");
        assert!(is_of_another("date", &["'now'"], &MYSQL));
        assert!(!is_of_another("date", &["d"], &MYSQL));
        assert!(!is_of_another("date", &["'now'", "'-1 day'"], &SQLITE));
    }
}
