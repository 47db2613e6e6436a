#![doc = include_str!("function_without_parentheses.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `function-without-parentheses` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "function-without-parentheses",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("function_without_parentheses.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error_or_misparse(ctx).filter(|_| !is_already_reported(out)) else {
        return;
    };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 0..unparsed.tokens.len() {
        let Token::Word(word) = &unparsed.tokens[at].token else { continue };
        if !word.value.eq_ignore_ascii_case("count")
            || word.quote_style.is_some()
            || unparsed.is_schema_name(&word.value)
        {
            continue;
        }
        let Some(end) = argument_end(&unparsed, at + 1) else { continue };
        let argument = unparsed.slice(at + 1, end + 1);
        let span = Span::new(unparsed.tokens[at].span.end, unparsed.tokens[end].span.end);
        edits.push(Edit { span, text: format!("({argument})") });
        first.get_or_insert(unparsed.tokens[at].span.join(unparsed.tokens[end].span));
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    let text = ctx.query.text(span);
    out.push(
        Finding::new(RULE.code, Severity::Error, span, text, "the argument of COUNT needs parentheses: COUNT(…)")
            .with_advice("Write COUNT(*) or COUNT(DISTINCT column), with parentheses.")
            .with_fix(fix(edits, Applicability::Likely, "COUNT is a function, and its argument directly follows it")),
    );
}

/// Returns the last token of `*` or `DISTINCT column`, if the item or condition ends, or is
/// compared, after it.
fn argument_end(unparsed: &UnparsedQuery<'_>, at: usize) -> Option<usize> {
    let name = |i: usize| matches!(unparsed.tokens.get(i).map(|w| &w.token), Some(Token::Word(_)));
    let end = if unparsed.is_token(at, &Token::Mul) {
        at
    } else if unparsed.keyword(at) == Some(Keyword::DISTINCT) && name(at + 1) {
        if unparsed.is_token(at + 2, &Token::Period) && name(at + 3) { at + 3 } else { at + 1 }
    } else {
        return None;
    };
    let after = unparsed.tokens.get(end + 1).map(|w| &w.token);
    let ends = match after {
        Some(Token::Comma | Token::RParen | Token::SemiColon | Token::Gt | Token::Lt | Token::Eq | Token::GtEq) => true,
        Some(Token::LtEq | Token::Neq) => true,
        Some(_) => {
            matches!(unparsed.keyword(end + 1), Some(Keyword::AS | Keyword::DESC | Keyword::ASC))
                || unparsed.clause_at(end + 1).is_some_and(|c| c != ClauseKind::Select)
        }
        None => false,
    };
    ends.then_some(end)
}
