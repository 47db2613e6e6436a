//! Canonical calls and their rendering in each dialect.

use super::date_format::{DateFormatStyle, render_format};
use super::function::{CanonicalFunction, STANDARD_TEMPLATES};
use super::parse_call::parenthesize_operand;
use super::unit::Unit;
use crate::dialect::Dialect;
use crate::transpile::arguments::parse_integer;

/// Call of a [`CanonicalFunction`] with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CanonicalCall {
    pub(crate) function: CanonicalFunction,
    /// Arguments in the order of the canonical function. A format is in
    /// [`DateFormatStyle::Percent`].
    pub(crate) arguments: Vec<String>,
    /// `true` if the first argument has a time of day that its text does not show.
    pub(crate) has_time_of_day: bool,
}

/// Casts a string literal to a date or timestamp, for dialects that would not infer the type.
pub(crate) fn cast_to_date(argument: &str) -> String {
    let kind = if argument.contains(':') { "TIMESTAMP" } else { "DATE" };
    format!("CAST({argument} AS {kind})")
}

impl CanonicalCall {
    pub(crate) fn new(function: CanonicalFunction, arguments: &[&str]) -> CanonicalCall {
        CanonicalCall {
            function,
            arguments: arguments.iter().map(|&argument| argument.to_string()).collect(),
            has_time_of_day: false,
        }
    }

    /// Expands a template that does not depend on a unit.
    pub(crate) fn expand(&self, template: &str) -> Option<String> {
        expand_template(template, self, Unit::Any)
    }

    /// Renders a template with sample arguments for messages.
    pub(crate) fn display_template(template: &str) -> String {
        display_template(template, Unit::Any)
    }

    /// Renders the call in a dialect, followed by the template with sample arguments for messages.
    ///
    /// Returns `None` if the dialect cannot express the call.
    pub(crate) fn render(&self, dialect: &Dialect) -> Option<(String, String)> {
        let dates = self.function.date_argument_count();
        if dialect.strict_types && self.arguments.iter().take(dates).any(|a| a.starts_with('\'')) {
            let mut with_dates = self.clone();
            let texts = with_dates.arguments.iter_mut().take(dates).filter(|a| a.starts_with('\''));
            texts.for_each(|argument| *argument = cast_to_date(argument));
            return with_dates.render(dialect);
        }
        let template_of = |function: CanonicalFunction| {
            let found = dialect.function_templates.iter().chain(STANDARD_TEMPLATES).find(|(p, _)| *p == function);
            found.map(|(_, template)| *template).filter(|t| dialect.concat.pipes || !t.contains("{|}"))
        };
        let (unit, general): (_, fn(Unit) -> CanonicalFunction) = match self.function {
            CanonicalFunction::DateTrunc(unit) => (unit, CanonicalFunction::DateTrunc),
            CanonicalFunction::DateDiffBoundaries(unit) => (unit, CanonicalFunction::DateDiffBoundaries),
            CanonicalFunction::DateDiffElapsed(unit) => (unit, CanonicalFunction::DateDiffElapsed),
            CanonicalFunction::DateAdd(unit) if parse_integer(self.arguments.get(1)?).is_some() => {
                (unit, CanonicalFunction::DateAdd)
            }
            CanonicalFunction::DateAdd(unit) => (unit, CanonicalFunction::DateAddExpr),
            // A format of only a day or month name has its own template in dialects whose formats
            // have no names; elsewhere the name is rendered as a format.
            CanonicalFunction::FormatDate
                if day_or_month_name(self.arguments.get(1)?).is_some_and(|name| template_of(name).is_some()) =>
            {
                return CanonicalCall::new(day_or_month_name(self.arguments.get(1)?)?, &[self.arguments.first()?])
                    .render(dialect);
            }
            CanonicalFunction::FormatDate
                if dialect.concat.pipes
                    && template_of(CanonicalFunction::MonthNameShort).is_some()
                    && has_short_names(self.arguments.get(1)?) =>
            {
                let text = render_format_parts(self.arguments.first()?, self.arguments.get(1)?, dialect)?;
                return Some((text.clone(), text));
            }
            CanonicalFunction::DayName | CanonicalFunction::MonthName if template_of(self.function).is_none() => {
                let format = if self.function == CanonicalFunction::DayName { "%A" } else { "%B" };
                return CanonicalCall::new(CanonicalFunction::FormatDate, &[self.arguments.first()?, format])
                    .render(dialect);
            }
            CanonicalFunction::ParseDate
                if has_time_fields(self.arguments.get(1)?)
                    && template_of(CanonicalFunction::ParseTimestamp).is_some() =>
            {
                return CanonicalCall { function: CanonicalFunction::ParseTimestamp, ..self.clone() }.render(dialect);
            }
            // Text in ISO format needs no format argument.
            CanonicalFunction::ParseDate if template_of(CanonicalFunction::ParseDate).is_none() => {
                let function = match self.arguments.get(1)?.as_str() {
                    "%Y-%m-%d" => CanonicalFunction::ToDate,
                    "%Y-%m-%d %H:%M:%S" => CanonicalFunction::ToTimestamp,
                    format => {
                        let day = format!("'{}'", parse_day(self.arguments.first()?, format)?);
                        return CanonicalCall::new(CanonicalFunction::ToDate, &[&day]).render(dialect);
                    }
                };
                return CanonicalCall::new(function, &[self.arguments.first()?]).render(dialect);
            }
            other => {
                let template = template_of(other)?;
                let text = expand_template(template, self, Unit::Any)?;
                let display = if other == CanonicalFunction::Verbatim {
                    text.clone()
                } else {
                    display_template(template, Unit::Any)
                };
                return Some((text, display));
            }
        };
        if let Some(template) = template_of(general(unit)).or_else(|| template_of(general(Unit::Any))) {
            return Some((expand_template(template, self, unit)?, display_template(template, unit)));
        }
        let (smaller, times) = match (self.function, unit) {
            (CanonicalFunction::DateAdd(_), Unit::Week) => (Unit::Day, 7),
            (CanonicalFunction::DateAdd(_), Unit::Quarter) => (Unit::Month, 3),
            _ => return None,
        };
        let (date, count) = (self.arguments.first()?, self.arguments.get(1)?);
        let more = match parse_integer(count) {
            Some(count) => count.checked_mul(times)?.to_string(),
            None => format!("({count}) * {times}"),
        };
        CanonicalCall {
            has_time_of_day: self.has_time_of_day,
            ..CanonicalCall::new(CanonicalFunction::DateAdd(smaller), &[date, &more])
        }
        .render(dialect)
    }
}

/// Converts a quoted date in a format of year, month and day to ISO form: `2020-12-31`.
pub(crate) fn parse_day(text: &str, format: &str) -> Option<String> {
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

/// Returns whether a format contains a time of day.
pub(crate) fn has_time_fields(format: &str) -> bool {
    format.contains("%H") || format.contains("%I")
}

/// Returns whether a format contains an abbreviated day or month name.
pub(crate) fn has_short_names(format: &str) -> bool {
    format.contains("%b") || format.contains("%a")
}

/// Formats a date by concatenating its parts, for dialects whose formats have no names.
pub(crate) fn render_format_parts(date: &str, format: &str, dialect: &Dialect) -> Option<String> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), format);
    while !rest.is_empty() {
        let length = if rest.starts_with('%') { 2 } else { rest.chars().next()?.len_utf8() };
        let name = match rest.get(..length)? {
            "%b" => Some(CanonicalFunction::MonthNameShort),
            "%a" => Some(CanonicalFunction::DayNameShort),
            other => {
                plain.push_str(other);
                None
            }
        };
        rest = &rest[length..];
        if !plain.is_empty() && (name.is_some() || rest.is_empty()) {
            let dated = plain
                .contains('%')
                .then(|| CanonicalCall::new(CanonicalFunction::FormatDate, &[date, &plain]).render(dialect));
            pieces.push(dated.map_or_else(|| Some(format!("'{plain}'")), |rendered| Some(rendered?.0))?);
            plain.clear();
        }
        if let Some(name) = name {
            pieces.push(CanonicalCall::new(name, &[date]).render(dialect)?.0);
        }
    }
    Some(if pieces.len() == 1 { pieces.remove(0) } else { format!("({})", pieces.join(" || ")) })
}

/// Returns the canonical function of a format that consists of a single name.
pub(crate) fn day_or_month_name(format: &str) -> Option<CanonicalFunction> {
    match format {
        "%A" => Some(CanonicalFunction::DayName),
        "%B" => Some(CanonicalFunction::MonthName),
        _ => None,
    }
}

/// Maximum length of a rendered call in bytes; longer ones result only from excessive nesting.
pub(crate) const MAX_RENDERED_BYTES: usize = 4_000;

/// Maximum length in bytes of an argument that a template repeats three times or more.
pub(crate) const MAX_REPEATED_ARGUMENT_BYTES: usize = 200;

/// Expands a template; `None` if an argument is missing or does not fit, or if the result is too
/// long.
///
/// - `{0}`: the first argument; `{*}`: all arguments separated by commas; `{|}`: all of them joined
///   with `||`
/// - `{unit}` and `{UNIT}`: the unit
/// - `{sign}` and `{count}`: the second argument as a number
/// - `{date}`: `date`, or `datetime` if the first argument has a time of day
/// - `{1:template}` and the like: the second argument as a quoted format in that
///   [`DateFormatStyle`]
pub(crate) fn expand_template(template: &str, call: &CanonicalCall, unit: Unit) -> Option<String> {
    let arguments = &call.arguments;
    // Repeated arguments must be short, or nested calls would grow without bound.
    let long = |argument: &String| argument.len() > MAX_REPEATED_ARGUMENT_BYTES;
    if template.matches("{0}").count() > 2 && arguments.first().is_some_and(long) {
        return None;
    }
    let mut filled = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}')?;
        filled.push_str(&rest[..open]);
        let count = || parse_integer(arguments.get(1)?);
        let format = |style| Some(format!("'{}'", render_format(style, arguments.get(1)?)?));
        filled.push_str(&match &rest[open + 1..close] {
            "*" => arguments.join(", "),
            "|" => arguments.iter().map(|argument| parenthesize_operand(argument)).collect::<Vec<_>>().join(" || "),
            "unit" => unit.as_str().to_string(),
            "UNIT" => unit.as_str().to_uppercase(),
            "sign" => if count()? < 0 { "-" } else { "+" }.to_string(),
            "count" => count()?.unsigned_abs().to_string(),
            "date" => if call.has_time_of_day || has_time_of_day(arguments.first()?) { "datetime" } else { "date" }
                .to_string(),
            "1:percent" => format(DateFormatStyle::Percent)?,
            "1:mysql" => format(DateFormatStyle::MySql)?,
            "1:template" => format(DateFormatStyle::Template)?,
            "1:java" => format(DateFormatStyle::Java)?,
            "1:sqlite" => format(DateFormatStyle::Sqlite)?,
            place => arguments.get(place.parse::<usize>().ok()?)?.clone(),
        });
        rest = &rest[close + 1..];
    }
    filled.push_str(rest);
    // Templates that repeat an argument make nested calls grow without bound.
    (filled.len() <= MAX_RENDERED_BYTES).then_some(filled)
}

/// Returns whether the text of a date expression implies a time of day.
pub(crate) fn has_time_of_day(date: &str) -> bool {
    let lower = date.to_ascii_lowercase();
    ["now", "current_timestamp", "getdate", "sysdate", "datetime", "timestamp", "unix"]
        .iter()
        .any(|word| lower.starts_with(word))
        && !lower.starts_with("date(")
        || lower.starts_with('\'') && lower.contains(':')
}

/// Renders a template with sample arguments for messages.
pub(crate) fn display_template(template: &str, unit: Unit) -> String {
    let call = CanonicalCall::new(CanonicalFunction::Identity, &["x", "y", "z"]);
    let plain = template.replace("{sign}", "+").replace("{count}", "n").replace("{date}", "date");
    let plain = ["percent", "mysql", "template", "java", "sqlite"]
        .iter()
        .fold(plain, |text, family| text.replace(&format!("{{1:{family}}}"), "'…'"));
    expand_template(&plain, &call, unit).unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, POSTGRES, SQLITE, TRINO};

    fn render_call(dialect: &Dialect, function: CanonicalFunction, arguments: &[&str]) -> String {
        CanonicalCall::new(function, arguments).render(dialect).unwrap().0
    }

    #[test]
    fn renders_canonical_calls_in_each_dialect() {
        assert_eq!(render_call(&SQLITE, CanonicalFunction::DateAdd(Unit::Day), &["d", "-7"]), "date(d, '-7 days')");
        assert_eq!(
            render_call(&SQLITE, CanonicalFunction::DateAdd(Unit::Week), &["CURRENT_TIMESTAMP", "2"]),
            "datetime(CURRENT_TIMESTAMP, '+14 days')"
        );
        assert_eq!(
            render_call(&SQLITE, CanonicalFunction::DateAdd(Unit::Month), &["d", "n - 1"]),
            "date(d, (n - 1) || ' months')"
        );
        assert_eq!(
            render_call(&POSTGRES, CanonicalFunction::DateAdd(Unit::Quarter), &["d", "-1"]),
            "(d - 1 * INTERVAL '3 months')"
        );
        assert_eq!(
            render_call(&MYSQL, CanonicalFunction::DateAdd(Unit::Quarter), &["d", "n"]),
            "(d + INTERVAL (n) QUARTER)"
        );
        assert_eq!(render_call(&TRINO, CanonicalFunction::DateTrunc(Unit::Month), &["d"]), "date_trunc('month', d)");
        assert_eq!(render_call(&POSTGRES, CanonicalFunction::FormatDate, &["d", "%Y-%m"]), "TO_CHAR(d, 'YYYY-MM')");
        assert_eq!(render_call(&SQLITE, CanonicalFunction::Concat, &["a", "b", "c"]), "(a || b || c)");
        // A name alone has its own template; within a format it cannot be rendered.
        assert!(
            render_call(&SQLITE, CanonicalFunction::FormatDate, &["d", "%B"]).starts_with("CASE strftime('%m', d)")
        );
        assert!(CanonicalCall::new(CanonicalFunction::FormatDate, &["d", "%B %Y"]).render(&SQLITE).is_none());
        // Abbreviated names are concatenated with the rest of the format.
        assert_eq!(
            render_call(&SQLITE, CanonicalFunction::FormatDate, &["d", "%d. %b %Y"]),
            "(strftime('%d. ', d) || substr('JanFebMarAprMayJunJulAugSepOctNovDec', strftime('%m', d) * 3 - 2, 3) || \
             strftime(' %Y', d))"
        );
        assert!(CanonicalCall::new(CanonicalFunction::FormatDate, &["d", "%b %B"]).render(&SQLITE).is_none());
    }

    #[test]
    fn keeps_placeholder_like_arguments_unchanged() {
        assert_eq!(render_call(&SQLITE, CanonicalFunction::IfNull, &["'{1}'", "'{0}'"]), "ifnull('{1}', '{0}')");
    }
}
