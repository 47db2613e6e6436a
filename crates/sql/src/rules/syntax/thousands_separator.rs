#![doc = include_str!("thousands_separator.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `thousands-separator` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "thousands-separator",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("thousands_separator.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    let mut at = 1;
    while at < unparsed.end() {
        let end = number_end(&unparsed, at);
        if end > at && expects_single_value(&unparsed, at - 1) {
            let span = unparsed.tokens[at].span.join(unparsed.tokens[end].span);
            edits.push(Edit { span, text: ctx.query.text(span).replace(',', "") });
            first.get_or_insert(span);
        }
        at = end + 1;
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    let text = ctx.query.text(span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            text,
            format!("{text} is one number: SQL has no thousands separators"),
        )
        .with_advice("Write numbers without commas: 50000.")
        .with_fix(fix(
            edits,
            Applicability::Likely,
            "only one value is allowed here, and three digits follow each comma",
        )),
    );
}

/// Returns the last token of a number with grouped digits, `1,000,000`; the token itself if its
/// digits are not grouped.
fn number_end(unparsed: &UnparsedQuery<'_>, at: usize) -> usize {
    let digits = |i: usize| match unparsed.tokens.get(i).map(|w| &w.token) {
        Some(Token::Number(n, _)) => n.split('.').next().map_or(0, str::len),
        _ => 0,
    };
    let mut end = at;
    if !(1..=3).contains(&digits(at)) {
        return at;
    }
    // Each comma is adjacent to both of its neighbors.
    while unparsed.is_token(end + 1, &Token::Comma)
        && digits(end + 2) == 3
        && unparsed.tokens[end].span.end == unparsed.tokens[end + 1].span.start
        && unparsed.tokens[end + 1].span.end == unparsed.tokens[end + 2].span.start
    {
        end += 2;
    }
    end
}

/// Returns whether only one value can follow a token.
fn expects_single_value(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    let operator =
        matches!(unparsed.tokens[at].token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq);
    operator || matches!(unparsed.keyword(at), Some(Keyword::BETWEEN | Keyword::AND))
}
