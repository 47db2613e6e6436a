#![doc = include_str!("subquery_many_columns.md")]

use sqlparser::ast::{Expr, Spanned};
use sqlparser::tokenizer::{Span as Place, Token};

use crate::broken::{cut, fix};
use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::mend;
use crate::rules::shape::set_operation_arity::columns;
use crate::rules::{Rule, Subject};
use crate::scope::ArityKind;

/// See the page.
pub static RULE: Rule =
    Rule { code: "subquery-many-columns", group: "shape", page: include_str!("subquery_many_columns.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for arity in subject.facts.arities.iter().filter(|a| a.kind == ArityKind::Subquery) {
        let (wanted, given) = (arity.left, arity.right);
        let span = subject.query.span(arity.place);
        if let Some(row) = row(subject, arity.place) {
            let message = format!("{} in parentheses are one row, which is no value here", columns(given));
            let mut finding = Finding::new(RULE.code, Severity::Error, span, "", message)
                .advise("List the values in SELECT without parentheses around them.");
            if mend::worth_mending(subject, out) {
                finding.fixes.extend(unwrapped(subject, row));
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
                format!("the subquery gives {} where {wanted} is wanted", columns(given)),
            )
            .advise(format!("The subquery must select {}, not {given}.", columns(wanted))),
        );
    }
}

/// The members of the row that stands there as an item of a SELECT list.
fn row<'s>(subject: &Subject<'s>, place: Place) -> Option<&'s [Expr]> {
    let items = subject.facts.blocks.iter().flat_map(|b| &b.items).filter_map(|i| i.expression);
    items.filter(|e| e.span() == place).find_map(|e| match e {
        Expr::Tuple(members) => Some(members.as_slice()),
        _ => None,
    })
}

/// The parentheses around a row go, so that each of its values is an item of its own.
fn unwrapped(subject: &Subject<'_>, members: &[Expr]) -> Option<Fix> {
    let inside = subject.query.span(members.first()?.span()).start;
    let words = mend::words(subject);
    let first = words.iter().position(|(s, _)| s.start >= inside)?;
    let open = (0..first).rev().find(|&i| words[i].1 == Token::LParen)?;
    let mut depth = 0usize;
    for (span, token) in &words[open + 1..] {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => {
                let edits = vec![cut(words[open].0), cut(*span)];
                return Some(fix(edits, Applicability::Likely, "each value of the row is an item of its own"));
            }
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}
