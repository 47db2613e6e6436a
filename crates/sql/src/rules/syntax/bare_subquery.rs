#![doc = include_str!("bare_subquery.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Severity};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `bare-subquery` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "bare-subquery",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("bare_subquery.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of positions that are tried for the closing parenthesis.
const MAX_ATTEMPTS: usize = 8;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let Some(select) = (1..unparsed.tokens.len())
        .find(|&i| unparsed.clause_at(i) == Some(ClauseKind::Select) && expects_value(&unparsed, i - 1))
    else {
        return;
    };
    let depth = unparsed.tokens[select].depth;
    let end = unparsed.block_end(select, depth).min(unparsed.end());
    // The subquery may end before a token with which the enclosing query could continue.
    let goes_on = |i: usize| {
        let word = matches!(unparsed.keyword(i), Some(Keyword::AND | Keyword::OR));
        let clause = matches!(
            unparsed.clause_at(i),
            Some(
                ClauseKind::GroupBy
                    | ClauseKind::Having
                    | ClauseKind::OrderBy
                    | ClauseKind::Limit
                    | ClauseKind::Offset
                    | ClauseKind::Fetch
            )
        );
        unparsed.tokens[i].depth == depth && (word || clause)
    };
    let places = std::iter::once(end).chain((select + 1..end).filter(|&i| goes_on(i))).take(MAX_ATTEMPTS);
    let edits = |end: usize| {
        vec![insert(unparsed.tokens[select].span.start, "("), insert(unparsed.tokens[end - 1].span.end, ")")]
    };
    let found: Vec<usize> = places.filter(|&i| i > select + 1 && unparsed.parses_with(&edits(i))).collect();
    let applicability = if found.len() == 1 { Applicability::Likely } else { Applicability::Suggested };
    if found.is_empty() {
        return;
    }
    let span = unparsed.tokens[select].span;
    let mut finding = Finding::new(
        RULE.code,
        Severity::Error,
        span,
        ctx.query.text(span),
        "a subquery in a condition needs parentheses",
    )
    .with_advice("Put every subquery in parentheses: a = (SELECT …).");
    finding.fixes = found
        .into_iter()
        .map(|i| fix(edits(i), applicability, "in parentheses it is a subquery to compare with"))
        .collect();
    out.push(finding);
}

/// Returns whether a token expects a value that a query can provide.
fn expects_value(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    matches!(unparsed.tokens[at].token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
        || matches!(unparsed.keyword(at), Some(Keyword::IN | Keyword::EXISTS))
}
