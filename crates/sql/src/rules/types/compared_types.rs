#![doc = include_str!("compared_types.md")]

use sqlparser::ast::{Expr, Spanned, Value as Literal};

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::mend;
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
            if strict
                && !subject.context.dialect.literals_adapt
                && (column.kind.is_numeric() || column.kind.is_moment())
            {
                out.push(typed_literal(subject, column, literal, node));
                continue;
            }
            // An untyped literal takes the column's type: it must read as one.
            let is_boolean = column.kind == Type::Boolean && !strict && is_boolean_word(literal);
            if (column.kind.is_numeric() || is_boolean) && !reads_as_number(literal) {
                let severity = if strict { Severity::Error } else { Severity::Warning };
                let span = subject.query.span(node.span());
                let finding = with_boolean_fix(
                    Finding::new(
                        "compared-types",
                        severity,
                        span,
                        literal,
                        format!("{} is a number and is compared with the text '{literal}'", name_of(subject, column)),
                    )
                    .advise(format!(
                        "{} is numeric: compare it with a number, or use the column that holds '{literal}'.",
                        name_of(subject, column).trim_matches('`')
                    )),
                    column,
                    literal,
                    subject,
                );
                out.push(finding);
            }
            continue;
        }
        if !strict || l.literal.is_some_and(untyped) || r.literal.is_some_and(untyped) || comparable(l.kind, r.kind) {
            continue;
        }
        let span = types::span_of(subject.query, operation.left_node)
            .join(types::span_of(subject.query, operation.right_node));
        let (lk, rk) = (l.kind.word(), r.kind.word());
        let (left, dialect) = (operation.left_node, subject.context.dialect.name);
        // `x IN (subquery)` has no node of its own on the right.
        let right = match std::ptr::eq(left, operation.right_node) {
            true => format!("the subquery gives {rk}"),
            false => format!("`{}` is {rk}", operation.right_node),
        };
        let mut finding = Finding::new(
            "compared-types",
            Severity::Error,
            span,
            subject.query.text(span),
            format!("`{left}` is {lk} and {right}: {dialect} does not compare them"),
        )
        .advise(if l.kind.is_moment() != r.kind.is_moment() && (l.kind.is_numeric() || r.kind.is_numeric()) {
            format!("{lk} and {rk} cannot be compared: write a date, or compare EXTRACT(YEAR FROM …) with the number.")
        } else {
            format!("{lk} and {rk} cannot be compared: CAST one side to the type of the other.")
        });
        finding.fixes.extend(cast(operation, subject));
        out.push(finding);
    }
}

/// Words for the two truth values, with the number that a column holds for them.
const BOOLEANS: &[(&str, u8)] =
    &[("true", 1), ("yes", 1), ("y", 1), ("t", 1), ("on", 1), ("false", 0), ("no", 0), ("n", 0), ("f", 0), ("off", 0)];

fn is_boolean_word(literal: &str) -> bool {
    BOOLEANS.iter().any(|(word, _)| word.eq_ignore_ascii_case(literal.trim()))
}

/// Adds a fix where a word for a truth value is compared with a column that holds nothing but 0 and 1.
fn with_boolean_fix(finding: Finding, column: Value<'_>, literal: &str, subject: &Subject<'_>) -> Finding {
    let Some((_, number)) = BOOLEANS.iter().find(|(word, _)| word.eq_ignore_ascii_case(literal.trim())) else {
        return finding;
    };
    let stored = column.column.and_then(|(source, index)| subject.facts.sources[source].origin(index));
    let Some((table, stored)) = stored.filter(|_| finding.severity == Severity::Warning) else { return finding };
    // One letter is a word for a truth value only where the column is declared to hold one.
    if literal.trim().len() == 1 && column.kind != Type::Boolean {
        return finding;
    }
    let dialect = subject.context.dialect;
    let table: Vec<String> = table.full_name().split('.').map(|part| dialect.quoted(part)).collect();
    let (table, name) = (table.join("."), dialect.quoted(&stored.name));
    let why = format!("`{}` holds only 0 and 1", stored.name);
    let fix = mend::replace(finding.span, number.to_string(), Applicability::Safe, why);
    finding
        .prove(format!("SELECT 1 FROM {table} WHERE {name} IN (0, 1) LIMIT 1"), true)
        .prove(format!("SELECT 1 FROM {table} WHERE {name} NOT IN (0, 1) LIMIT 1"), false)
        .mend(fix)
}

/// Where a literal in quotes is text and nothing else.
fn typed_literal(subject: &Subject<'_>, column: Value<'_>, literal: &str, node: &Expr) -> Finding {
    let (name, kind) = (name_of(subject, column), column.kind.word());
    let right = match column.kind {
        Type::Date => format!("DATE '{literal}'"),
        Type::Timestamp => format!("TIMESTAMP '{literal}'"),
        _ => literal.to_string(),
    };
    let dialect = subject.context.dialect.name;
    let message = format!("{name} is {kind} and '{literal}' is text: {dialect} does not compare them");
    Finding::new(RULE.code, Severity::Error, subject.query.span(node.span()), literal, message)
        .suggest(Some(right.clone()))
        .mend(mend::replace(
            subject.query.span(node.span()),
            right.clone(),
            Applicability::Likely,
            format!("{name} is {kind}, and so is this"),
        ))
        .advise(format!("{} is {kind}: write {right}, not the text '{literal}'.", name.trim_matches('`')))
}

/// `12`, ` 1e3`, `1_000` and `0xff`: what some database takes for a number.
fn reads_as_number(text: &str) -> bool {
    let text = text.trim().replace('_', "").to_ascii_lowercase();
    let other_base = ["0x", "0o", "0b"].iter().any(|base| text.trim_start_matches(['+', '-']).starts_with(base));
    other_base || text.trim_start_matches('$').parse::<f64>().is_ok()
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

/// A number that is compared with text is written as text; a numeric column is cast.
fn cast(operation: &Operation<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let sides = [(operation.left, operation.left_node), (operation.right, operation.right_node)];
    let text = sides.iter().any(|(v, _)| v.kind == Type::Text);
    let (value, node) = sides.iter().find(|(v, _)| v.kind.is_numeric()).filter(|_| text)?;
    let span = types::span_of(subject.query, node);
    let written = subject.query.text(span);
    Some(match value.literal {
        Some(_) => mend::replace(
            span,
            format!("'{written}'"),
            Applicability::Safe,
            "the column holds text, so the number is compared as text",
        ),
        None => mend::replace(
            span,
            format!("CAST({written} AS VARCHAR)"),
            Applicability::Likely,
            "one side is text, so the other is compared as text",
        ),
    })
}
