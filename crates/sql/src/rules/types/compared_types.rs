#![doc = include_str!("compared_types.md")]

use sqlparser::ast::{Expr, Spanned, Value as Literal};

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject, types};
use crate::schema::Type;
use crate::scope::{Operation, Value};

/// See the page.
pub static RULE: Rule = Rule { code: "compared-types", group: "types", page: include_str!("compared_types.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let strict = subject.context.dialect.strict_types;
    for operation in subject.facts.operations.iter().filter(|o| types::compares(o.operator)) {
        let (l, r) = (operation.left, operation.right);
        if let Some((column, literal, node)) = column_and_text(operation) {
            // An untyped literal takes the column's type: it must read as one.
            if column.kind.is_numeric() && literal.trim().parse::<f64>().is_err() {
                let severity = if strict { Severity::Error } else { Severity::Warning };
                let span = subject.query.span(node.span());
                out.push(
                    Finding::new(
                        "compared-types",
                        severity,
                        span,
                        literal,
                        format!("{} is a number and is compared with the text '{literal}'", name_of(subject, column)),
                    )
                    .advise(format!(
                        "{} is numeric: compare it with a number, or use the column that holds '{literal}'.",
                        name_of(subject, column)
                    )),
                );
            }
            continue;
        }
        if !strict || l.literal.is_some_and(untyped) || r.literal.is_some_and(untyped) || comparable(l.kind, r.kind) {
            continue;
        }
        let span = subject.query.span(operation.left_node.span()).join(subject.query.span(operation.right_node.span()));
        let (lk, rk) = (l.kind.word(), r.kind.word());
        out.push(
            Finding::new(
                "compared-types",
                Severity::Error,
                span,
                subject.query.text(span),
                format!("{lk} is compared with {rk}, which {} refuses", subject.context.dialect.name),
            )
            .advise(format!("{lk} and {rk} cannot be compared: CAST one side to the type of the other.")),
        );
    }
}

fn untyped(literal: &Literal) -> bool {
    matches!(
        literal,
        Literal::SingleQuotedString(_) | Literal::Null | Literal::Placeholder(_) | Literal::EscapedStringLiteral(_)
    )
}

fn comparable(a: Type, b: Type) -> bool {
    a == b
        || a == Type::Any
        || b == Type::Any
        || (a.is_numeric() && b.is_numeric())
        || (a.is_moment() && b.is_moment())
        || matches!((a, b), (Type::Json, _) | (_, Type::Json) | (Type::Array, _) | (_, Type::Array))
}

/// A column on one side and a text literal on the other.
fn column_and_text<'a>(o: &Operation<'a>) -> Option<(Value<'a>, &'a str, &'a Expr)> {
    for (side, other, node) in [(o.left, o.right, o.right_node), (o.right, o.left, o.left_node)] {
        if let (Some(_), Some(Literal::SingleQuotedString(text))) = (side.column, other.literal) {
            return Some((side, text.as_str(), node));
        }
    }
    None
}

fn name_of(subject: &Subject<'_>, value: Value<'_>) -> String {
    let Some((source, i)) = value.column else { return "it".into() };
    subject.facts.sources[source].column_names().get(i).map_or("it".into(), |n| format!("`{n}`"))
}
