#![doc = include_str!("using_columns.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::fixes;
use crate::parse::parsed_query::ParseFailure;
use crate::parse::token_stream::{UnparsedQuery, delete, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `using-columns` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "using-columns",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("using_columns.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let parses = match &ctx.query.failure {
        // Some grammars accept a column with its table.
        None => true,
        Some(ParseFailure::Syntax { .. }) if ctx.query.steps.is_empty() && !is_already_reported(out) => false,
        Some(_) => return,
    };
    if !fixes::within_fix_budget(ctx, out) {
        return;
    }
    let tokens = fixes::significant_tokens(ctx);
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<Span> = None;
    for at in 1..tokens.len() {
        if fixes::keyword(&tokens[at].1) != Some(Keyword::USING) {
            continue;
        }
        let Some(own) = using_edits(&tokens, at) else { continue };
        edits.extend(own);
        first.get_or_insert(tokens[at].0);
    }
    let Some(span) = first else { return };
    if !UnparsedQuery::parses_as_query(ctx, &edits) && !parses {
        return;
    }
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            ctx.query.text(span),
            "USING takes plain column names in parentheses: USING (column)",
        )
        .with_advice("Write USING (column), with names that both tables have, or ON a.column = b.column.")
        .with_fix(fix(edits, Applicability::Likely, "the common column is named; only the syntax was wrong")),
    );
}

/// Returns the edits that turn the text after USING into a list of plain names, or into a
/// condition; `None` if it is correct.
fn using_edits(tokens: &[(Span, Token)], using: usize) -> Option<Vec<Edit>> {
    let is = |i: usize, token: &Token| tokens.get(i).is_some_and(|(_, t)| t == token);
    let name = |i: usize| tokens.get(i).is_some_and(|(_, t)| matches!(t, Token::Word(_)));
    if !is(using + 1, &Token::LParen) {
        // `USING id`, `USING c.id`
        let qualified = is(using + 2, &Token::Period) && name(using + 3);
        let at = if qualified { using + 3 } else { using + 1 };
        (name(at) && !is(at + 1, &Token::LParen) && !is(at + 1, &Token::Eq)).then_some(())?;
        let span = Span::new(tokens[using + 1].0.start, tokens[at].0.start);
        return Some(vec![Edit { span, text: "(".into() }, insert(tokens[at].0.end, ")")]);
    }
    let close = (using + 2..tokens.len()).find(|&i| is(i, &Token::RParen))?;
    // `USING (a.id = b.id)` is a condition for ON.
    let equal = (using + 2..close).any(|i| is(i, &Token::Eq));
    if equal {
        let plain = (using + 2..close).all(|i| name(i) || is(i, &Token::Period) || is(i, &Token::Eq));
        return plain.then(|| vec![Edit { span: tokens[using].0, text: "ON".into() }]);
    }
    let dots: Vec<usize> =
        (using + 3..close).filter(|&i| is(i, &Token::Period) && name(i - 1) && name(i + 1)).collect();
    let edits: Vec<Edit> =
        dots.iter().map(|&i| delete(Span::new(tokens[i - 1].0.start, tokens[i + 1].0.start))).collect();
    (!edits.is_empty()).then_some(edits)
}
