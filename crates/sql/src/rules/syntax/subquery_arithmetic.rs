#![doc = include_str!("subquery_arithmetic.md")]

use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `subquery-arithmetic` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "subquery-arithmetic",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("subquery_arithmetic.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    if unparsed.clause_at(0) != Some(ClauseKind::Select) {
        return;
    }
    let (end, top) = (unparsed.end(), |i: &usize| unparsed.tokens[*i].depth == 0);
    let operators: Vec<usize> = (1..end).filter(top).filter(|&i| is_between_queries(&unparsed, i)).collect();
    let [operator] = operators.as_slice() else { return };
    let span = unparsed.tokens[*operator].span;
    let mut edits: Vec<Edit> = vec![insert(unparsed.tokens[0].span.start, "SELECT (")];
    edits.push(insert(unparsed.tokens[operator - 1].span.end, ")"));
    let second = if unparsed.clause_at(operator + 1) == Some(ClauseKind::Select) { "(" } else { "(SELECT " };
    edits.push(insert(unparsed.tokens[operator + 1].span.start, second));
    // An alias after the second condition names the result.
    let alias =
        (operator + 1..end).rev().take(2).find(|&i| ctx.query.text(unparsed.tokens[i].span).eq_ignore_ascii_case("as"));
    let last = alias.filter(|_| unparsed.tokens[end - 1].depth == 0).unwrap_or(end);
    edits.push(insert(unparsed.tokens[last - 1].span.end, ")"));
    if !unparsed.parses_with(&edits) {
        return;
    }
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            Span::new(span.start, span.end),
            ctx.query.text(span),
            "queries can be operands only as subqueries: SELECT (SELECT …) - (SELECT …)",
        )
        .with_advice("To calculate with two queries, put each in parentheses: SELECT (SELECT …) - (SELECT …).")
        .with_fix(fix(edits, Applicability::Likely, "each operand is a complete query")),
    );
}

/// Returns whether an arithmetic operator has a whole query on both sides. The second may lack its
/// SELECT if it begins with an aggregate.
fn is_between_queries(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    if !matches!(unparsed.tokens[at].token, Token::Plus | Token::Minus | Token::Mul | Token::Div) {
        return false;
    }
    let from_before = (0..at).any(|i| unparsed.tokens[i].depth == 0 && unparsed.clause_at(i) == Some(ClauseKind::From));
    let selects = unparsed.clause_at(at + 1) == Some(ClauseKind::Select);
    let computes = unparsed.is_aggregate_call(at + 1)
        && unparsed.matching_close(at + 2).is_some_and(|close| unparsed.clause_at(close + 1) == Some(ClauseKind::From));
    from_before && (selects || computes)
}
