#![doc = include_str!("string_concat.md")]

use sqlparser::ast::{BinaryOperator, Spanned, Value as Literal};
use sqlparser::tokenizer::Token;

use crate::finding::{Finding, Severity, Span};
use crate::mend;
use crate::rules::portable::respell;
use crate::rules::{Rule, Subject, types};
use crate::schema::Type;
use crate::scope::Value;

/// See the page.
pub static RULE: Rule =
    Rule { code: "string-concat", group: "portable", page: include_str!("string_concat.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    let first = out.len();
    // The whole of `a || b || c` comes after its parts.
    for operation in subject.facts.operations.iter().rev() {
        let (used, severity, message) = match operation.operator {
            BinaryOperator::StringConcat if !dialect.concat.pipes => {
                ("||", Severity::Warning, format!("in {} `||` means OR", dialect.name))
            }
            BinaryOperator::Plus if joins_text(operation.left, operation.right, dialect.strict_types) => {
                let severity = if dialect.strict_types { Severity::Error } else { Severity::Warning };
                ("+", severity, format!("in {} `+` adds numbers and does not join text", dialect.name))
            }
            _ => continue,
        };
        let span = subject.query.span(operation.left_node.span()).join(subject.query.span(operation.right_node.span()));
        if out[first..].iter().any(|f| f.span.start <= span.start && span.end <= f.span.end) {
            continue;
        }
        let right = if dialect.concat.pipes { "a || b" } else { "CONCAT(a, b)" };
        let mut finding =
            Finding::new("string-concat", severity, span, used, format!("{message}: join text with {right}"))
                .advise(format!("Join text with {right}, not with {used}."));
        let sign = if used == "+" { Token::Plus } else { Token::StringConcat };
        if !mend::worth_mending(subject, out) {
            out.push(finding);
            continue;
        }
        let chain = types::closed(subject.query, whole_chain(span, operation.operator, subject));
        finding.fixes.extend(respell::joined_text(chain, &sign, subject));
        out.push(finding);
    }
}

/// `a + b` is the beginning of `a + b + c`, whose type nobody can know.
fn whole_chain(mut span: Span, operator: &BinaryOperator, subject: &Subject<'_>) -> Span {
    for operation in subject.facts.operations.iter().filter(|o| o.operator == operator) {
        let left = subject.query.span(operation.left_node.span());
        let right = subject.query.span(operation.right_node.span());
        if left.start == span.start && right.end > span.end {
            span = left.join(right);
        }
    }
    span
}

/// Whether both sides are text and at least one cannot be a number. A date plus '1 day' is something else.
fn joins_text(left: Value<'_>, right: Value<'_>, strict: bool) -> bool {
    let both = left.kind == Type::Text && right.kind == Type::Text;
    // Text columns may hold numbers, which a forgiving database adds.
    both && (is_text(left) || is_text(right) || (strict && left.literal.is_none() && right.literal.is_none()))
}

/// A literal that is no number.
fn is_text(value: Value<'_>) -> bool {
    match value.literal {
        Some(Literal::SingleQuotedString(text)) => text.trim().parse::<f64>().is_err() && !text.is_empty(),
        Some(_) | None => false,
    }
}
