#![doc = include_str!("between_bounds.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `between-bounds` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "between-bounds",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("between_bounds.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in (0..unparsed.end()).filter(|&i| unparsed.keyword(i) == Some(Keyword::BETWEEN)) {
        let depth = unparsed.tokens[at].depth;
        let own = |i: &usize| unparsed.tokens[*i].depth == depth;
        let operator = (at + 2..unparsed.end()).filter(own).find(|&i| {
            unparsed.is_token(i, &Token::Comma)
                || matches!(unparsed.keyword(i), Some(Keyword::AND | Keyword::OR | Keyword::TO))
                || unparsed.clause_at(i).is_some()
        });
        let wrong = |&i: &usize| unparsed.is_token(i, &Token::Comma) || unparsed.keyword(i) == Some(Keyword::TO);
        let Some(sign) = operator.filter(wrong) else { continue };
        let span = unparsed.tokens[sign].span;
        let glued = ctx.query.source[..span.start].ends_with(|c: char| !c.is_whitespace());
        edits.push(Edit { span, text: if glued { " AND".into() } else { "AND".into() } });
        first.get_or_insert(span);
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            ctx.query.text(span),
            "the bounds of BETWEEN are separated by AND: BETWEEN low AND high",
        )
        .with_advice("Write BETWEEN low AND high.")
        .with_fix(fix(
            edits,
            Applicability::Likely,
            "both bounds are present; only the keyword between them differs",
        )),
    );
}
