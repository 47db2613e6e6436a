//! Parsing of argument text: string literals, INTERVAL literals, calls and sums.

use crate::schema::Type;
use crate::transpile::date_format::{DateFormatStyle, parse_format};
use crate::transpile::unit::Unit;

/// Returns the content of a string literal; `None` if it contains a quote.
pub(crate) fn string_literal(argument: &str) -> Option<&str> {
    let inner = argument.trim().strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then_some(inner)
}

/// Removes quotes around a word, if there are any.
pub(crate) fn unquote(argument: &str) -> &str {
    argument.trim().trim_matches(['\'', '"'])
}

/// Parses `INTERVAL '7 days'`, `INTERVAL '7' DAY` or `INTERVAL n DAY` into count and unit.
pub(crate) fn parse_interval(text: &str) -> Option<(String, Unit)> {
    let word = text.get(..8).filter(|word| word.eq_ignore_ascii_case("interval"))?;
    let rest = text[word.len()..].trim();
    (rest.len() < text.len() - word.len() || rest.starts_with(['\'', '('])).then_some(())?;
    let (count, unit) = match string_literal(rest) {
        Some(inside) => inside.trim().split_once(char::is_whitespace)?,
        None => {
            let (count, unit) = rest.rsplit_once(|c: char| c.is_whitespace() || c == ')' || c == '\'')?;
            (&rest[..rest.len() - unit.len()], if count.is_empty() { return None } else { unit })
        }
    };
    let unit = Unit::from_name(unit.trim())?;
    let count = count.trim();
    let count = string_literal(count).unwrap_or(count).trim();
    let plain = count.strip_prefix('+').unwrap_or(count);
    // A quoted count must be a number, not an expression or a second unit.
    let holds = parse_integer(plain).is_some() || !rest.starts_with('\'');
    (holds && !plain.is_empty()).then(|| (plain.to_string(), unit))
}

/// Returns the argument if it may be a type name: `DATE`, `VARCHAR(10)`.
pub(crate) fn as_type_name(argument: &str) -> Option<&str> {
    let word = argument.split('(').next()?.trim();
    (Type::from_name(word) != Type::Any).then_some(argument)
}

/// Parses a quoted format with at least one date specifier; a single letter is ambiguous.
pub(crate) fn parse_quoted_format(style: DateFormatStyle, argument: &str) -> Option<String> {
    let text = string_literal(argument)?;
    parse_format(style, text).filter(|format| text.len() > 1 && format.contains('%'))
}

/// Splits a text that consists of a single call into name and arguments.
pub(crate) fn as_call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inside) = text.trim().strip_suffix(')')?.split_once('(')?;
    let name = name.trim();
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(())?;
    // The last parenthesis must close the first one.
    is_balanced(inside).then_some(())?;
    let mut commas: Vec<usize> = top_level_chars(inside).filter(|&(_, c)| c == ',').map(|(at, _)| at).collect();
    commas.push(inside.len());
    let mut from = 0;
    let arguments = commas.into_iter().map(|comma| {
        let argument = inside[from..comma].trim();
        from = comma + 1;
        argument
    });
    Some((name, arguments.collect()))
}

/// Adds parentheses to an operand unless it is a name, a literal or a call.
pub(crate) fn parenthesize_operand(text: &str) -> String {
    let text = text.trim();
    let word = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    if word || string_literal(text).is_some() || as_call(text).is_some() {
        text.to_string()
    } else {
        format!("({text})")
    }
}

/// Splits a sum at `+` and `-` outside parentheses and quotes into signed terms.
pub(crate) fn split_terms(text: &str) -> Vec<(char, &str)> {
    let mut signs: Vec<(usize, char)> =
        top_level_chars(text).filter(|&(at, c)| at > 0 && matches!(c, '+' | '-')).collect();
    signs.push((text.len(), '+'));
    let (mut terms, mut from, mut sign) = (Vec::new(), 0, '+');
    for (at, next) in signs {
        terms.push((sign, text[from..at].trim()));
        (from, sign) = (at + 1, next);
    }
    terms
}

/// Removes parentheses that enclose the whole text.
pub(crate) fn strip_parentheses(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) if is_balanced(inner) => strip_parentheses(inner),
        _ => text,
    }
}

/// Returns whether every closing parenthesis has an opening one before it.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0i32;
    text.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    })
}

/// Returns the characters outside parentheses and quotes with their byte offsets.
fn top_level_chars(text: &str) -> impl Iterator<Item = (usize, char)> {
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

pub(crate) fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_all_interval_notations() {
        let read = |text| parse_interval(text).map(|(count, unit)| (count, unit.as_str()));
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
