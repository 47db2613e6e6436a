#![doc = include_str!("sort_direction_in_call.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, delete, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `sort-direction-in-call` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "sort-direction-in-call",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("sort_direction_in_call.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 2..unparsed.end() {
        if !matches!(unparsed.keyword(at), Some(Keyword::DESC | Keyword::ASC))
            || !is_sort_direction_in_call(&unparsed, at)
        {
            continue;
        }
        let span = unparsed.tokens[at].span;
        edits.push(delete(Span::new(unparsed.tokens[at - 1].span.end, span.end)));
        edits.push(insert(unparsed.tokens[at + 1].span.end, format!(" {}", ctx.query.text(span))));
        first.get_or_insert(span);
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    let word = ctx.query.text(span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            word,
            format!("{word} comes after the sort expression, not inside the call"),
        )
        .with_advice(format!("Write ORDER BY SUM(x) {word}, with {word} after the parenthesis."))
        .with_fix(fix(
            edits,
            Applicability::Likely,
            "the call is the sort expression, and the direction comes after it",
        )),
    );
}

/// Returns whether a sort direction is the last token of a call in ORDER BY: `ORDER BY SUM(total
/// DESC)`.
fn is_sort_direction_in_call(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    let Some(open) = unparsed.enclosing_open(at).filter(|_| unparsed.is_token(at + 1, &Token::RParen)) else {
        return false;
    };
    let called = open > 0 && matches!(unparsed.tokens[open - 1].token, Token::Word(_));
    // An aggregate may sort its input.
    let own = (open..at).any(|i| unparsed.clause_at(i).is_some());
    let depth = unparsed.tokens[open].depth;
    let clause = (0..open).rev().filter(|&i| unparsed.tokens[i].depth == depth).find_map(|i| unparsed.clause_at(i));
    let after = matches!(unparsed.keyword(at + 2), Some(Keyword::ASC | Keyword::DESC));
    called && !own && !after && clause == Some(ClauseKind::OrderBy)
}
