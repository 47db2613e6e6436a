#![doc = include_str!("unfinished.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, fix, is_explained};
use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::pieces::{PieceKind, pieces};
use crate::query::Failure;
use crate::rules::{Rule, Subject};
use crate::values::Held;

/// See the page.
pub static RULE: Rule = Rule { code: "unfinished", group: "syntax", page: include_str!("unfinished.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(Failure::Syntax { at, .. }) = &subject.query.failure else { return };
    if is_explained(out) || out.iter().any(|f| f.severity == Severity::Error) {
        return;
    }
    let source = &subject.query.source;
    let end = source.trim_end().len();
    let open_quote = pieces(source).last().is_some_and(|p| {
        let text = &source[p.start..p.end];
        p.kind == PieceKind::Quoted && p.end == source.len() && (text.len() < 2 || !text.ends_with(&text[..1]))
    });
    let stopped = at.start >= end || Broken::of(subject).is_some_and(|broken| breaks_off(&broken));
    if !(stopped || open_quote) || source[..end].ends_with(';') {
        return;
    }
    let span = Span::new(end - source[..end].chars().next_back().map_or(0, char::len_utf8), end);
    let what = if open_quote { "inside a quoted name or text" } else { "before the query is whole" };
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), format!("the text ends {what}"))
            .advise("The query was cut off. Write it again from the beginning, shorter, and to its end.");
    finding.fixes.extend(closed(subject, end).filter(|_| open_quote));
    out.push(finding);
}

/// The quote that closes the last text. That the column holds that very value says that nothing more was to come.
fn closed(subject: &Subject<'_>, end: usize) -> Option<Fix> {
    let source = &subject.query.source;
    let last = pieces(source).last().filter(|p| source[p.start..].starts_with('\''))?;
    // `'New York"`: the other quote closes it.
    let close = end - usize::from(source[..end].ends_with('"'));
    let value = source.get(last.start + 1..close)?;
    let edits = vec![Edit { span: Span::new(close, end), text: "'".into() }];
    if value.is_empty() || !Broken::becomes_query(subject, &edits) {
        return None;
    }
    let compared = source[..last.start].trim_end().strip_suffix('=');
    let before = compared.map_or("", |b| b.trim_end_matches(['!', '<', '>']).trim_end());
    let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
    let column = &before[start..];
    let held = subject.context.schema.and_then(|s| s.values()).is_some_and(|values| {
        // A value that others begin with may have been one of those.
        let only = |h: &&&Held| values.beginning(&h.table, &h.column, value, 2).len() == 1;
        values.holding(value).iter().filter(only).any(|h| h.column.eq_ignore_ascii_case(column))
    });
    let (sure, why) = match held {
        true => (Applicability::Likely, format!("`{value}` is a whole value of `{column}`")),
        false => (Applicability::Suggested, "with a quote at its end the query is whole".to_string()),
    };
    Some(fix(edits, sure, why))
}

/// The parser goes back where it could have gone another way, and then names a place far before the end. A parenthesis that is still
/// open, and a word that something must follow, say so themselves.
fn breaks_off(broken: &Broken<'_>) -> bool {
    let opens = broken.words.iter().filter(|w| w.token == Token::LParen).count();
    let closes = broken.words.iter().filter(|w| w.token == Token::RParen).count();
    let last = broken.end() - 1;
    let waits = match broken.words[last].token {
        Token::Eq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq | Token::Neq => true,
        Token::Plus | Token::Minus | Token::Div | Token::Period | Token::Comma => true,
        _ => matches!(
            broken.keyword(last),
            Some(
                Keyword::SELECT
                    | Keyword::DISTINCT
                    | Keyword::FROM
                    | Keyword::JOIN
                    | Keyword::ON
                    | Keyword::WHERE
                    | Keyword::AND
                    | Keyword::OR
                    | Keyword::NOT
                    | Keyword::IN
                    | Keyword::LIKE
                    | Keyword::BETWEEN
                    | Keyword::BY
                    | Keyword::HAVING
                    | Keyword::AS
                    | Keyword::CASE
                    | Keyword::WHEN
                    | Keyword::THEN
                    | Keyword::ELSE
                    | Keyword::UNION
            )
        ),
    };
    opens > closes || waits
}
