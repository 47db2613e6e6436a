#![doc = include_str!("missing_on.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, delete, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `missing-on` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "missing-on",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("missing_on.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for join in (0..unparsed.tokens.len()).filter(|&i| unparsed.keyword(i) == Some(Keyword::JOIN)) {
        // `JOIN ON orders o c.id = o.id`: ON precedes the table.
        let early = unparsed.keyword(join + 1) == Some(Keyword::ON);
        let Some(at) = condition_start(&unparsed, join + usize::from(early)) else { continue };
        if early {
            edits.push(delete(Span::new(unparsed.tokens[join + 1].span.start, unparsed.tokens[join + 2].span.start)));
        }
        edits.push(insert(unparsed.tokens[at].span.start, "ON "));
        first.get_or_insert(unparsed.tokens[at].span);
    }
    let Some(span) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), "ON is missing before the join condition")
            .with_advice("Write JOIN table ON condition.")
            .with_fix(fix(
                edits,
                Applicability::Likely,
                "a comparison of two columns directly after the table can only be its join condition",
            )),
    );
}

/// Returns the start of the condition of a JOIN without ON: `JOIN orders o c.id = o.id`.
fn condition_start(unparsed: &UnparsedQuery<'_>, join: usize) -> Option<usize> {
    let name = |i: usize| matches!(unparsed.tokens.get(i)?.token, Token::Word(_)).then_some(());
    let is_as = |i: usize| unparsed.keyword(i) == Some(Keyword::AS);
    let column = |i: usize| {
        name(i)?;
        unparsed.is_token(i + 1, &Token::Period).then_some(())?;
        name(i + 2).map(|()| i + 3)
    };
    let compares = |i: usize| {
        column(i).filter(|&end| unparsed.is_token(end, &Token::Eq)).and_then(|end| column(end + 1)).map(|_| i)
    };
    name(join + 1)?;
    // After the table, or after its alias.
    let alias = if is_as(join + 2) { join + 4 } else { join + 3 };
    compares(join + 2).or_else(|| {
        name(alias - 1)?;
        let word = unparsed.keyword(alias - 1)?;
        (!matches!(word, Keyword::ON | Keyword::USING)).then_some(())?;
        compares(alias)
    })
}
