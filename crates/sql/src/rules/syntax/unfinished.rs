#![doc = include_str!("unfinished.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, is_explained};
use crate::finding::{Finding, Severity, Span};
use crate::pieces::{PieceKind, pieces};
use crate::query::Failure;
use crate::rules::{Rule, Subject};

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
    out.push(
        Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), format!("the text ends {what}"))
            .advise("The query was cut off. Write it again from the beginning, shorter, and to its end."),
    );
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
