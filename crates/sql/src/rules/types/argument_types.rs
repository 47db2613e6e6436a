#![doc = include_str!("argument_types.md")]

use sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::mend;
use crate::rules::{Rule, Subject, types};
use crate::schema::Type;
use crate::scope::{Call, Meaning, place};

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
    rounded_floats(subject, out);
    numbers_as_conditions(subject, out);
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

/// `ROUND(x::float, 2)`, where floats are rounded to whole numbers only.
fn rounded_floats(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    if !subject.context.dialect.rounds_decimals_only {
        return;
    }
    for call in subject.facts.calls.iter().filter(|c| c.lower == "round" && c.arguments == 2) {
        let Some(argument) = call.node.and_then(|n| first_argument(&n.args)) else { continue };
        if !is_float(argument, subject, 0) {
            continue;
        }
        let dialect = subject.context.dialect.name;
        let span = subject.query.span(call.place);
        let message = format!("{dialect} rounds decimals to a number of digits, and this is a float");
        let mut finding = Finding::new(RULE.code, Severity::Error, span, &call.lower, message)
            .advise("ROUND with a number of digits takes a decimal: write ROUND(CAST(… AS NUMERIC), digits).");
        if mend::worth_mending(subject, out)
            && let Some((_, arguments)) = mend::call(subject, span)
            && let [value, _] = arguments.as_slice()
        {
            let text = format!("CAST({} AS NUMERIC)", subject.query.text(*value).trim());
            let why = "a float has the same value as a decimal, and decimals can be rounded";
            finding.fixes.push(mend::replace(*value, text, Applicability::Safe, why));
        }
        out.push(finding);
    }
}

/// `WHERE active AND …`, where `active` is a number.
fn numbers_as_conditions(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let joins = |o: &BinaryOperator| matches!(o, BinaryOperator::And | BinaryOperator::Or);
    for operation in subject.facts.operations.iter().filter(|o| joins(o.operator)) {
        let sides = [(operation.left, operation.left_node), (operation.right, operation.right_node)];
        for (value, node) in sides.into_iter().filter(|(v, _)| v.kind.is_numeric()) {
            let span = types::span_of(subject.query, node);
            let (text, kind) = (subject.query.text(span), value.kind.word());
            let message = format!("{} joins conditions, and `{text}` is of type {kind}", operation.operator);
            let mut finding = Finding::new(RULE.code, Severity::Error, span, text, message)
                .advise(format!("{text} is of type {kind}, not a condition: compare it with a number."));
            if value.column.is_some() && mend::worth_mending(subject, out) {
                let why = "engines that take a number for a condition let it hold unless it is zero";
                finding.fixes.push(mend::replace(span, format!("{text} <> 0"), Applicability::Safe, why));
            }
            out.push(finding);
        }
    }
}

fn first_argument(arguments: &FunctionArguments) -> Option<&Expr> {
    let FunctionArguments::List(list) = arguments else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Nobody writes a float that is further inside than this.
const DEEPEST: usize = 50;

/// Whether an expression is known to give a float: what a float is combined with becomes one.
fn is_float(node: &Expr, subject: &Subject<'_>, depth: usize) -> bool {
    let inner = |e: &Expr| depth < DEEPEST && is_float(e, subject, depth + 1);
    match node {
        Expr::Nested(e) | Expr::UnaryOp { expr: e, .. } => inner(e),
        Expr::Cast { data_type, .. } => names_float(&data_type.to_string()),
        Expr::BinaryOp { left, op, right } => {
            use BinaryOperator::{Divide, Minus, Multiply, Plus};
            matches!(op, Plus | Minus | Multiply | Divide) && (inner(left) || inner(right))
        }
        Expr::Case { conditions, else_result, .. } => {
            conditions.iter().any(|c| inner(&c.result)) || else_result.as_ref().is_some_and(|e| inner(e))
        }
        Expr::Function(call) => {
            let same = ["sum", "avg", "min", "max", "abs", "coalesce", "nullif"];
            let name = call.name.to_string().to_lowercase();
            same.contains(&name.as_str()) && first_argument(&call.args).is_some_and(inner)
        }
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
            let at = place(node);
            let meaning = subject.facts.references.iter().find(|r| r.place == at).map(|r| &r.meaning);
            let Some(Meaning::Column(source, column)) = meaning else { return false };
            subject.facts.sources[*source].origin(*column).is_some_and(|(_, c)| names_float(&c.type_name))
        }
        _ => false,
    }
}

fn names_float(kind: &str) -> bool {
    let lower = kind.trim().to_ascii_lowercase();
    ["real", "float", "double"].iter().any(|k| lower.starts_with(k)) && !lower.ends_with(']')
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
