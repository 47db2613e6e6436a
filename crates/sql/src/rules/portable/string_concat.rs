#![doc = include_str!("string_concat.md")]

use sqlparser::ast::{BinaryOperator, Spanned, Value as Literal};

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};
use crate::scope::Value;

/// See the page.
pub static RULE: Rule =
    Rule { code: "string-concat", group: "portable", page: include_str!("string_concat.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    for operation in &subject.facts.operations {
        let (used, severity, message) = match operation.operator {
            BinaryOperator::StringConcat if !dialect.concat.pipes => {
                ("||", Severity::Warning, format!("in {} `||` means OR", dialect.name))
            }
            BinaryOperator::Plus if is_text(operation.left) || is_text(operation.right) => {
                let severity = if dialect.strict_types { Severity::Error } else { Severity::Warning };
                ("+", severity, format!("in {} `+` adds numbers and does not join text", dialect.name))
            }
            _ => continue,
        };
        let right = if dialect.concat.pipes { "a || b" } else { "CONCAT(a, b)" };
        let span = subject.query.span(operation.left_node.span()).join(subject.query.span(operation.right_node.span()));
        out.push(
            Finding::new("string-concat", severity, span, used, format!("{message}: join text with {right}"))
                .advise(format!("Join text with {right}, not with {used}.")),
        );
    }
}

/// A text column, or a literal that is no number.
fn is_text(value: Value<'_>) -> bool {
    match value.literal {
        Some(Literal::SingleQuotedString(text)) => text.trim().parse::<f64>().is_err() && !text.is_empty(),
        Some(_) => false,
        None => false,
    }
}
