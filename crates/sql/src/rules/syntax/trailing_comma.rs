#![doc = include_str!("trailing_comma.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Severity};
use crate::parse::token_stream::{UnparsedQuery, delete, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `trailing-comma` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "trailing-comma",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("trailing_comma.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let idle: Vec<usize> = (0..unparsed.tokens.len())
        .filter(|&i| unparsed.is_token(i, &Token::Comma) && ends_list(&unparsed, i + 1))
        .collect();
    let Some(first) = idle.first().map(|&i| &unparsed.tokens[i]) else { return };
    let edits: Vec<_> = idle.iter().map(|&i| delete(unparsed.tokens[i].span)).collect();
    let next = ctx.query.text(unparsed.tokens[idle[0] + 1].span);
    if !unparsed.parses_with(&edits) {
        return;
    }
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            first.span,
            ",",
            format!("an item is missing between this comma and `{next}`"),
        )
        .with_advice("A list ends without a comma.")
        .with_fix(fix(edits, Applicability::Likely, "a comma is allowed only between two items")),
    );
}

/// Returns whether a list cannot continue with this token.
fn ends_list(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    match unparsed.tokens.get(at).map(|w| &w.token) {
        Some(Token::RParen | Token::SemiColon) => true,
        Some(_) => {
            let set = matches!(unparsed.keyword(at), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT));
            // `SELECT a, (…)` and a subquery continue the list; any other clause does not.
            set || unparsed.clause_at(at).is_some_and(|c| c != crate::parse::token_stream::ClauseKind::Select)
        }
        None => false,
    }
}
