#![doc = include_str!("missing_operand.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `missing-operand` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "missing-operand",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("missing_operand.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..unparsed.end() {
        let joined = matches!(unparsed.keyword(at - 1), Some(Keyword::AND | Keyword::OR));
        let not = usize::from(unparsed.keyword(at) == Some(Keyword::NOT));
        if !joined || !is_comparison(&unparsed, at + not) || (not == 1 && is_comparison_operator(&unparsed, at + 1)) {
            continue;
        }
        let Some(operand) = previous_operand(&unparsed, at - 1) else { return };
        edits.push(insert(unparsed.tokens[at].span.start, format!("{operand} ")));
        first.get_or_insert(unparsed.tokens[at].span);
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    let sign = ctx.query.text(span);
    out.push(
        Finding::new(RULE.code, Severity::Error, span, sign, format!("the left operand of `{sign}` is missing"))
            .with_advice("Write the column again before each comparison: a > 1 AND a < 5.")
            .with_fix(fix(edits, Applicability::Likely, "the preceding comparison has the operand")),
    );
}

fn is_comparison_operator(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    let token = unparsed.tokens.get(at).map(|w| &w.token);
    matches!(token, Some(Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq))
}

fn is_comparison(unparsed: &UnparsedQuery<'_>, at: usize) -> bool {
    is_comparison_operator(unparsed, at)
        || matches!(unparsed.keyword(at), Some(Keyword::LIKE | Keyword::IN | Keyword::BETWEEN | Keyword::IS))
}

/// Returns the left operand of the comparison before a token: the text from the start of that
/// condition to its operator.
fn previous_operand<'b>(unparsed: &UnparsedQuery<'b>, before: usize) -> Option<&'b str> {
    let depth = unparsed.tokens[before].depth;
    let begins = |i: usize| {
        let word = matches!(
            unparsed.keyword(i),
            Some(Keyword::AND | Keyword::OR | Keyword::WHERE | Keyword::ON | Keyword::HAVING | Keyword::WHEN)
        ) || (unparsed.keyword(i) == Some(Keyword::NOT) && !is_comparison(unparsed, i + 1));
        (unparsed.tokens[i].depth == depth && word)
            || (unparsed.is_token(i, &Token::LParen) && unparsed.tokens[i].depth < depth)
    };
    let start = (0..before).rev().find(|&i| begins(i))? + 1;
    // It is unclear whether NOT applies to the one comparison or to both.
    if unparsed.keyword(start - 1) == Some(Keyword::NOT) {
        return None;
    }
    let own = |i: &usize| unparsed.tokens[*i].depth == depth;
    let operator = (start..before)
        .filter(own)
        .find(|&i| is_comparison(unparsed, i) || unparsed.keyword(i) == Some(Keyword::NOT))?;
    let text = unparsed.slice(start, operator);
    let named = (start..operator).any(|i| matches!(unparsed.tokens[i].token, Token::Word(_)));
    (named && !text.is_empty()).then_some(text)
}
