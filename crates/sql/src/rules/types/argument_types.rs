#![doc = include_str!("argument_types.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::mend;
use crate::rules::{Rule, Subject, types};
use crate::schema::Type;
use crate::scope::Call;

/// See the page.
pub static RULE: Rule = Rule { code: "argument-types", group: "types", page: include_str!("argument_types.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    if !subject.context.dialect.strict_types {
        return;
    }
    let dialect = subject.context.dialect.name;
    for call in subject.facts.calls.iter().filter(|c| c.aggregate && matches!(c.lower.as_str(), "sum" | "avg")) {
        let kind = call.argument.kind;
        if !matches!(kind, Type::Boolean | Type::Text | Type::Date | Type::Timestamp) {
            continue;
        }
        let name = call.lower.to_uppercase();
        let advice = match kind {
            Type::Boolean => {
                format!("{name} does not take a boolean: count with {name}(CASE WHEN condition THEN 1 ELSE 0 END).")
            }
            _ => format!("{name} does not take {}: CAST the argument to a number.", kind.word()),
        };
        let message = format!("{name} of {} is refused by {dialect}", kind.word());
        let mut finding =
            Finding::new(RULE.code, Severity::Error, subject.query.span(call.place), &call.lower, message)
                .advise(advice);
        finding.fixes.extend(cast(call, kind, subject));
        out.push(finding);
    }
    for operation in subject.facts.operations.iter().filter(|o| *o.operator == BinaryOperator::PGLikeMatch) {
        let kind = operation.left.kind;
        if !(kind.is_numeric() || kind.is_moment() || kind == Type::Boolean) {
            continue;
        }
        let span = types::span_of(subject.query, operation.left_node);
        let text = subject.query.text(span);
        let kind = kind.word();
        out.push(
            Finding::new(
                RULE.code,
                Severity::Error,
                span,
                text,
                format!("LIKE compares text, and `{text}` is of type {kind}"),
            )
            .suggest(Some(format!("CAST({text} AS VARCHAR)")))
            .mend(mend::replace(
                span,
                format!("CAST({text} AS VARCHAR)"),
                Applicability::Safe,
                "LIKE compares text, which other engines make of the value themselves",
            ))
            .advise(format!(
                "{text} is of type {kind}, not text: compare it as {kind}, or CAST it to text before LIKE."
            )),
        );
    }
}

/// A condition counts one where it holds; text is read as a number.
fn cast(call: &Call<'_>, kind: Type, subject: &Subject<'_>) -> Option<Fix> {
    let (_, arguments) = mend::call(subject, subject.query.span(call.place))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = subject.query.text(*argument).trim();
    match kind {
        Type::Boolean => {
            let why = "engines that add conditions up count one for each that holds";
            Some(mend::replace(*argument, format!("CASE WHEN {text} THEN 1 ELSE 0 END"), Applicability::Safe, why))
        }
        Type::Text => {
            let why = "the numbers are stored as text";
            Some(mend::replace(*argument, format!("CAST({text} AS DECIMAL)"), Applicability::Likely, why))
        }
        _ => None,
    }
}
