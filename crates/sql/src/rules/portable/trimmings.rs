//! Words that other dialects put beside a table, a text or a query, and that change nothing here, or are another word.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::phrase::{Said, number};
use crate::dialect::{Feature, Phrase};
use crate::finding::{Applicability, Fix, Span};
use crate::mend;
use crate::rules::Subject;
use crate::schema::{Column, Type};

/// SQL Server's words about how rows of a table are locked and read.
const TABLE_HINTS: &[&str] =
    &["nolock", "readuncommitted", "readcommitted", "readpast", "rowlock", "paglock", "tablock"];
/// Its words about how a query is planned.
const QUERY_HINTS: &[&str] =
    &["recompile", "maxdop", "hash", "loop", "merge", "fast", "force", "optimize", "maxrecursion"];

/// So many may be mended in one query.
const MOST: usize = 40;

/// What the dialect lacks of them: where it stands, what it is, and the fix.
pub(super) fn trimmings(subject: &Subject<'_>) -> Vec<(Span, Feature, Fix)> {
    let lacks = subject.context.dialect.lacks;
    const ALL: &[Feature] = &[
        Feature::NationalLiteral,
        Feature::NullSafeEqual,
        Feature::LimitAll,
        Feature::OffsetRows,
        Feature::TableHint,
        Feature::QueryHint,
    ];
    if !ALL.iter().any(|feature| lacks.contains(feature)) || !mend::worth_mending(subject, &[]) {
        return Vec::new();
    }
    let words = mend::words(subject);
    let found = (0..words.len()).filter_map(|at| trimming(&words, at));
    let mut found: Vec<_> = found.filter(|(_, feature, _)| lacks.contains(feature)).collect();
    // A separator that the parser could read is told of with the call.
    if subject.query.failure.is_some() && lacks.contains(&Feature::Separator) {
        found.extend((0..words.len()).filter_map(|at| separator_at(&words, at)));
    }
    if subject.query.failure.is_some() {
        let divided = (1..words.len()).filter_map(|at| divided(&words, at, subject));
        found.extend(divided.filter(|(_, feature, _)| lacks.contains(feature)));
    }
    // Of more than that no person is the author, and each is mended on its own.
    if found.len() > MOST { Vec::new() } else { found }
}

fn trimming(words: &[(Span, Token)], at: usize) -> Option<(Span, Feature, Fix)> {
    let (span, token) = &words[at];
    let is = |at: usize, keyword| words.get(at).is_some_and(|(_, token)| mend::keyword(token) == Some(keyword));
    // What goes takes the space before it along.
    let gone = |first: usize, last: usize, feature, why: &str| {
        let before = first.checked_sub(1).map_or(words[first].0.start, |before| words[before].0.end);
        let place = words[first].0.join(words[last].0);
        let fix = mend::replace(Span::new(before, place.end), "", Applicability::Safe, why);
        Some((place, feature, fix))
    };
    match token {
        Token::NationalStringLiteral(_) => {
            let why = "all text is Unicode here, and needs no mark";
            let mark = Span::new(span.start, span.start + 1);
            Some((*span, Feature::NationalLiteral, mend::replace(mark, "", Applicability::Safe, why)))
        }
        Token::Spaceship => {
            let why = "it is the same comparison, for which NULL is equal to NULL";
            let fix = mend::replace(*span, "IS NOT DISTINCT FROM", Applicability::Safe, why);
            Some((*span, Feature::NullSafeEqual, fix))
        }
        _ if is(at, Keyword::LIMIT) && is(at + 1, Keyword::ALL) && !is(at + 2, Keyword::OFFSET) => {
            gone(at, at + 1, Feature::LimitAll, "all rows are given without a limit")
        }
        Token::Number(..)
            if at >= 3
                && is(at - 1, Keyword::OFFSET)
                && is(at - 3, Keyword::LIMIT)
                && (is(at + 1, Keyword::ROWS) || is(at + 1, Keyword::ROW))
                && !is(at + 2, Keyword::FETCH) =>
        {
            gone(at + 1, at + 1, Feature::OffsetRows, "OFFSET counts rows anyway")
        }
        Token::LParen if at > 0 => {
            let close = at + words[at..].iter().take(12).position(|(_, token)| *token == Token::RParen)?;
            let why = "it tells another database how to read, and not what";
            let hints = |known: &[&str]| {
                let mut inside = words[at + 1..close].iter().filter_map(|(_, token)| match token {
                    Token::Word(word) => Some(known.iter().any(|hint| word.value.eq_ignore_ascii_case(hint))),
                    _ => None,
                });
                inside.next() == Some(true)
            };
            let words_only = words[at + 1..close].iter().all(|(_, t)| matches!(t, Token::Word(_) | Token::Comma));
            let ends = words.get(close + 1).is_none_or(|(_, t)| matches!(t, Token::SemiColon | Token::EOF));
            if is(at - 1, Keyword::WITH) && words_only && hints(TABLE_HINTS) {
                return gone(at - 1, close, Feature::TableHint, why);
            }
            if is(at - 1, Keyword::OPTION) && ends && hints(QUERY_HINTS) {
                return gone(at - 1, close, Feature::QueryHint, why);
            }
            let table = matches!(words[at - 1].1, Token::Word(_)) && close == at + 2;
            (table && hints(&["nolock"])).then(|| gone(at, close, Feature::TableHint, why)).flatten()
        }
        _ => None,
    }
}

/// `GROUP_CONCAT(x SEPARATOR '; ')` with a comma; the place is that of the separator. Texts in an order are not such.
pub(super) fn separator(place: Span, subject: &Subject<'_>) -> Option<Fix> {
    let words = mend::words(subject);
    let at = words.iter().rposition(|(span, token)| span.start <= place.start && is_separator(token))?;
    separator_at(&words, at).map(|(_, _, fix)| fix)
}

fn is_separator(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("separator"))
}

fn separator_at(words: &[(Span, Token)], at: usize) -> Option<(Span, Feature, Fix)> {
    is_separator(&words[at].1).then_some(())?;
    let text = words.get(at + 1).filter(|(_, token)| matches!(token, Token::SingleQuotedString(_)))?;
    words.get(at + 2).filter(|(_, token)| *token == Token::RParen)?;
    let mut depth = 0usize;
    for before in (1..at).rev() {
        match &words[before].1 {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            Token::LParen => {
                let called = matches!(&words[before - 1].1, Token::Word(word) if word.value.eq_ignore_ascii_case("group_concat"));
                let gap = Span::new(words[at - 1].0.end, text.0.start);
                let why = "the separator is the second argument of the aggregate here";
                let fix = mend::replace(gap, ", ", Applicability::Likely, why);
                return called.then(|| (words[at].0.join(text.0), Feature::Separator, fix));
            }
            Token::Comma if depth == 0 => return None,
            // An order, and values told apart, leave no room for a second argument everywhere.
            token if depth == 0 && matches!(mend::keyword(token), Some(Keyword::ORDER | Keyword::DISTINCT)) => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// `a DIV 7` and `a MOD 7` where the parser cannot read them. Only columns of whole numbers are divided: of others the rest has a
/// fraction.
fn divided(words: &[(Span, Token)], at: usize, subject: &Subject<'_>) -> Option<(Span, Feature, Fix)> {
    let Token::Word(operator) = &words[at].1 else { return None };
    let (feature, phrase) = match operator.value.to_ascii_lowercase().as_str() {
        "div" => (Feature::DivOperator, Phrase::Quotient),
        "mod" => (Feature::ModOperator, Phrase::Modulo),
        _ => return None,
    };
    let Token::Word(column) = &words[at - 1].1 else { return None };
    let (by, Token::Number(count, _)) = words.get(at + 1)? else { return None };
    number(count)?;
    let tables = subject.context.schema?.tables();
    let mut kinds = tables.iter().filter_map(|table| table.column(&column.value)).map(Column::kind).peekable();
    (kinds.peek().is_some() && kinds.all(|kind| kind == Type::Integer)).then_some(())?;
    let mut start = at - 1;
    while start >= 2 && words[start - 1].1 == Token::Period {
        start -= 2;
    }
    let scaled = |token: &Token| match token {
        Token::Mul | Token::Div | Token::Mod | Token::Minus => true,
        Token::Word(word) => ["div", "mod"].iter().any(|w| word.value.eq_ignore_ascii_case(w)),
        _ => false,
    };
    (start == 0 || !scaled(&words[start - 1].1)).then_some(())?;
    let value = subject.query.text(words[start].0.join(words[at - 1].0));
    let (text, template) = Said::new(phrase, &[value, count]).in_words_of(subject.context.dialect)?;
    let why = format!("{} says it as `{template}`", subject.context.dialect.name);
    let place = words[start].0.join(*by);
    Some((place, feature, mend::replace(place, text, Applicability::Likely, why)))
}
