#![doc = include_str!("subquery_many_rows.md")]

use sqlparser::ast::{BinaryOperator, Spanned};
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::mend;
use crate::rules::{Rule, Subject, types};
use crate::scope::Operation;

/// See the page.
pub static RULE: Rule =
    Rule { code: "subquery-many-rows", group: "shape", page: include_str!("subquery_many_rows.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let refused = subject.refused_for("subquery-many-rows");
    let fails = refused || subject.context.dialect.many_rows_error;
    for operation in subject.facts.operations.iter().filter(|o| types::compares(o.operator) && !o.is_in) {
        let node = match (operation.left.many_rows, operation.right.many_rows) {
            (_, true) => operation.right_node,
            (true, false) => operation.left_node,
            (false, false) => continue,
        };
        let then = if fails { "and then the query fails" } else { "and only the first is compared" };
        let severity = match (refused, fails) {
            (true, _) => Severity::Error,
            (false, true) => Severity::Warning,
            // Where it runs, it is right more often than wrong.
            (false, false) => Severity::Info,
        };
        let mut finding = Finding::new(
            "subquery-many-rows",
            severity,
            subject.query.span(node.span()),
            "",
            format!("the subquery may give several rows, {then}"),
        )
        .advise("Compare with IN (subquery), or make the subquery give one row (an aggregate, or LIMIT 1).");
        if fails && operation.right.many_rows && mend::worth_mending(subject, out) {
            finding.fixes.extend(any_of_them(operation, subject));
        }
        out.push(finding);
    }
}

/// `=` takes one row, IN any of them.
fn any_of_them(operation: &Operation<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let (text, applicability) = match operation.operator {
        BinaryOperator::Eq => ("IN", Applicability::Likely),
        // None of them, or not all of them: the query does not say.
        BinaryOperator::NotEq => ("NOT IN", Applicability::Suggested),
        _ => return None,
    };
    let from = subject.query.span(operation.left_node.span()).end;
    let to = subject.query.span(operation.right_node.span()).start;
    let tokens = mend::tokens(subject);
    let sign = tokens.iter().find(|t| {
        let span = subject.query.span(t.span);
        matches!(t.token, Token::Eq | Token::DoubleEq | Token::Neq) && from <= span.start && span.end <= to
    })?;
    let why = "the subquery gives several rows, and any of them may be the one";
    Some(mend::replace(subject.query.span(sign.span), text, applicability, why))
}
