#![doc = include_str!("type_mismatch.md")]

use sqlparser::ast::{Expr, Spanned, Value as Literal};

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::fixes;
use crate::resolve::{BinaryOperation, ExprInfo, spans};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::Type;

/// The `type-mismatch` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "type-mismatch",
    group: RuleGroup::Types,
    error_type: ErrorType::TypeMismatch,
    page: include_str!("type_mismatch.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let strict = ctx.context.dialect.strict_types;
    for operation in ctx.resolution.operations.iter().filter(|o| spans::is_comparison(o.operator)) {
        let (l, r) = (operation.left, operation.right);
        if let Some((column, literal, node)) = column_and_text(operation) {
            if strict
                && !ctx.context.dialect.literals_adapt
                && (column.kind.is_numeric() || column.kind.is_date_or_timestamp())
            {
                out.push(typed_literal_finding(ctx, column, literal, node));
                continue;
            }
            // An untyped literal takes the column's type, so it must parse as one.
            let is_boolean = column.kind == Type::Boolean && !strict && is_boolean_word(literal);
            if (column.kind.is_numeric() || is_boolean) && !reads_as_number(literal) {
                let severity = if strict { Severity::Error } else { Severity::Warning };
                let span = ctx.query.span(node.span());
                let finding = with_boolean_fix(
                    Finding::new(
                        "type-mismatch",
                        severity,
                        span,
                        literal,
                        format!("{} is a number and is compared with the text '{literal}'", column_name(ctx, column)),
                    )
                    .with_advice(format!(
                        "{} is numeric: compare it with a number, or use the column that holds '{literal}'.",
                        column_name(ctx, column).trim_matches('`')
                    )),
                    column,
                    literal,
                    ctx,
                );
                out.push(finding);
            }
            continue;
        }
        if !strict
            || l.literal.is_some_and(is_untyped)
            || r.literal.is_some_and(is_untyped)
            || is_comparable(l.kind, r.kind)
        {
            continue;
        }
        let span = spans::expression_span(ctx.query, operation.left_node)
            .join(spans::expression_span(ctx.query, operation.right_node));
        let (lk, rk) = (l.kind.as_str(), r.kind.as_str());
        let (left, dialect) = (operation.left_node, ctx.context.dialect.name);
        // `x IN (subquery)` has no node of its own on the right.
        let right = match std::ptr::eq(left, operation.right_node) {
            true => format!("the subquery returns {rk}"),
            false => format!("`{}` is {rk}", operation.right_node),
        };
        let mut finding = Finding::new(
            "type-mismatch",
            Severity::Error,
            span,
            ctx.query.text(span),
            format!("`{left}` is {lk} and {right}: {dialect} does not compare them"),
        )
        .with_advice(
            if l.kind.is_date_or_timestamp() != r.kind.is_date_or_timestamp()
                && (l.kind.is_numeric() || r.kind.is_numeric())
            {
                format!(
                    "{lk} and {rk} cannot be compared: write a date, or compare EXTRACT(YEAR FROM …) with the number."
                )
            } else {
                format!("{lk} and {rk} cannot be compared: CAST one side to the type of the other.")
            },
        );
        finding.fixes.extend(cast_side(operation, ctx));
        out.push(finding);
    }
}

/// Literals for the two truth values, with the number that a column contains for them.
const BOOLEANS: &[(&str, u8)] =
    &[("true", 1), ("yes", 1), ("y", 1), ("t", 1), ("on", 1), ("false", 0), ("no", 0), ("n", 0), ("f", 0), ("off", 0)];

fn is_boolean_word(literal: &str) -> bool {
    BOOLEANS.iter().any(|(word, _)| word.eq_ignore_ascii_case(literal.trim()))
}

/// Adds a fix if a literal for a truth value is compared with a column that contains nothing but 0
/// and 1.
fn with_boolean_fix(finding: Finding, column: ExprInfo<'_>, literal: &str, ctx: &RuleContext<'_>) -> Finding {
    let Some((_, number)) = BOOLEANS.iter().find(|(word, _)| word.eq_ignore_ascii_case(literal.trim())) else {
        return finding;
    };
    let stored = column.column.and_then(|(source, index)| ctx.resolution.sources[source].origin(index));
    let Some((table, stored)) = stored.filter(|_| finding.severity == Severity::Warning) else { return finding };
    // A single letter is a truth value only if the column is declared as boolean.
    if literal.trim().len() == 1 && column.kind != Type::Boolean {
        return finding;
    }
    let dialect = ctx.context.dialect;
    let table: Vec<String> = table.full_name().split('.').map(|part| dialect.quote_identifier(part)).collect();
    let (table, name) = (table.join("."), dialect.quote_identifier(&stored.name));
    let why = format!("`{}` holds only 0 and 1", stored.name);
    let fix = fixes::replace(finding.span, number.to_string(), Applicability::Safe, why);
    finding
        .with_proof(format!("SELECT 1 FROM {table} WHERE {name} IN (0, 1) LIMIT 1"), true)
        .with_proof(format!("SELECT 1 FROM {table} WHERE {name} NOT IN (0, 1) LIMIT 1"), false)
        .with_fix(fix)
}

/// Reports a quoted literal in a dialect that treats it as text and nothing else.
fn typed_literal_finding(ctx: &RuleContext<'_>, column: ExprInfo<'_>, literal: &str, node: &Expr) -> Finding {
    let (name, kind) = (column_name(ctx, column), column.kind.as_str());
    let right = match column.kind {
        Type::Date => format!("DATE '{literal}'"),
        Type::Timestamp => format!("TIMESTAMP '{literal}'"),
        _ => literal.to_string(),
    };
    let dialect = ctx.context.dialect.name;
    let message = format!("{name} is {kind} and '{literal}' is text: {dialect} does not compare them");
    Finding::new(RULE.code, Severity::Error, ctx.query.span(node.span()), literal, message)
        .with_suggestion(Some(right.clone()))
        .with_fix(fixes::replace(
            ctx.query.span(node.span()),
            right.clone(),
            Applicability::Likely,
            format!("{name} is {kind}, and so is this"),
        ))
        .with_advice(format!("{} is {kind}: write {right}, not the text '{literal}'.", name.trim_matches('`')))
}

/// Returns whether some database reads text as a number: `12`, ` 1e3`, `1_000` and `0xff`.
fn reads_as_number(text: &str) -> bool {
    let text = text.trim().replace('_', "").to_ascii_lowercase();
    let other_base = ["0x", "0o", "0b"].iter().any(|base| text.trim_start_matches(['+', '-']).starts_with(base));
    other_base || text.trim_start_matches('$').parse::<f64>().is_ok()
}

fn is_untyped(literal: &Literal) -> bool {
    matches!(
        literal,
        Literal::SingleQuotedString(_) | Literal::Null | Literal::Placeholder(_) | Literal::EscapedStringLiteral(_)
    )
}

fn is_comparable(a: Type, b: Type) -> bool {
    a == b
        || a == Type::Any
        || b == Type::Any
        || (a.is_numeric() && b.is_numeric())
        || (a.is_date_or_timestamp() && b.is_date_or_timestamp())
        || matches!((a, b), (Type::Json, _) | (_, Type::Json) | (Type::Array, _) | (_, Type::Array))
}

/// Returns the column on one side and the text literal on the other.
fn column_and_text<'a>(o: &BinaryOperation<'a>) -> Option<(ExprInfo<'a>, &'a str, &'a Expr)> {
    for (side, other, node) in [(o.left, o.right, o.right_node), (o.right, o.left, o.left_node)] {
        if let (Some(_), Some(Literal::SingleQuotedString(text))) = (side.column, other.literal) {
            return Some((side, text.as_str(), node));
        }
    }
    None
}

fn column_name(ctx: &RuleContext<'_>, value: ExprInfo<'_>) -> String {
    let Some((source, i)) = value.column else { return "it".into() };
    ctx.resolution.sources[source].column_names().get(i).map_or("it".into(), |n| format!("`{n}`"))
}

/// Writes a number that is compared with text as text, or casts a numeric column.
fn cast_side(operation: &BinaryOperation<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    let sides = [(operation.left, operation.left_node), (operation.right, operation.right_node)];
    let text = sides.iter().any(|(v, _)| v.kind == Type::Text);
    let (value, node) = sides.iter().find(|(v, _)| v.kind.is_numeric()).filter(|_| text)?;
    let span = spans::expression_span(ctx.query, node);
    let written = ctx.query.text(span);
    Some(match value.literal {
        Some(_) => fixes::replace(
            span,
            format!("'{written}'"),
            Applicability::Safe,
            "the column holds text, so the number is compared as text",
        ),
        None => fixes::replace(
            span,
            format!("CAST({written} AS VARCHAR)"),
            Applicability::Likely,
            "one side is text, so the other is compared as text",
        ),
    })
}
