#![doc = include_str!("missing_end.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Severity};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `missing-end` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "missing-end",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("missing_end.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let Some(case) = open_case(&unparsed) else { return };
    let depth = unparsed.tokens[case].depth;
    let own = |i: &usize| unparsed.tokens[*i].depth == depth;
    let word = |i: usize| unparsed.keyword(i);
    let Some(last) =
        (case..unparsed.end()).rev().filter(own).find(|&i| matches!(word(i), Some(Keyword::THEN | Keyword::ELSE)))
    else {
        return;
    };
    let stops = |&i: &usize| {
        let here = &unparsed.tokens[i];
        (here.token == Token::RParen && here.depth < depth)
            || here.depth == depth
                && (matches!(here.token, Token::Comma | Token::SemiColon)
                    || matches!(word(i), Some(Keyword::AS | Keyword::ASC | Keyword::DESC))
                    || unparsed.clause_at(i).is_some())
    };
    // At the very end of an unterminated text, more was to come.
    let Some(end) = (last + 2..unparsed.tokens.len()).find(stops) else { return };
    let edits = vec![insert(unparsed.tokens[end - 1].span.end, " END")];
    if !unparsed.parses_with(&edits) {
        return;
    }
    // An operator after it would become part of its last value.
    let compares = (last..end).filter(own).any(|i| {
        matches!(unparsed.tokens[i].token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
            || matches!(unparsed.tokens[i].token, Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod)
            || matches!(word(i), Some(Keyword::AND | Keyword::OR | Keyword::IN | Keyword::LIKE | Keyword::IS))
    });
    let applicability = if compares { Applicability::Suggested } else { Applicability::Likely };
    let span = unparsed.tokens[case].span;
    out.push(
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), "this CASE has no END")
            .with_advice("Every CASE ends with END: CASE WHEN … THEN … ELSE … END.")
            .with_fix(fix(edits, applicability, "its last value ends here, and so does the CASE")),
    );
}

/// Returns the only CASE that has no END.
fn open_case(unparsed: &UnparsedQuery<'_>) -> Option<usize> {
    let mut open: Vec<usize> = Vec::new();
    for at in 0..unparsed.end() {
        match unparsed.keyword(at) {
            Some(Keyword::CASE) => open.push(at),
            Some(Keyword::END) => _ = open.pop(),
            _ => {}
        }
    }
    // Only a CASE before the FROM of its query is examined; in a later condition, its end is
    // ambiguous.
    let [case] = open.as_slice() else { return None };
    let after = (0..*case)
        .rev()
        .filter(|&i| unparsed.tokens[i].depth == unparsed.tokens[*case].depth)
        .find_map(|i| unparsed.clause_at(i));
    (after != Some(ClauseKind::Where)).then_some(*case)
}
