#![doc = include_str!("cte_list_syntax.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, delete, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `cte-list-syntax` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "cte-list-syntax",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("cte_list_syntax.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let Some(with_word) = (0..unparsed.tokens.len()).find(|&i| unparsed.keyword(i) == Some(Keyword::WITH)) else {
        return;
    };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    let is_recursive = unparsed.keyword(with_word + 1) == Some(Keyword::RECURSIVE);
    let mut at = with_word + 1 + usize::from(is_recursive);
    while let Some(close) = cte_end(&unparsed, at) {
        let comma = unparsed.is_token(close + 1, &Token::Comma);
        let again = close + 1 + usize::from(comma);
        let with = unparsed.keyword(again) == Some(Keyword::WITH);
        let recursive = unparsed.keyword(again) == Some(Keyword::RECURSIVE);
        let next = again + usize::from(with || recursive);
        let more = cte_end(&unparsed, next).is_some();
        let mut wrong: Vec<Edit> = Vec::new();
        if more && !comma {
            wrong.push(insert(unparsed.tokens[close].span.end, ","));
        }
        // RECURSIVE is written once, for the whole list.
        if more && recursive {
            if !edits.iter().any(|e| e.text.contains("RECURSIVE")) && !is_recursive {
                edits.insert(0, insert(unparsed.tokens[with_word].span.end, " RECURSIVE"));
            }
            wrong.push(delete(Span::new(unparsed.tokens[again].span.start, unparsed.tokens[next].span.start)));
        }
        if more && with {
            wrong.push(delete(Span::new(unparsed.tokens[again].span.start, unparsed.tokens[next].span.start)));
        }
        if comma && unparsed.keyword(again) == Some(Keyword::SELECT) {
            wrong.push(delete(unparsed.tokens[close + 1].span));
        }
        if let Some(edit) = wrong.first() {
            first.get_or_insert(Span::new(edit.span.start, unparsed.tokens[again].span.end));
        }
        edits.extend(wrong);
        at = next;
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            ctx.query.text(span).trim(),
            "the CTEs of WITH are one list: WITH a AS (…), b AS (…) SELECT …",
        )
        .with_advice("Write WITH once, a comma between its queries, and none before SELECT.")
        .with_fix(fix(
            edits,
            Applicability::Likely,
            "every CTE is complete; only a comma or a keyword was wrong",
        )),
    );
}

/// Returns the parenthesis that closes `name AS (…)` or `name (columns) AS (…)` at a token.
fn cte_end(unparsed: &UnparsedQuery<'_>, at: usize) -> Option<usize> {
    matches!(unparsed.tokens.get(at)?.token, Token::Word(_)).then_some(())?;
    let mut next = at + 1;
    if unparsed.is_token(next, &Token::LParen) {
        next = unparsed.matching_close(next)? + 1;
    }
    (unparsed.keyword(next) == Some(Keyword::AS)).then_some(())?;
    next += 1;
    while matches!(unparsed.keyword(next), Some(Keyword::NOT | Keyword::MATERIALIZED)) {
        next += 1;
    }
    unparsed.is_token(next, &Token::LParen).then(|| unparsed.matching_close(next)).flatten()
}
