#![doc = include_str!("where_after_aggregate.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::dialect::Feature;
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `where-after-aggregate` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "where-after-aggregate",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("where_after_aggregate.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..unparsed.tokens.len() {
        if unparsed.clause_at(at) != Some(ClauseKind::Where) {
            continue;
        }
        let Some(own) = attach_condition(ctx, &unparsed, at) else { continue };
        edits.extend(own);
        first.get_or_insert(unparsed.tokens[at].span);
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let overlap = edits.windows(2).any(|e| e[1].span.start < e[0].span.end);
    let Some(span) = first.filter(|_| !overlap && unparsed.parses_with(&edits)) else { return };
    let right = match !ctx.context.dialect.supports(Feature::Filter) {
        true => "an aggregate over CASE WHEN … END",
        false => "FILTER (WHERE …)",
    };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            ctx.query.text(span),
            format!("a condition for one aggregate is written {right}"),
        )
        .with_advice(format!("To aggregate only some rows, use {right}."))
        .with_fix(fix(
            edits,
            Applicability::Likely,
            "the condition directly follows the aggregate, with no FROM of its own",
        )),
    );
}

/// Returns the edits that attach the condition of a WHERE to the aggregate before it.
fn attach_condition(ctx: &RuleContext<'_>, unparsed: &UnparsedQuery<'_>, at: usize) -> Option<Vec<Edit>> {
    let close = at.checked_sub(1).filter(|&i| unparsed.is_token(i, &Token::RParen))?;
    let open = unparsed.matching_open(close)?;
    let name = open.checked_sub(1).filter(|&i| unparsed.is_aggregate_call(i))?;
    let depth = unparsed.tokens[at].depth;
    let beside = |i: &usize| unparsed.tokens[*i].depth == depth;
    let end = match unparsed.enclosing_open(at) {
        Some(around) => {
            let end = unparsed.matching_close(around)?;
            // A WHERE with a SELECT of its own is correct; a second condition belongs to something
            // else.
            let clause = |i: usize| unparsed.clause_at(i).is_some();
            if (around + 1..end)
                .filter(beside)
                .any(|i| i != at && (clause(i) || (i > at && unparsed.is_aggregate_call(i))))
            {
                return None;
            }
            end
        }
        None => condition_end(unparsed, at)?,
    };
    let condition = unparsed.slice(at + 1, end);
    if ctx.context.dialect.supports(Feature::Filter) {
        let after = unparsed.tokens[end - 1].span.end;
        return Some(vec![insert(unparsed.tokens[at].span.start, "FILTER ("), insert(after, ")")]);
    }
    let distinct = unparsed.keyword(open + 1) == Some(Keyword::DISTINCT);
    let from = open + 1 + usize::from(distinct);
    let value = unparsed.slice(from, close);
    let value = if value == "*" { "1" } else { value };
    let word = if distinct { "DISTINCT " } else { "" };
    let call = format!("{}({word}CASE WHEN {condition} THEN {value} END)", ctx.query.text(unparsed.tokens[name].span));
    let span = Span::new(unparsed.tokens[name].span.start, unparsed.tokens[end - 1].span.end);
    Some(vec![Edit { span, text: call }])
}

/// Returns the end of a condition in the SELECT list itself, before any FROM: a comma, the alias of
/// the item, the next clause, or an operator followed by another aggregate.
fn condition_end(unparsed: &UnparsedQuery<'_>, at: usize) -> Option<usize> {
    let beside = |i: &usize| unparsed.tokens[*i].depth == 0;
    let before =
        (0..at).rev().filter(beside).find_map(|i| unparsed.clause_at(i).filter(|c| *c != ClauseKind::Where))?;
    if before != ClauseKind::Select {
        return None;
    }
    let operator = |i: usize| matches!(unparsed.tokens[i].token, Token::Plus | Token::Minus | Token::Mul | Token::Div);
    let ends = |i: &usize| {
        matches!(unparsed.tokens[*i].token, Token::Comma | Token::SemiColon)
            || unparsed.keyword(*i) == Some(Keyword::AS)
            || unparsed.clause_at(*i).is_some()
            || (operator(*i) && unparsed.is_aggregate_call(*i + 1))
    };
    Some((at + 1..unparsed.tokens.len()).filter(beside).find(ends).unwrap_or(unparsed.tokens.len()))
}
