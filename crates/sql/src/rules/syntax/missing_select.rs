#![doc = include_str!("missing_select.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `missing-select` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "missing-select",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("missing_select.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for open in 0..unparsed.tokens.len() {
        if !unparsed.is_token(open, &Token::LParen) || is_call(&unparsed, open) {
            continue;
        }
        let Some(close) = unparsed.matching_close(open) else { continue };
        let depth = unparsed.tokens[open].depth + 1;
        let mut own =
            (open + 1..close).filter(|&i| unparsed.tokens[i].depth == depth).filter_map(|i| unparsed.clause_at(i));
        // FROM is the first clause in place of SELECT, after a name or value.
        if own.next() == Some(ClauseKind::From) && unparsed.clause_at(open + 1).is_none() {
            edits.push(insert(unparsed.tokens[open + 1].span.start, "SELECT "));
            first.get_or_insert(unparsed.tokens[open + 1].span);
        }
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), "a subquery begins with SELECT")
            .with_advice("Write SELECT at the beginning of every subquery.")
            .with_fix(fix(edits, Applicability::Likely, "the text in parentheses has a FROM, so it is a query")),
    );
}

/// Returns whether a parenthesis belongs to a call, which may contain keywords: `EXTRACT(YEAR FROM
/// day)`.
fn is_call(unparsed: &UnparsedQuery<'_>, open: usize) -> bool {
    let Some(before) = open.checked_sub(1) else { return false };
    match unparsed.keyword(before) {
        Some(word) => !matches!(
            word,
            Keyword::SELECT
                | Keyword::IN
                | Keyword::EXISTS
                | Keyword::NOT
                | Keyword::AND
                | Keyword::OR
                | Keyword::FROM
                | Keyword::JOIN
                | Keyword::WHERE
                | Keyword::HAVING
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::WHEN
                | Keyword::AS
                | Keyword::ON
        ),
        None => matches!(unparsed.tokens[before].token, Token::Word(_)),
    }
}
