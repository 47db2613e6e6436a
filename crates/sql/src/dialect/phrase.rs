//! What can be said in every dialect, each time in its own words.

use super::Dialect;
use super::date_format::{Style, write};
use super::meaning::operand;
use super::unit::{Part, Unit};

/// Something that every dialect can say in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Phrase {
    /// A number read off a date.
    Part(Part),
    /// A date cut back to where its unit begins.
    Truncate(Unit),
    /// A date, and how many units later: a number.
    Plus(Unit),
    /// A date, and how many units later: anything that gives a number.
    PlusSome(Unit),
    /// A date, and how many units earlier. Only in tables of what calls mean.
    Minus(Unit),
    /// How often a unit begins from the second to the first.
    Between(Unit),
    /// How many whole units have passed from the second to the first.
    Full(Unit),
    /// Seconds from the second to the first, with a fraction.
    Elapsed,
    /// A date written out.
    Format,
    /// `Monday`.
    DayName,
    /// `January`.
    MonthName,
    /// `Mon`, `Jan`, where formats have no names.
    DayShort,
    MonthShort,
    /// A date read from text that is written like that.
    ParseDate,
    /// The same with a time of day.
    ParseMoment,
    /// Seconds since 1970 as a date.
    FromUnix,
    /// Year, month and day as a date.
    MakeDate,
    /// The last day of a date's month.
    LastDay,
    /// Days since noon of the first day in 4713 before Christ.
    Julian,
    Now,
    Today,
    Left,
    Right,
    Length,
    IfNull,
    /// The second if the first is not NULL, else the third.
    IfNotNull,
    IsNull,
    ZeroIfNull,
    If,
    Greatest,
    Least,
    /// Where the first stands in the second.
    Position,
    Substring,
    Upper,
    Lower,
    /// Text made so many letters long by the third, or cut.
    PadLeft,
    PadRight,
    /// Whether the second stands in the first, at its beginning, or at its end.
    Contains,
    StartsWith,
    EndsWith,
    /// What stands before the second where that stands first, or all of the text.
    Before,
    /// A number from 0 to 1.
    Random,
    Divide,
    /// NULL where the second is zero.
    SafeDivide,
    Subtract,
    Multiply,
    Add,
    Modulo,
    Power,
    /// A division without the rest.
    Quotient,
    /// A number without the digits behind so many; the third is the power of ten.
    CutNumber,
    Concat,
    /// Texts of many rows as one, with the second between them.
    JoinTexts,
    /// The same of each text once.
    JoinDistinct,
    /// How many rows the condition holds for.
    CountIf,
    CountDistinct,
    /// Whether a condition holds for any row, or for all.
    Any,
    All,
    AnyValue,
    /// The deviation of a sample, or of all there is.
    Deviation,
    DeviationOfAll,
    /// The variance of a sample, or of all there is.
    Variance,
    VarianceOfAll,
    /// A value as a text that no other value gives.
    Written,
    /// Nothing but its argument: `CALCULATE(x)`.
    Itself,
    /// In words that every dialect has, and with parentheses where they are needed.
    Already,
    /// Converted to that type, where CAST with its usual name is not the way.
    ToInteger,
    /// The nearest whole number, where CAST cuts.
    Rounded,
    /// Rounded to so many digits, where CAST does not.
    RoundedTo,
    /// Text of at most so many letters, where CAST does not cut.
    CutText,
    ToText,
    ToNumber,
    ToDate,
    ToTimestamp,
    ToTime,
    /// Converted to the type that the second names.
    Cast,
}

impl Phrase {
    /// How many of its first arguments are dates.
    pub(crate) fn dates(self) -> usize {
        match self {
            Phrase::Between(_) | Phrase::Full(_) | Phrase::Elapsed => 2,
            Phrase::Part(_)
            | Phrase::Truncate(_)
            | Phrase::Plus(_)
            | Phrase::PlusSome(_)
            | Phrase::Format
            | Phrase::DayName
            | Phrase::MonthName
            | Phrase::DayShort
            | Phrase::MonthShort
            | Phrase::LastDay
            | Phrase::Julian => 1,
            _ => 0,
        }
    }

    /// Whether it gives a date, and not a number or a text that is read off one.
    pub(crate) fn gives_date(self) -> bool {
        matches!(
            self,
            Phrase::Truncate(_)
                | Phrase::Plus(_)
                | Phrase::PlusSome(_)
                | Phrase::FromUnix
                | Phrase::ParseDate
                | Phrase::MakeDate
                | Phrase::LastDay
                | Phrase::Now
                | Phrase::Today
                | Phrase::ToDate
                | Phrase::ToTimestamp
        )
    }
}

/// What every dialect understands, for those that have no words of their own.
#[rustfmt::skip]
pub(crate) const STANDARD: &[(Phrase, &str)] = &[
    (Phrase::If, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    (Phrase::IfNotNull, "CASE WHEN ({0}) IS NOT NULL THEN {1} ELSE {2} END"),
    (Phrase::IfNull, "COALESCE({0}, {1})"),
    (Phrase::IsNull, "(({0}) IS NULL)"),
    (Phrase::ZeroIfNull, "COALESCE({0}, 0)"),
    (Phrase::Any, "(MAX(CASE WHEN {0} THEN 1 ELSE 0 END) = 1)"),
    (Phrase::All, "(MIN(CASE WHEN {0} THEN 1 ELSE 0 END) = 1)"),
    (Phrase::ToText, "CAST({0} AS VARCHAR)"),
    (Phrase::ToNumber, "CAST({0} AS DECIMAL(38, 10))"),
    (Phrase::Concat, "({|})"),
    (Phrase::Itself, "({0})"),
    (Phrase::Already, "{0}"),
    (Phrase::Length, "LENGTH({0})"),
    (Phrase::Substring, "SUBSTR({0}, {1}, {2})"),
    (Phrase::CountIf, "COUNT(CASE WHEN {0} THEN 1 END)"),
    (Phrase::CountDistinct, "COUNT(DISTINCT {0})"),
    (Phrase::AnyValue, "MIN({0})"),
    (Phrase::Modulo, "(({0}) % ({1}))"),
    (Phrase::StartsWith, "(SUBSTR({0}, 1, LENGTH({1})) = {1})"),
    (Phrase::Variance, "VAR_SAMP({0})"),
    (Phrase::VarianceOfAll, "VAR_POP({0})"),
    (Phrase::DeviationOfAll, "STDDEV_POP({0})"),
    (Phrase::ToDate, "CAST({0} AS DATE)"),
    (Phrase::ToTimestamp, "CAST({0} AS TIMESTAMP)"),
    (Phrase::ToTime, "CAST({0} AS TIME)"),
    (Phrase::Cast, "CAST({0} AS {1})"),
];

/// A phrase with what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) phrase: Phrase,
    /// In the phrase's order. A format is in the letters of [`Style::Percent`].
    pub(crate) arguments: Vec<String>,
    /// The first has a time of day, whatever its words say.
    pub(crate) timed: bool,
}

/// A text in quotes as the date that it is, for dialects that take it for anything else.
fn dated(argument: &str) -> String {
    let kind = if argument.contains(':') { "TIMESTAMP" } else { "DATE" };
    format!("CAST({argument} AS {kind})")
}

impl Said {
    pub(crate) fn new(phrase: Phrase, arguments: &[&str]) -> Said {
        Said { phrase, arguments: arguments.iter().map(|&argument| argument.to_string()).collect(), timed: false }
    }

    /// A template filled with what it is about, where no unit matters.
    pub(crate) fn filled(&self, template: &str) -> Option<String> {
        fill(template, self, Unit::Each)
    }

    /// A template as a person reads it.
    pub(crate) fn shown(template: &str) -> String {
        shown(template, Unit::Each)
    }

    /// It in the words of a dialect, and the words with letters in place of what it is about.
    pub(crate) fn in_words_of(&self, dialect: &Dialect) -> Option<(String, String)> {
        let dates = self.phrase.dates();
        if dialect.strict_types && self.arguments.iter().take(dates).any(|a| a.starts_with('\'')) {
            let mut dated_too = self.clone();
            let texts = dated_too.arguments.iter_mut().take(dates).filter(|a| a.starts_with('\''));
            texts.for_each(|argument| *argument = dated(argument));
            return dated_too.in_words_of(dialect);
        }
        let own = |phrase: Phrase| {
            let found = dialect.says.iter().chain(STANDARD).find(|(p, _)| *p == phrase);
            found.map(|(_, template)| *template).filter(|t| dialect.concat.pipes || !t.contains("{|}"))
        };
        let (unit, general): (_, fn(Unit) -> Phrase) = match self.phrase {
            Phrase::Truncate(unit) => (unit, Phrase::Truncate),
            Phrase::Between(unit) => (unit, Phrase::Between),
            Phrase::Full(unit) => (unit, Phrase::Full),
            Phrase::Plus(unit) if number(self.arguments.get(1)?).is_some() => (unit, Phrase::Plus),
            Phrase::Plus(unit) => (unit, Phrase::PlusSome),
            // A name alone has words of its own where formats have no names, and the other way round.
            Phrase::Format if named(self.arguments.get(1)?).is_some_and(|name| own(name).is_some()) => {
                return Said::new(named(self.arguments.get(1)?)?, &[self.arguments.first()?]).in_words_of(dialect);
            }
            Phrase::Format
                if dialect.concat.pipes
                    && own(Phrase::MonthShort).is_some()
                    && has_short_names(self.arguments.get(1)?) =>
            {
                let text = in_pieces(self.arguments.first()?, self.arguments.get(1)?, dialect)?;
                return Some((text.clone(), text));
            }
            Phrase::DayName | Phrase::MonthName if own(self.phrase).is_none() => {
                let format = if self.phrase == Phrase::DayName { "%A" } else { "%B" };
                return Said::new(Phrase::Format, &[self.arguments.first()?, format]).in_words_of(dialect);
            }
            Phrase::ParseDate if has_hours(self.arguments.get(1)?) && own(Phrase::ParseMoment).is_some() => {
                return Said { phrase: Phrase::ParseMoment, ..self.clone() }.in_words_of(dialect);
            }
            // Text that is written as dates are everywhere needs no format.
            Phrase::ParseDate if own(Phrase::ParseDate).is_none() => {
                let as_usual = match self.arguments.get(1)?.as_str() {
                    "%Y-%m-%d" => Phrase::ToDate,
                    "%Y-%m-%d %H:%M:%S" => Phrase::ToTimestamp,
                    format => {
                        let day = format!("'{}'", day(self.arguments.first()?, format)?);
                        return Said::new(Phrase::ToDate, &[&day]).in_words_of(dialect);
                    }
                };
                return Said::new(as_usual, &[self.arguments.first()?]).in_words_of(dialect);
            }
            other => {
                let template = own(other)?;
                let text = fill(template, self, Unit::Each)?;
                let as_read = if other == Phrase::Already { text.clone() } else { shown(template, Unit::Each) };
                return Some((text, as_read));
            }
        };
        if let Some(template) = own(general(unit)).or_else(|| own(general(Unit::Each))) {
            return Some((fill(template, self, unit)?, shown(template, unit)));
        }
        let (smaller, times) = match (self.phrase, unit) {
            (Phrase::Plus(_), Unit::Week) => (Unit::Day, 7),
            (Phrase::Plus(_), Unit::Quarter) => (Unit::Month, 3),
            _ => return None,
        };
        let (date, count) = (self.arguments.first()?, self.arguments.get(1)?);
        let more = match number(count) {
            Some(count) => count.checked_mul(times)?.to_string(),
            None => format!("({count}) * {times}"),
        };
        Said { timed: self.timed, ..Said::new(Phrase::Plus(smaller), &[date, &more]) }.in_words_of(dialect)
    }
}

/// The day that a text in quotes is, if it is written in a format of year, month and day: `2020-12-31`.
fn day(text: &str, format: &str) -> Option<String> {
    let mut text = text.trim().strip_prefix('\'')?.strip_suffix('\'')?;
    let (mut year, mut month, mut day) = (None, None, None);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text = text.strip_prefix(letter)?;
            continue;
        }
        let (place, digits, most) = match letters.next()? {
            'Y' => (&mut year, 4, 9999),
            'm' => (&mut month, 2, 12),
            'd' => (&mut day, 2, 31),
            _ => return None,
        };
        let read = text.get(..digits)?.parse::<u16>().ok().filter(|number| (1..=most).contains(number))?;
        *place = Some(read);
        text = &text[digits..];
    }
    text.is_empty().then(|| Some(format!("{:04}-{:02}-{:02}", year?, month?, day?)))?
}

/// Whether a format has a time of day in it.
fn has_hours(format: &str) -> bool {
    format.contains("%H") || format.contains("%I")
}

/// Whether a format has a name of three letters in it.
fn has_short_names(format: &str) -> bool {
    format.contains("%b") || format.contains("%a")
}

/// A date written out piece by piece, where formats have no names.
fn in_pieces(date: &str, format: &str, dialect: &Dialect) -> Option<String> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), format);
    while !rest.is_empty() {
        let length = if rest.starts_with('%') { 2 } else { rest.chars().next()?.len_utf8() };
        let name = match rest.get(..length)? {
            "%b" => Some(Phrase::MonthShort),
            "%a" => Some(Phrase::DayShort),
            other => {
                plain.push_str(other);
                None
            }
        };
        rest = &rest[length..];
        if !plain.is_empty() && (name.is_some() || rest.is_empty()) {
            let dated = plain.contains('%').then(|| Said::new(Phrase::Format, &[date, &plain]).in_words_of(dialect));
            pieces.push(dated.map_or_else(|| Some(format!("'{plain}'")), |said| Some(said?.0))?);
            plain.clear();
        }
        if let Some(name) = name {
            pieces.push(Said::new(name, &[date]).in_words_of(dialect)?.0);
        }
    }
    Some(if pieces.len() == 1 { pieces.remove(0) } else { format!("({})", pieces.join(" || ")) })
}

/// The phrase of a format that is a name and nothing else.
fn named(format: &str) -> Option<Phrase> {
    match format {
        "%A" => Some(Phrase::DayName),
        "%B" => Some(Phrase::MonthName),
        _ => None,
    }
}

/// The whole number that a text is.
pub(crate) fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// What is longer was nested beyond what anybody writes.
const LONGEST: usize = 4_000;
/// What a template says three times and more may be so long.
const LONGEST_REPEATED: usize = 200;

/// Fills a template: `{0}` is the first argument, `{*}` all of them with commas, `{|}` all of them with `||`; `{unit}` and
/// `{UNIT}` are the unit, `{sign}` and `{count}` the second argument as a number, `{date}` is `date` or, where the first argument
/// has a time of day, `datetime`; `{1:template}` and the like are a format in the letters of that family, in quotes.
fn fill(template: &str, said: &Said, unit: Unit) -> Option<String> {
    let arguments = &said.arguments;
    // What is said several times is short, or calls inside each other would grow without end.
    let long = |argument: &String| argument.len() > LONGEST_REPEATED;
    if template.matches("{0}").count() > 2 && arguments.first().is_some_and(long) {
        return None;
    }
    let mut filled = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}')?;
        filled.push_str(&rest[..open]);
        let count = || number(arguments.get(1)?);
        let format = |style| Some(format!("'{}'", write(style, arguments.get(1)?)?));
        filled.push_str(&match &rest[open + 1..close] {
            "*" => arguments.join(", "),
            "|" => arguments.iter().map(|argument| operand(argument)).collect::<Vec<_>>().join(" || "),
            "unit" => unit.word().to_string(),
            "UNIT" => unit.word().to_uppercase(),
            "sign" => if count()? < 0 { "-" } else { "+" }.to_string(),
            "count" => count()?.unsigned_abs().to_string(),
            "date" => if said.timed || has_time(arguments.first()?) { "datetime" } else { "date" }.to_string(),
            "1:percent" => format(Style::Percent)?,
            "1:mysql" => format(Style::MySql)?,
            "1:template" => format(Style::Template)?,
            "1:java" => format(Style::Java)?,
            "1:sqlite" => format(Style::Sqlite)?,
            place => arguments.get(place.parse::<usize>().ok()?)?.clone(),
        });
        rest = &rest[close + 1..];
    }
    filled.push_str(rest);
    // Templates that say an argument several times make nested calls grow without end.
    (filled.len() <= LONGEST).then_some(filled)
}

/// Whether a date, by its words, has a time of day.
fn has_time(date: &str) -> bool {
    let lower = date.to_ascii_lowercase();
    ["now", "current_timestamp", "getdate", "sysdate", "datetime", "timestamp", "unix"]
        .iter()
        .any(|word| lower.starts_with(word))
        && !lower.starts_with("date(")
        || lower.starts_with('\'') && lower.contains(':')
}

/// A template as a person reads it.
fn shown(template: &str, unit: Unit) -> String {
    let said = Said::new(Phrase::Itself, &["x", "y", "z"]);
    let plain = template.replace("{sign}", "+").replace("{count}", "n").replace("{date}", "date");
    let plain = ["percent", "mysql", "template", "java", "sqlite"]
        .iter()
        .fold(plain, |text, family| text.replace(&format!("{{1:{family}}}"), "'…'"));
    fill(&plain, &said, unit).unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, POSTGRES, SQLITE, TRINO};

    fn said(dialect: &Dialect, phrase: Phrase, arguments: &[&str]) -> String {
        Said::new(phrase, arguments).in_words_of(dialect).unwrap().0
    }

    #[test]
    fn a_phrase_is_said_in_the_words_of_each() {
        assert_eq!(said(&SQLITE, Phrase::Plus(Unit::Day), &["d", "-7"]), "date(d, '-7 days')");
        assert_eq!(
            said(&SQLITE, Phrase::Plus(Unit::Week), &["CURRENT_TIMESTAMP", "2"]),
            "datetime(CURRENT_TIMESTAMP, '+14 days')"
        );
        assert_eq!(said(&SQLITE, Phrase::Plus(Unit::Month), &["d", "n - 1"]), "date(d, (n - 1) || ' months')");
        assert_eq!(said(&POSTGRES, Phrase::Plus(Unit::Quarter), &["d", "-1"]), "(d - 1 * INTERVAL '3 months')");
        assert_eq!(said(&MYSQL, Phrase::Plus(Unit::Quarter), &["d", "n"]), "(d + INTERVAL (n) QUARTER)");
        assert_eq!(said(&TRINO, Phrase::Truncate(Unit::Month), &["d"]), "date_trunc('month', d)");
        assert_eq!(said(&POSTGRES, Phrase::Format, &["d", "%Y-%m"]), "TO_CHAR(d, 'YYYY-MM')");
        assert_eq!(said(&SQLITE, Phrase::Concat, &["a", "b", "c"]), "(a || b || c)");
        // A name alone has words of its own; in a format it has none.
        assert!(said(&SQLITE, Phrase::Format, &["d", "%B"]).starts_with("CASE strftime('%m', d)"));
        assert!(Said::new(Phrase::Format, &["d", "%B %Y"]).in_words_of(&SQLITE).is_none());
        // Names of three letters are put together with the rest.
        assert_eq!(
            said(&SQLITE, Phrase::Format, &["d", "%d. %b %Y"]),
            "(strftime('%d. ', d) || substr('JanFebMarAprMayJunJulAugSepOctNovDec', strftime('%m', d) * 3 - 2, 3) || \
             strftime(' %Y', d))"
        );
        assert!(Said::new(Phrase::Format, &["d", "%b %B"]).in_words_of(&SQLITE).is_none());
    }

    #[test]
    fn an_argument_that_looks_like_a_place_stays_as_it_is() {
        assert_eq!(said(&SQLITE, Phrase::IfNull, &["'{1}'", "'{0}'"]), "ifnull('{1}', '{0}')");
    }
}
