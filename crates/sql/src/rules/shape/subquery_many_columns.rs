#![doc = include_str!("subquery_many_columns.md")]

use sqlparser::ast::{Expr, Spanned};
use sqlparser::tokenizer::{Span as TokenSpan, Token};

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::fixes;
use crate::parse::token_stream::{delete, fix};
use crate::resolve::ArityKind;
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::shape::set_operation_arity::column_count;

/// The `subquery-many-columns` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "subquery-many-columns",
    group: RuleGroup::Shape,
    error_type: ErrorType::Cardinality,
    // The parentheses around a row are outside of the finding's span.
    rewrites: Some(RewriteScope { clauses: &[], tokens: &["(", ")"], moves: false }),
    page: include_str!("subquery_many_columns.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for arity in ctx.resolution.arity_mismatches.iter().filter(|a| a.kind == ArityKind::Subquery) {
        let (wanted, given) = (arity.left, arity.right);
        let span = ctx.query.span(arity.span);
        if let Some(row) = row_members(ctx, arity.span) {
            let message = format!("{} in parentheses are one row, which is not a value here", column_count(given));
            let mut finding = Finding::new(RULE.code, Severity::Error, span, "", message)
                .with_advice("List the values in SELECT without parentheses around them.");
            if fixes::within_fix_budget(ctx, out) {
                finding.fixes.extend(unwrap_row(ctx, row));
            }
            out.push(finding);
            continue;
        }
        out.push(
            Finding::new(
                RULE.code,
                Severity::Error,
                span,
                "",
                format!("the subquery returns {} where {wanted} is expected", column_count(given)),
            )
            .with_advice(format!("The subquery must select {}, not {given}.", column_count(wanted))),
        );
    }
}

/// Returns the members of the row at this span that is an item of a SELECT list.
fn row_members<'s>(ctx: &RuleContext<'s>, place: TokenSpan) -> Option<&'s [Expr]> {
    let items = ctx.resolution.blocks.iter().flat_map(|b| &b.items).filter_map(|i| i.expression);
    items.filter(|e| e.span() == place).find_map(|e| match e {
        Expr::Tuple(members) => Some(members.as_slice()),
        _ => None,
    })
}

/// Removes the parentheses around a row, so that each of its values is an item of its own.
fn unwrap_row(ctx: &RuleContext<'_>, members: &[Expr]) -> Option<Fix> {
    let inside = ctx.query.span(members.first()?.span()).start;
    let tokens = fixes::significant_tokens(ctx);
    let first = tokens.iter().position(|(s, _)| s.start >= inside)?;
    let open = (0..first).rev().find(|&i| tokens[i].1 == Token::LParen)?;
    let mut depth = 0usize;
    for (span, token) in &tokens[open + 1..] {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => {
                let edits = vec![delete(tokens[open].0), delete(*span)];
                return Some(fix(edits, Applicability::Likely, "each value of the row is an item of its own"));
            }
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}
