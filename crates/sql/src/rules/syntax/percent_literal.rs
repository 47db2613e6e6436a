#![doc = include_str!("percent_literal.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, delete, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `percent-literal` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "percent-literal",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("percent_literal.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error_or_misparse(ctx).filter(|_| !is_already_reported(out)) else {
        return;
    };
    let hundred = |i: usize| matches!(&unparsed.tokens[i].token, Token::Number(n, _) if n.parse() == Ok(100.0));
    let operators: Vec<usize> = (2..unparsed.end())
        .filter(|&i| {
            unparsed.is_token(i, &Token::Mod)
                && hundred(i - 1)
                && unparsed.is_token(i - 2, &Token::Mul)
                && is_item_end(&unparsed, i + 1)
        })
        .collect();
    let edits: Vec<Edit> = operators.iter().map(|&i| delete(unparsed.tokens[i].span)).collect();
    let Some(&first) = operators.first().filter(|_| unparsed.parses_with(&edits)) else { return };
    let span = unparsed.tokens[first - 1].span.join(unparsed.tokens[first].span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            ctx.query.text(span),
            "% is the modulo operator, not a percent sign",
        )
        .with_advice("Multiply by 100, without %.")
        .with_fix(fix(
            edits,
            Applicability::Likely,
            "multiplying by 100 gives a percentage, and % has no right operand",
        )),
    );
}

/// Returns whether the item ends at a token.
fn is_item_end(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    match unparsed.tokens.get(at).map(|w| &w.token) {
        Some(Token::Comma | Token::RParen | Token::SemiColon) | None => true,
        Some(_) => {
            unparsed.keyword(at) == Some(Keyword::AS) || unparsed.clause_at(at).is_some_and(|c| c != ClauseKind::Select)
        }
    }
}
