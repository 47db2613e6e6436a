//! Arguments as they are written: what is quoted, an INTERVAL, a call, a sum.

use crate::dialect::date_format::{Style, read};
use crate::dialect::phrase::number;
use crate::dialect::unit::Unit;
use crate::schema::Type;

/// What is between quotes; `None` if there is a quote in it.
pub(super) fn quoted(argument: &str) -> Option<&str> {
    let inner = argument.trim().strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then_some(inner)
}

/// A word with or without quotes.
pub(super) fn bare(argument: &str) -> &str {
    argument.trim().trim_matches(['\'', '"'])
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

/// A word that may be a type: `DATE`, `VARCHAR(10)`.
pub(super) fn type_name(argument: &str) -> Option<&str> {
    let word = argument.split('(').next()?.trim();
    (Type::from_name(word) != Type::Any).then_some(argument)
}

/// A format in quotes that has a letter for a date in it; one letter alone may mean anything.
pub(super) fn format(style: Style, argument: &str) -> Option<String> {
    let text = quoted(argument)?;
    read(style, text).filter(|format| text.len() > 1 && format.contains('%'))
}

/// The name and the arguments of a text that is one call and nothing else.
pub(super) fn as_call(text: &str) -> Option<(&str, Vec<&str>)> {
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

/// A value that stands beside an operator: in parentheses unless it is a name, a literal or a call.
pub(crate) fn operand(text: &str) -> String {
    let text = text.trim();
    let word = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    if word || quoted(text).is_some() || as_call(text).is_some() { text.to_string() } else { format!("({text})") }
}

/// What is added up outside of parentheses and quotes, each with its sign.
pub(super) fn terms(text: &str) -> Vec<(char, &str)> {
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
pub(super) fn without_parentheses(text: &str) -> &str {
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

#[cfg(test)]
mod tests {
    use super::*;

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
