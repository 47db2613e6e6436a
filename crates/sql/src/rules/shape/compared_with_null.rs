#![doc = include_str!("compared_with_null.md")]

use sqlparser::ast::{BinaryOperator, Expr, Spanned, Value};
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::mend;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "compared-with-null", group: "shape", page: include_str!("compared_with_null.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for operation in &subject.facts.operations {
        let right = match operation.operator {
            BinaryOperator::Eq => "IS",
            BinaryOperator::NotEq => "IS NOT",
            _ => continue,
        };
        let null = matches!(operation.right_node, Expr::Value(v) if v.value == Value::Null);
        if !null {
            continue;
        }
        let (left, null) =
            (subject.query.span(operation.left_node.span()), subject.query.span(operation.right_node.span()));
        let whole = left.join(null);
        let mut finding = Finding::new(
            RULE.code,
            Severity::Warning,
            whole,
            subject.query.text(whole),
            "nothing is equal or unequal to NULL, so this is never true",
        )
        .suggest(Some(format!("{right} NULL")))
        .advise(format!("Compare with NULL by {right} NULL."));
        if mend::worth_mending(subject, out) {
            let between = Span::new(left.end, null.start);
            let sign = mend::words(subject).into_iter().find(|(span, token)| {
                between.start <= span.start
                    && span.end <= between.end
                    && matches!(token, Token::Eq | Token::DoubleEq | Token::Neq)
            });
            finding.fixes.extend(sign.map(|(span, _)| {
                mend::replace(span, right, Applicability::Likely, "only so is a value told from one that is missing")
            }));
        }
        out.push(finding);
    }
}
