//! What calls mean, whatever dialect they are of.

use super::Dialect;
use super::date_format::{Style, read};
use super::phrase::{Phrase, Said, number};
use super::unit::{Part, Unit};
use crate::schema::Type;

/// The calls of all dialects (and of models' imagination) that mean a phrase. The form tells what the arguments are: a digit is
/// the phrase's argument of that number, `u` a unit, `p` a part of a date, `i` an INTERVAL, `t` a type, `f…` a format in quotes
/// with the letters of a family; `*` is any number of arguments.
#[rustfmt::skip]
const MEANINGS: &[(&str, &str, Phrase)] = &[
    ("year", "0", Phrase::Part(Part::Year)),
    ("quarter", "0", Phrase::Part(Part::Quarter)),
    ("month", "0", Phrase::Part(Part::Month)),
    ("weekofyear", "0", Phrase::Part(Part::Week)),
    ("day", "0", Phrase::Part(Part::Day)),
    ("dayofmonth", "0", Phrase::Part(Part::Day)),
    ("day_of_month", "0", Phrase::Part(Part::Day)),
    ("dayofyear", "0", Phrase::Part(Part::DayOfYear)),
    ("day_of_year", "0", Phrase::Part(Part::DayOfYear)),
    ("dayofweek", "0", Phrase::Part(Part::Sunday1)),
    ("day_of_week", "0", Phrase::Part(Part::Monday1)),
    ("weekday", "0", Phrase::Part(Part::Monday0)),
    ("hour", "0", Phrase::Part(Part::Hour)),
    ("minute", "0", Phrase::Part(Part::Minute)),
    ("second", "0", Phrase::Part(Part::Second)),
    ("unix_timestamp", "0", Phrase::Part(Part::Epoch)),
    ("to_unixtime", "0", Phrase::Part(Part::Epoch)),
    ("unixepoch", "0", Phrase::Part(Part::Epoch)),
    ("date_part", "p 0", Phrase::Part(Part::Each)),
    ("datepart", "p 0", Phrase::Part(Part::Each)),

    ("date_trunc", "u 0", Phrase::Truncate(Unit::Each)),
    ("date_trunc", "0 u", Phrase::Truncate(Unit::Each)),
    ("datetrunc", "u 0", Phrase::Truncate(Unit::Each)),
    ("timestamp_trunc", "0 u", Phrase::Truncate(Unit::Each)),
    ("datetime_trunc", "0 u", Phrase::Truncate(Unit::Each)),
    ("trunc", "0 u", Phrase::Truncate(Unit::Each)),

    ("date_add", "u 1 0", Phrase::Plus(Unit::Each)),
    ("date_add", "0 i", Phrase::Plus(Unit::Each)),
    ("date_add", "0 1", Phrase::Plus(Unit::Day)),
    ("dateadd", "u 1 0", Phrase::Plus(Unit::Each)),
    ("timestampadd", "u 1 0", Phrase::Plus(Unit::Each)),
    ("timestamp_add", "0 i", Phrase::Plus(Unit::Each)),
    ("datetime_add", "0 i", Phrase::Plus(Unit::Each)),
    ("adddate", "0 i", Phrase::Plus(Unit::Each)),
    ("adddate", "0 1", Phrase::Plus(Unit::Day)),
    ("add_months", "0 1", Phrase::Plus(Unit::Month)),
    ("date_sub", "0 i", Phrase::Minus(Unit::Each)),
    ("date_sub", "u 1 0", Phrase::Minus(Unit::Each)),
    ("date_sub", "0 1", Phrase::Minus(Unit::Day)),
    ("timestamp_sub", "0 i", Phrase::Minus(Unit::Each)),
    ("datetime_sub", "0 i", Phrase::Minus(Unit::Each)),
    ("subdate", "0 i", Phrase::Minus(Unit::Each)),
    ("subdate", "0 1", Phrase::Minus(Unit::Day)),

    ("datediff", "0 1", Phrase::Between(Unit::Day)),
    ("datediff", "u 1 0", Phrase::Between(Unit::Each)),
    ("date_diff", "u 1 0", Phrase::Full(Unit::Each)),
    ("date_diff", "0 1 u", Phrase::Between(Unit::Each)),
    ("date_diff", "0 1", Phrase::Between(Unit::Day)),
    ("timestamp_diff", "0 1 u", Phrase::Full(Unit::Each)),
    ("datetime_diff", "0 1 u", Phrase::Between(Unit::Each)),
    ("timestampdiff", "u 1 0", Phrase::Full(Unit::Each)),

    ("strftime", "f% 0", Phrase::Format),
    ("strftime", "0 f%", Phrase::Format),
    ("format_date", "f% 0", Phrase::Format),
    ("format_datetime", "f% 0", Phrase::Format),
    ("format_timestamp", "f% 0", Phrase::Format),
    ("format_datetime", "0 fj", Phrase::Format),
    ("date_format", "0 fm", Phrase::Format),
    ("date_format", "0 fj", Phrase::Format),
    ("to_char", "0 ft", Phrase::Format),
    ("format", "0 fj", Phrase::Format),

    ("str_to_date", "0 fm", Phrase::ParseDate),
    ("date_parse", "0 fm", Phrase::ParseDate),
    ("to_date", "0 ft", Phrase::ParseDate),
    ("to_timestamp", "0 ft", Phrase::ParseDate),
    ("parse_date", "f% 0", Phrase::ParseDate),
    ("parse_datetime", "f% 0", Phrase::ParseDate),
    ("parse_timestamp", "f% 0", Phrase::ParseDate),
    ("to_date", "0", Phrase::ToDate),

    ("dayname", "0", Phrase::DayName),
    ("monthname", "0", Phrase::MonthName),
    ("to_number", "0", Phrase::ToNumber),
    ("to_char", "0", Phrase::ToText),
    ("to_varchar", "0", Phrase::ToText),

    ("from_unixtime", "0", Phrase::FromUnix),
    ("to_timestamp", "0", Phrase::FromUnix),
    ("timestamp_seconds", "0", Phrase::FromUnix),
    ("make_date", "0 1 2", Phrase::MakeDate),
    ("datefromparts", "0 1 2", Phrase::MakeDate),
    ("date_from_parts", "0 1 2", Phrase::MakeDate),
    ("convert", "t 0", Phrase::Cast),
    ("convert", "0 t", Phrase::Cast),
    ("try_convert", "t 0", Phrase::Cast),
    ("last_day", "0", Phrase::LastDay),
    ("last_day_of_month", "0", Phrase::LastDay),
    ("eomonth", "0", Phrase::LastDay),
    ("julianday", "0", Phrase::Julian),

    ("now", "", Phrase::Now),
    ("getdate", "", Phrase::Now),
    ("getutcdate", "", Phrase::Now),
    ("sysdate", "", Phrase::Now),
    ("sysdatetime", "", Phrase::Now),
    ("current_datetime", "", Phrase::Now),
    ("current_timestamp", "", Phrase::Now),
    ("curdate", "", Phrase::Today),
    ("today", "", Phrase::Today),
    ("current_date", "", Phrase::Today),

    ("left", "0 1", Phrase::Left),
    ("right", "0 1", Phrase::Right),
    ("len", "0", Phrase::Length),
    ("char_length", "0", Phrase::Length),
    ("character_length", "0", Phrase::Length),
    ("nvl", "0 1", Phrase::IfNull),
    ("isnull", "0 1", Phrase::IfNull),
    ("ifnull", "0 1", Phrase::IfNull),
    ("nvl2", "0 1 2", Phrase::IfNotNull),
    ("isnull", "0", Phrase::IsNull),
    ("zeroifnull", "0", Phrase::ZeroIfNull),
    ("if", "0 1 2", Phrase::If),
    ("iif", "0 1 2", Phrase::If),
    ("iff", "0 1 2", Phrase::If),
    ("greatest", "*", Phrase::Greatest),
    ("least", "*", Phrase::Least),
    ("locate", "0 1", Phrase::Position),
    ("charindex", "0 1", Phrase::Position),
    ("instr", "1 0", Phrase::Position),
    ("strpos", "1 0", Phrase::Position),
    ("mid", "0 1 2", Phrase::Substring),
    ("substring", "0 1 2", Phrase::Substring),
    ("substr", "0 1 2", Phrase::Substring),
    ("ucase", "0", Phrase::Upper),
    ("lcase", "0", Phrase::Lower),
    ("divide", "0 1", Phrase::Divide),
    ("safe_divide", "0 1", Phrase::SafeDivide),
    ("subtract", "0 1", Phrase::Subtract),
    ("minus", "0 1", Phrase::Subtract),
    ("multiply", "0 1", Phrase::Multiply),
    ("add", "0 1", Phrase::Add),
    ("mod", "0 1", Phrase::Modulo),
    ("pow", "0 1", Phrase::Power),
    ("power", "0 1", Phrase::Power),
    ("concat", "*", Phrase::Concat),
    ("group_concat", "0", Phrase::JoinTexts),
    ("group_concat", "0 1", Phrase::JoinTexts),
    ("string_agg", "0 1", Phrase::JoinTexts),
    ("listagg", "0 1", Phrase::JoinTexts),
    ("count_if", "0", Phrase::CountIf),
    ("countif", "0", Phrase::CountIf),
    ("approx_count_distinct", "0", Phrase::CountDistinct),
    ("approx_distinct", "0", Phrase::CountDistinct),
    ("bool_or", "0", Phrase::Any),
    ("bool_and", "0", Phrase::All),
    ("every", "0", Phrase::All),
    ("any_value", "0", Phrase::AnyValue),
    ("arbitrary", "0", Phrase::AnyValue),
    ("stddev", "0", Phrase::Deviation),
    ("stddev_samp", "0", Phrase::Deviation),
    ("stdev", "0", Phrase::Deviation),
    ("calculate", "0", Phrase::Itself),
    ("compute", "0", Phrase::Itself),
];

/// Names that several dialects have, with forms that not all of them take. Each dialect lists those that it takes. `'u` is a unit
/// in quotes, `_u` one without.
const FORMS: &[(&str, &str)] = &[
    ("date_add", "'u 1 0"),
    ("date_add", "_u 1 0"),
    ("date_add", "0 i"),
    ("date_add", "0 1"),
    ("date_sub", "u 1 0"),
    ("date_sub", "0 i"),
    ("date_sub", "0 1"),
    ("datediff", "u 1 0"),
    ("datepart", "_u 0"),
    ("date_diff", "0 1 u"),
    ("date_diff", "'u 1 0"),
    ("date_diff", "_u 1 0"),
    ("date_trunc", "0 u"),
    ("date_format", "0 fm"),
    ("date_format", "0 fj"),
    ("format", "0 fj"),
    ("to_char", "0 ft"),
    ("to_number", "0"),
    ("isnull", "0 1"),
    ("convert", "t 0"),
];

/// What a call means. The dialect is the one that the words are wanted of.
pub(crate) fn meaning(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
    if is_sqlite_moment(name, arguments) {
        return of_sqlite(name, arguments, dialect);
    }
    of_sql_server(name, arguments, dialect).or_else(|| {
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

/// What is added up outside of parentheses and quotes, each with its sign.
fn terms(text: &str) -> Vec<(char, &str)> {
    let mut signs: Vec<(usize, char)> = outside(text).filter(|&(at, c)| at > 0 && matches!(c, '+' | '-')).collect();
    signs.push((text.len(), '+'));
    let (mut terms, mut from, mut sign) = (Vec::new(), 0, '+');
    for (at, next) in signs {
        terms.push((sign, text[from..at].trim()));
        (from, sign) = (at + 1, next);
    }
    terms
}

/// A text without the parentheses around all of it.
fn without_parentheses(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) if is_whole(inner) => without_parentheses(inner),
        _ => text,
    }
}

/// Whether no parenthesis in a text closes what was opened before it.
fn is_whole(text: &str) -> bool {
    let mut depth = 0i32;
    text.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    })
}

/// The letters of a text that stand outside of parentheses and quotes.
fn outside(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut depth, mut quote) = (0usize, None);
    text.char_indices().filter(move |&(_, c)| {
        match (quote, c) {
            (Some(q), _) => {
                if c == q {
                    quote = None;
                }
                return false;
            }
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    })
}

/// The name and the arguments of a text that is one call and nothing else.
fn as_call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inside) = text.trim().strip_suffix(')')?.split_once('(')?;
    let name = name.trim();
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(())?;
    // The last parenthesis must be the one that closes the first.
    is_whole(inside).then_some(())?;
    let mut commas: Vec<usize> = outside(inside).filter(|&(_, c)| c == ',').map(|(at, _)| at).collect();
    commas.push(inside.len());
    let mut from = 0;
    let arguments = commas.into_iter().map(|comma| {
        let argument = inside[from..comma].trim();
        from = comma + 1;
        argument
    });
    Some((name, arguments.collect()))
}

/// What SQL Server cannot say otherwise: a date cut back to its unit is so many units after day 0, and seconds since 1970 are
/// added to that day.
fn of_sql_server(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
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

/// SQLite's functions for dates.
const MOMENTS: &[&str] = &["date", "datetime", "julianday", "strftime"];

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

/// A format in quotes that has a letter for a date in it; one letter alone may mean anything.
fn format(style: Style, argument: &str) -> Option<String> {
    let text = quoted(argument)?;
    read(style, text).filter(|format| text.len() > 1 && format.contains('%'))
}

/// A word that may be a type: `DATE`, `VARCHAR(10)`.
fn type_name(argument: &str) -> Option<&str> {
    let word = argument.split('(').next()?.trim();
    (Type::from_name(word) != Type::Any).then_some(argument)
}

/// A word with or without quotes.
fn bare(argument: &str) -> &str {
    argument.trim().trim_matches(['\'', '"'])
}

/// What is between quotes; `None` if there is a quote in it.
fn quoted(argument: &str) -> Option<&str> {
    let inner = argument.trim().strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then_some(inner)
}

/// `INTERVAL '7 days'`, `INTERVAL '7' DAY`, `INTERVAL n DAY`: how many of which unit.
pub(crate) fn interval(text: &str) -> Option<(String, Unit)> {
    let word = text.get(..8).filter(|word| word.eq_ignore_ascii_case("interval"))?;
    let rest = text[word.len()..].trim();
    (rest.len() < text.len() - word.len() || rest.starts_with(['\'', '('])).then_some(())?;
    let (count, unit) = match quoted(rest) {
        Some(inside) => inside.trim().split_once(char::is_whitespace)?,
        None => {
            let (count, unit) = rest.rsplit_once(|c: char| c.is_whitespace() || c == ')' || c == '\'')?;
            (&rest[..rest.len() - unit.len()], if count.is_empty() { return None } else { unit })
        }
    };
    let unit = Unit::from_word(unit.trim())?;
    let count = count.trim();
    let count = quoted(count).unwrap_or(count).trim();
    let plain = count.strip_prefix('+').unwrap_or(count);
    // Quotes hold a number, not a computation; nor do two units make one.
    let holds = number(plain).is_some() || !rest.starts_with('\'');
    (holds && !plain.is_empty()).then(|| (plain.to_string(), unit))
}

/// Whether a call is SQLite's: its dates take `'now'` and modifiers in quotes.
fn is_sqlite_moment(name: &str, arguments: &[&str]) -> bool {
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
fn of_sqlite(name: &str, arguments: &[&str], dialect: &Dialect) -> Option<Said> {
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

    #[test]
    fn intervals_are_read_in_all_their_forms() {
        let read = |text| interval(text).map(|(count, unit)| (count, unit.word()));
        for text in ["INTERVAL '7 days'", "interval '7' DAY", "INTERVAL 7 DAY", "INTERVAL (7) DAY"] {
            let (count, unit) = read(text).unwrap();
            assert_eq!((count.trim_matches(['(', ')']), unit), ("7", "day"), "{text}");
        }
        assert_eq!(read("INTERVAL -1 MONTH").unwrap().0, "-1");
        assert_eq!(read("INTERVAL WEEKDAY(d) - 2 DAY").unwrap().0, "WEEKDAY(d) - 2");
        for text in ["INTERVAL '1 year 2 months'", "INTERVAL '01:00:00'", "intervals", "INTERVAL DAY", "INTERVAL"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
