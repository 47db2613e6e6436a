#![doc = include_str!("in_list_without_parentheses.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `in-list-without-parentheses` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "in-list-without-parentheses",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("in_list_without_parentheses.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let value = |i: usize| {
        matches!(unparsed.tokens.get(i).map(|w| &w.token), Some(Token::SingleQuotedString(_) | Token::Number(..)))
    };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in (0..unparsed.end()).filter(|&i| unparsed.keyword(i) == Some(Keyword::IN) && value(i + 1)) {
        let mut end = at + 1;
        while unparsed.is_token(end + 1, &Token::Comma) && value(end + 2) {
            end += 2;
        }
        let list = unparsed.tokens[at + 1].span.join(unparsed.tokens[end].span);
        edits.push(insert(list.start, "("));
        edits.push(insert(list.end, ")"));
        first.get_or_insert(list);
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), "the values of IN need parentheses")
            .with_advice("Write IN (a, b, c), with parentheses.")
            .with_fix(fix(edits, Applicability::Likely, "all values between IN and the next keyword are its list")),
    );
}
