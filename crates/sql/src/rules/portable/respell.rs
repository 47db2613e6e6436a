//! Syntax of other dialects, spelled in the way of this one.

use sqlparser::ast::{BinaryOperator, Expr, Spanned};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::meaning::interval;
use crate::dialect::phrase::{Said, number};
use crate::dialect::{IntervalSyntax, Phrase, Unit};
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend;
use crate::rules::Subject;
use crate::rules::portable::moments::{is_subtracted, kind};
use crate::rules::portable::rephrase::{conversion, interval_end};
use crate::rules::types;
use crate::schema::Type;

/// `x::type` is `CAST(x AS type)`, or what the dialect says for that type. The span is that of `x`.
pub(super) fn double_colon(operand: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let colon = words.iter().position(|(span, t)| *t == Token::DoubleColon && span.start >= operand.end)?;
    let start = operand_start(&words, colon.checked_sub(1)?, subject)?;
    let mut end = colon + 1;
    let Token::Word(first) = &words.get(end)?.1 else { return None };
    let mut name = first.value.clone();
    // `double precision`, `timestamp with time zone`
    let more = ["precision", "varying", "with", "without", "time", "zone"];
    while let Some((_, Token::Word(word))) = words.get(end + 1)
        && more.contains(&word.value.to_lowercase().as_str())
    {
        name = format!("{name} {}", word.value);
        end += 1;
    }
    if words.get(end + 1).is_some_and(|(_, t)| *t == Token::LParen) {
        let close = (end + 1..words.len()).find(|&i| words[i].1 == Token::RParen)?;
        name.push_str(subject.query.text(words[end + 1].0.join(words[close].0)));
        end = close;
    }
    if words.get(end + 1).is_some_and(|(_, t)| *t == Token::LBracket) {
        return None;
    }
    let span = words[start].0.join(words[end].0);
    let value = subject.query.text(words[start].0.join(words[colon - 1].0));
    let phrase = conversion(&name);
    if phrase.is_some_and(Phrase::gives_date) && is_subtracted(span, subject) {
        return days_between(span, value, subject);
    }
    let dialect = subject.context.dialect;
    // A span of time is converted nowhere else.
    if name.eq_ignore_ascii_case("interval") && words[colon - 1].0 == words[start].0 && value.starts_with('\'') {
        let why = "it is the same span of time as a literal";
        return Some(mend::replace(span, format!("INTERVAL {value}"), Applicability::Safe, why));
    }
    let exact = exact_conversion(&name, kind(words[start].0.join(words[colon - 1].0), subject), value);
    let said = exact.and_then(|said| said.in_words_of(dialect));
    let said = said.or_else(|| phrase.and_then(|p| Said::new(p, &[value]).in_words_of(dialect)));
    let text = said.map_or_else(|| format!("CAST({value} AS {name})"), |(text, _)| text);
    let why = format!("`x::{name}` converts a value to another type, which the dialect says in its own words");
    Some(mend::replace(span, text, Applicability::Likely, why))
}

/// The days between two dates, one of which is a value with `::date` behind it.
fn days_between(cast: Span, value: &str, subject: &Subject<'_>) -> Option<Fix> {
    let days = subject.facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Minus);
    let (left, right) = days
        .filter(|o| o.left.kind == Type::Date && o.right.kind == Type::Date)
        .map(|o| (types::span_of(subject.query, o.left_node), types::span_of(subject.query, o.right_node)))
        .find(|(left, right)| left.start == cast.start || right.start == cast.start)?;
    // The parser's place of a cast may be that of its value alone.
    let text = |side: Span| if side.start == cast.start { value } else { subject.query.text(side) };
    let dialect = subject.context.dialect;
    let said = Said::new(Phrase::Between(Unit::Day), &[text(left), text(right)]);
    let (text, template) = said.in_words_of(dialect)?;
    let why = format!("{} counts the days between two dates as `{template}`", dialect.name);
    Some(mend::replace(left.join(right).join(cast), text, Applicability::Likely, why))
}

/// What `::` does that CAST does not do everywhere: round a number, and cut a text.
fn exact_conversion(type_name: &str, from: Type, value: &str) -> Option<Said> {
    let lower = type_name.to_ascii_lowercase();
    let (word, sizes) = lower.split_once('(').unwrap_or((&lower, ""));
    let mut sizes = sizes.trim_end_matches(')').split(',').map(|size| number(size.trim()));
    match word.trim() {
        // A number of so many digits has none behind the point, one of any has a point even where all are whole.
        "decimal" | "numeric" => match (sizes.next().flatten(), sizes.next()) {
            (Some(_), digits) => {
                let digits = digits.map_or(Some(0), |digits| digits)?.to_string();
                Some(Said::new(Phrase::RoundedTo, &[value, &digits]))
            }
            (None, _) => Some(Said::new(Phrase::ToNumber, &[value])),
        },
        "varchar" | "character varying" => {
            let letters = sizes.next().flatten()?.to_string();
            Some(Said::new(Phrase::CutText, &[value, &letters]))
        }
        _ if Type::from_name(type_name) == Type::Integer
            && !matches!(from, Type::Integer | Type::Text | Type::Boolean) =>
        {
            Some(Said::new(Phrase::Rounded, &[value]))
        }
        _ => None,
    }
}

/// Where the value that ends at a word begins: a name with its qualifier, a literal, or parentheses with what calls them.
pub(super) fn operand_start(words: &[(Span, Token)], last: usize, subject: &Subject<'_>) -> Option<usize> {
    let mut start = last;
    if words[last].1 == Token::RParen {
        let mut depth = 0usize;
        start = (0..=last).rev().find(|&i| {
            match words[i].1 {
                Token::RParen => depth += 1,
                Token::LParen => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        let Some(before) = start.checked_sub(1) else { return Some(start) };
        let called = subject.facts.calls.iter().any(|c| subject.query.span(c.place).start == words[before].0.start);
        let cast = subject.query.text(words[before].0).eq_ignore_ascii_case("cast");
        return Some(if called || cast { before } else { start });
    }
    if !matches!(words[last].1, Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_)) {
        return None;
    }
    while start >= 2 && words[start - 1].1 == Token::Period && matches!(words[start - 2].1, Token::Word(_)) {
        start -= 2;
    }
    Some(start)
}

/// `TRY_CAST(x AS type)` without the trying.
pub(super) fn try_cast(value: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let (word, _) = words.into_iter().rfind(|(span, _)| {
        let word = subject.query.text(*span);
        span.start <= value.start && ["try_cast", "safe_cast"].iter().any(|cast| word.eq_ignore_ascii_case(cast))
    })?;
    let why = "the dialect converts with CAST, which may fail where TRY_CAST gives NULL";
    Some(mend::replace(word, "CAST", Applicability::Likely, why))
}

/// `x ILIKE y` is LIKE where that ignores case anyway, else LIKE between lower-case texts.
pub(super) fn ilike(place: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let (word, _) =
        words.into_iter().find(|(span, t)| span.start >= place.start && mend::keyword(t) == Some(Keyword::ILIKE))?;
    let like = Edit { span: word, text: "LIKE".into() };
    if subject.context.dialect.like_ignores_case {
        let why = "LIKE does not tell upper from lower case here";
        return Some(Fix { edits: vec![like], applicability: Applicability::Likely, why: why.into(), tied: false });
    }
    let operation = subject.facts.operations.iter().find(|o| {
        let (left, right) = (subject.query.span(o.left_node.span()), subject.query.span(o.right_node.span()));
        *o.operator == BinaryOperator::PGLikeMatch
            && left.end <= word.start
            && word.end <= right.start
            && left.start >= place.start
    })?;
    let plain = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
    if !plain(operation.left_node) || !plain(operation.right_node) {
        return None;
    }
    let lower = |e: &Expr| {
        let span = subject.query.span(e.span());
        Edit { span, text: format!("LOWER({})", subject.query.text(span)) }
    };
    let edits = vec![lower(operation.left_node), like, lower(operation.right_node)];
    Some(Fix {
        tied: false,
        edits,
        applicability: Applicability::Safe,
        why: "texts in lower case differ in nothing but case".into(),
    })
}

/// `DATE '2024-01-01'` is the plain literal.
pub(super) fn typed_literal(place: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let near = |span: Span| span.start <= place.end && place.start <= span.end;
    let at = (0..words.len().saturating_sub(1)).find(|&i| {
        matches!(words[i].1, Token::Word(_))
            && matches!(words[i + 1].1, Token::SingleQuotedString(_))
            && near(words[i].0.join(words[i + 1].0))
    })?;
    if is_subtracted(words[at].0.join(words[at + 1].0), subject) {
        return None;
    }
    let gone = Span::new(words[at].0.start, words[at + 1].0.start);
    Some(mend::replace(gone, "", Applicability::Likely, "dates are plain text here"))
}

/// `SUBSTRING(x FROM n FOR m)` and `POSITION(x IN y)` with commas between their arguments.
pub(super) fn with_commas(start: usize, word: &str, subject: &Subject<'_>) -> Option<Fix> {
    let (whole, arguments) = mend::call(subject, Span::new(start, start + word.len()))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = subject.query.text(*argument).trim();
    let upper = text.to_ascii_uppercase();
    let (phrase, parts) = match word {
        "SUBSTRING" => {
            let (from, length) = (upper.find(" FROM ")?, upper.find(" FOR ")?);
            let parts = vec![text[..from].trim(), text.get(from + 6..length)?.trim(), text[length + 5..].trim()];
            (Phrase::Substring, parts)
        }
        _ => {
            let inside = upper.find(" IN ")?;
            (Phrase::Position, vec![text[..inside].trim(), text[inside + 4..].trim()])
        }
    };
    let (text, template) = Said::new(phrase, &parts).in_words_of(subject.context.dialect)?;
    let why = format!("{} says it as `{template}`", subject.context.dialect.name);
    Some(mend::replace(whole, text, Applicability::Likely, why))
}

/// The parentheses around a query, and whether it is a plain SELECT: not ordered, not limited, not made of several.
fn around(query: Span, subject: &Subject<'_>) -> Option<(Span, Span, bool)> {
    const MORE: [Keyword; 8] = [
        Keyword::WITH,
        Keyword::UNION,
        Keyword::INTERSECT,
        Keyword::EXCEPT,
        Keyword::ORDER,
        Keyword::LIMIT,
        Keyword::OFFSET,
        Keyword::FETCH,
    ];
    let words = mend::words(subject);
    let open = words.iter().rposition(|(span, token)| *token == Token::LParen && span.end <= query.start)?;
    // The place of VALUES is that of its rows, which have parentheses of their own.
    mend::keyword(&words.get(open + 1)?.1).filter(|word| matches!(word, Keyword::SELECT | Keyword::WITH))?;
    let (mut depth, mut plain) = (0usize, true);
    for (span, token) in &words[open..] {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => plain &= depth > 1 || mend::keyword(token).is_none_or(|word| !MORE.contains(&word)),
        }
        if depth == 0 {
            return Some((words[open].0, *span, plain));
        }
    }
    None
}

/// A query with the parentheses around it.
pub(super) fn in_parentheses(query: Span, subject: &Subject<'_>) -> Span {
    around(query, subject).map_or(query, |(open, close, _)| open.join(close))
}

/// `(SELECT …) UNION (SELECT …)`: the parentheses go where they hold a plain SELECT, else they become a table.
pub(super) fn without_parentheses(query: Span, subject: &Subject<'_>) -> Option<Fix> {
    let (open, close, plain) = around(query, subject)?;
    let edits = match plain {
        true => [open, close].map(|span| Edit { span, text: String::new() }).into(),
        false => vec![Edit { span: Span::new(open.start, open.start), text: "SELECT * FROM ".into() }],
    };
    let why = "queries beside UNION stand without parentheses here, and their rows are the same".into();
    Some(Fix { edits, applicability: Applicability::Safe, why, tied: false })
}

/// Text that is joined with another sign is joined with that of the dialect.
pub(super) fn joined_text(span: Span, sign: &Token, subject: &Subject<'_>) -> Option<Fix> {
    let mut depth = 0usize;
    let mut signs: Vec<Span> = Vec::new();
    for (at, token) in mend::words(subject).into_iter().filter(|(s, _)| span.start <= s.start && s.end <= span.end) {
        match &token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            t if depth == 0 && t == sign => signs.push(at),
            Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat if depth == 0 => {
                return None;
            }
            _ => {}
        }
    }
    if depth > 0 || signs.is_empty() {
        return None;
    }
    let pipes = subject.context.dialect.concat.pipes;
    let text = if pipes { "||" } else { "," };
    let mut edits: Vec<Edit> = signs.into_iter().map(|span| Edit { span, text: text.into() }).collect();
    if !pipes {
        edits.insert(0, Edit { span: Span::new(span.start, span.start), text: "CONCAT(".into() });
        edits.push(Edit { span: Span::new(span.end, span.end), text: ")".into() });
    }
    let why = format!("{} joins text with {}", subject.context.dialect.name, if pipes { "||" } else { "CONCAT" });
    Some(Fix { edits, applicability: Applicability::Likely, why, tied: false })
}

/// `CURRENT_DATE()` without the parentheses.
pub(super) fn without_call(name: Span, subject: &Subject<'_>) -> Option<Fix> {
    let (whole, arguments) = mend::call(subject, name)?;
    arguments.is_empty().then_some(())?;
    let why = "it is a word here, not a function";
    Some(mend::replace(Span::new(name.end, whole.end), "", Applicability::Safe, why))
}

/// Spans of time that the dialect writes in another way: where they stand, how they are written, and the fix.
pub(super) fn intervals(subject: &Subject<'_>) -> Vec<(Span, String, Fix)> {
    let syntax = subject.context.dialect.interval;
    let all = syntax.words && syntax.bare && syntax.quoted;
    let none = !syntax.words && !syntax.bare && !syntax.quoted;
    if all || none || !has_word(&subject.query.sql, "interval") || !mend::worth_mending(subject, &[]) {
        return Vec::new();
    }
    let words = mend::words(subject);
    let mut found = Vec::new();
    for (at, (span, token)) in words.iter().enumerate() {
        let is_word = matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("interval"));
        let Some(end) = is_word.then(|| interval_end(&words, at)).flatten() else { continue };
        let span = span.join(words[end].0);
        let text = subject.query.text(span);
        let Some((count, unit)) = interval(text) else { continue };
        let quotes = matches!(words.get(at + 1), Some((_, Token::SingleQuotedString(_))));
        let written = match (quotes, end == at + 1) {
            (true, true) => syntax.words,
            (true, false) => syntax.quoted,
            (false, _) => syntax.bare,
        };
        let plain = number(&count).is_some();
        // A text with a unit in it and one behind it is neither.
        if quotes
            && end > at + 1
            && matches!(&words[at + 1].1, Token::SingleQuotedString(text) if text.trim().contains(' '))
        {
            continue;
        }
        // Quarters, and where only quotes are read weeks, are no units of their own.
        let smaller = match unit {
            Unit::Quarter if !syntax.bare => Some((3, Unit::Month)),
            Unit::Week if !syntax.bare && !syntax.words => Some((7, Unit::Day)),
            _ => None,
        };
        let (count, unit) = match smaller {
            Some((times, smaller)) => {
                let Some(more) = number(&count).and_then(|count| count.checked_mul(times)) else { continue };
                (more.to_string(), smaller)
            }
            None => (count, unit),
        };
        let right = match syntax {
            _ if written => continue,
            IntervalSyntax { bare: true, .. } => format!("INTERVAL {count} {}", unit.word().to_uppercase()),
            _ if !plain => continue,
            IntervalSyntax { words: true, .. } => format!("INTERVAL '{count} {}'", unit.word()),
            _ => format!("INTERVAL '{count}' {}", unit.word().to_uppercase()),
        };
        let fix =
            mend::replace(span, right, Applicability::Safe, "it is the same span of time in the words of the dialect");
        found.push((span, text.to_string(), fix));
    }
    found
}

fn has_word(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}
