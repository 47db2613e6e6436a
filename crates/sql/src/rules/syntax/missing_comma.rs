#![doc = include_str!("missing_comma.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `missing-comma` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "missing-comma",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("missing_comma.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let value = |i: usize| matches!(unparsed.tokens[i].token, Token::SingleQuotedString(_) | Token::Number(..));
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..unparsed.end() {
        let listed = || {
            unparsed.enclosing_open(at).is_some_and(|open| open > 0 && unparsed.keyword(open - 1) == Some(Keyword::IN))
        };
        if value(at - 1) && value(at) && listed() {
            edits.push(insert(unparsed.tokens[at - 1].span.end, ","));
            first.get_or_insert(unparsed.tokens[at].span);
        }
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), "a comma is missing before this value")
            .with_advice("Put a comma between the values of a list.")
            .with_fix(fix(edits, Applicability::Likely, "two values side by side in a list are two of its items")),
    );
}
