#![doc = include_str!("unfinished.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::parse::parsed_query::ParseFailure;
use crate::parse::token_stream::{UnparsedQuery, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::value_index::ColumnValues;
use crate::text::lexical::{SegmentKind, segments};

/// The `unfinished` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unfinished",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("unfinished.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(ParseFailure::Syntax { at, .. }) = &ctx.query.failure else { return };
    if is_already_reported(out) || out.iter().any(|f| f.severity == Severity::Error) {
        return;
    }
    let source = &ctx.query.source;
    let end = source.trim_end().len();
    let open_quote = segments(source).last().is_some_and(|p| {
        let text = &source[p.start..p.end];
        p.kind == SegmentKind::Quoted && p.end == source.len() && (text.len() < 2 || !text.ends_with(&text[..1]))
    });
    let stopped = at.start >= end || UnparsedQuery::from_syntax_error(ctx).is_some_and(|broken| is_cut_off(&broken));
    if !(stopped || open_quote) || source[..end].ends_with(';') {
        return;
    }
    let span = Span::new(end - source[..end].chars().next_back().map_or(0, char::len_utf8), end);
    let what = if open_quote { "inside a quoted identifier or literal" } else { "before the query is complete" };
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), format!("the text ends {what}"))
            .with_advice("The query was cut off. Write it again from the beginning, shorter, and to its end.");
    finding.fixes.extend(close_quote_fix(ctx, end).filter(|_| open_quote));
    out.push(finding);
}

/// Closes the quote of the last literal. If the column contains that very value, nothing more was
/// to come.
fn close_quote_fix(ctx: &RuleContext<'_>, end: usize) -> Option<Fix> {
    let source = &ctx.query.source;
    let last = segments(source).last().filter(|p| source[p.start..].starts_with('\''))?;
    // `'New York"`: the other kind of quote closes it.
    let close = end - usize::from(source[..end].ends_with('"'));
    let value = source.get(last.start + 1..close)?;
    let edits = vec![Edit { span: Span::new(close, end), text: "'".into() }];
    if value.is_empty() || !UnparsedQuery::parses_as_query(ctx, &edits) {
        return None;
    }
    let compared = source[..last.start].trim_end().strip_suffix('=');
    let before = compared.map_or("", |b| b.trim_end_matches(['!', '<', '>']).trim_end());
    let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
    let column = &before[start..];
    let held = ctx.context.schema.and_then(|s| s.value_index()).is_some_and(|values| {
        // A value that is a prefix of others may have been one of those.
        let only = |h: &&&ColumnValues| values.values_with_prefix(&h.table, &h.column, value, 2).len() == 1;
        values.columns_with_value(value).iter().filter(only).any(|h| h.column.eq_ignore_ascii_case(column))
    });
    let (sure, why) = match held {
        true => (Applicability::Likely, format!("`{value}` is a complete value of `{column}`")),
        false => (Applicability::Suggested, "with a closing quote the query parses".to_string()),
    };
    Some(fix(edits, sure, why))
}

/// Returns whether the text was truncated.
///
/// The parser backtracks, and then reports a location far before the end. An open parenthesis, or a
/// last token that requires another, is evidence by itself.
fn is_cut_off(unparsed: &UnparsedQuery<'_>) -> bool {
    let opens = unparsed.tokens.iter().filter(|w| w.token == Token::LParen).count();
    let closes = unparsed.tokens.iter().filter(|w| w.token == Token::RParen).count();
    let last = unparsed.end() - 1;
    let waits = match unparsed.tokens[last].token {
        Token::Eq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq | Token::Neq => true,
        Token::Plus | Token::Minus | Token::Div | Token::Period | Token::Comma => true,
        _ => matches!(
            unparsed.keyword(last),
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
