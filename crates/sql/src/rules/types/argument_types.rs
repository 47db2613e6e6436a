#![doc = include_str!("argument_types.md")]

use sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::fixes;
use crate::resolve::{ColumnBinding, FunctionCall, expr_span, spans};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::Type;

/// The `argument-types` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "argument-types",
    group: RuleGroup::Types,
    error_type: ErrorType::TypeMismatch,
    page: include_str!("argument_types.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    if !ctx.context.dialect.strict_types {
        return;
    }
    let dialect = ctx.context.dialect.name;
    for call in ctx.resolution.calls.iter().filter(|c| c.is_aggregate && matches!(c.lower_name.as_str(), "sum" | "avg"))
    {
        let kind = call.first_argument.kind;
        if !matches!(kind, Type::Boolean | Type::Text | Type::Date | Type::Timestamp) {
            continue;
        }
        let name = call.lower_name.to_uppercase();
        let advice = match kind {
            Type::Boolean => {
                format!("{name} does not take a boolean: count with {name}(CASE WHEN condition THEN 1 ELSE 0 END).")
            }
            _ => format!("{name} does not take {}: CAST the argument to a number.", kind.as_str()),
        };
        let message = format!("{name} of {} is refused by {dialect}", kind.as_str());
        let mut finding =
            Finding::new(RULE.code, Severity::Error, ctx.query.span(call.span), &call.lower_name, message)
                .with_advice(advice);
        finding.fixes.extend(cast_argument(call, kind, ctx));
        out.push(finding);
    }
    check_rounded_floats(ctx, out);
    check_numeric_conditions(ctx, out);
    for operation in ctx.resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::PGLikeMatch) {
        let kind = operation.left.kind;
        if !(kind.is_numeric() || kind.is_date_or_timestamp() || kind == Type::Boolean) {
            continue;
        }
        let span = spans::expression_span(ctx.query, operation.left_node);
        let text = ctx.query.text(span);
        let kind = kind.as_str();
        out.push(
            Finding::new(
                RULE.code,
                Severity::Error,
                span,
                text,
                format!("LIKE compares text, and `{text}` is of type {kind}"),
            )
            .with_suggestion(Some(format!("CAST({text} AS VARCHAR)")))
            .with_fix(fixes::replace(
                span,
                format!("CAST({text} AS VARCHAR)"),
                Applicability::Safe,
                "LIKE compares text, and other engines convert the value implicitly",
            ))
            .with_advice(format!(
                "{text} is of type {kind}, not text: compare it as {kind}, or CAST it to text before LIKE."
            )),
        );
    }
}

/// Reports `ROUND(x::float, 2)` in dialects that round floats to whole numbers only.
fn check_rounded_floats(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    if !ctx.context.dialect.rounds_decimals_only {
        return;
    }
    for call in ctx.resolution.calls.iter().filter(|c| c.lower_name == "round" && c.argument_count == 2) {
        let Some(argument) = call.node.and_then(|n| first_argument(&n.args)) else { continue };
        if !is_float(argument, ctx, 0) {
            continue;
        }
        let dialect = ctx.context.dialect.name;
        let span = ctx.query.span(call.span);
        let message = format!("{dialect} rounds decimals to a number of digits, and this is a float");
        let mut finding = Finding::new(RULE.code, Severity::Error, span, &call.lower_name, message)
            .with_advice("ROUND with a number of digits takes a decimal: write ROUND(CAST(… AS NUMERIC), digits).");
        if fixes::within_fix_budget(ctx, out)
            && let Some((_, arguments)) = fixes::call_span(ctx, span)
            && let [value, _] = arguments.as_slice()
        {
            let text = format!("CAST({} AS NUMERIC)", ctx.query.text(*value).trim());
            let why = "a float has the same value as a decimal, and decimals can be rounded";
            finding.fixes.push(fixes::replace(*value, text, Applicability::Safe, why));
        }
        out.push(finding);
    }
}

/// Reports `WHERE active AND …`, if `active` is a number.
fn check_numeric_conditions(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let joins = |o: &BinaryOperator| matches!(o, BinaryOperator::And | BinaryOperator::Or);
    for operation in ctx.resolution.operations.iter().filter(|o| joins(o.operator)) {
        let sides = [(operation.left, operation.left_node), (operation.right, operation.right_node)];
        for (value, node) in sides.into_iter().filter(|(v, _)| v.kind.is_numeric()) {
            let span = spans::expression_span(ctx.query, node);
            let (text, kind) = (ctx.query.text(span), value.kind.as_str());
            let message = format!("{} joins conditions, and `{text}` is of type {kind}", operation.operator);
            let mut finding = Finding::new(RULE.code, Severity::Error, span, text, message)
                .with_advice(format!("{text} is of type {kind}, not a condition: compare it with a number."));
            if value.column.is_some() && fixes::within_fix_budget(ctx, out) {
                let why = "engines that accept a number as a condition treat all but zero as true";
                finding.fixes.push(fixes::replace(span, format!("{text} <> 0"), Applicability::Safe, why));
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

/// Maximum depth at which a float is searched for; no genuine query nests it deeper.
const MAX_EXPRESSION_DEPTH: usize = 50;

/// Returns whether an expression is known to yield a float: any operation on a float does.
fn is_float(node: &Expr, ctx: &RuleContext<'_>, depth: usize) -> bool {
    let inner = |e: &Expr| depth < MAX_EXPRESSION_DEPTH && is_float(e, ctx, depth + 1);
    match node {
        Expr::Nested(e) | Expr::UnaryOp { expr: e, .. } => inner(e),
        Expr::Cast { data_type, .. } => is_float_type(&data_type.to_string()),
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
            let at = expr_span(node);
            let binding = ctx.resolution.references.iter().find(|r| r.span == at).map(|r| &r.binding);
            let Some(ColumnBinding::Column(source, column)) = binding else { return false };
            ctx.resolution.sources[*source].origin(*column).is_some_and(|(_, c)| is_float_type(&c.type_name))
        }
        _ => false,
    }
}

fn is_float_type(kind: &str) -> bool {
    let lower = kind.trim().to_ascii_lowercase();
    ["real", "float", "double"].iter().any(|k| lower.starts_with(k)) && !lower.ends_with(']')
}

/// Returns a fix that converts an argument: a condition counts one if it holds, text is read as a
/// number.
fn cast_argument(call: &FunctionCall<'_>, kind: Type, ctx: &RuleContext<'_>) -> Option<Fix> {
    let (_, arguments) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    let [argument] = arguments.as_slice() else { return None };
    let text = ctx.query.text(*argument).trim();
    match kind {
        Type::Boolean => {
            let why = "engines that sum conditions count 1 for each that is true";
            Some(fixes::replace(*argument, format!("CASE WHEN {text} THEN 1 ELSE 0 END"), Applicability::Safe, why))
        }
        Type::Text => {
            let why = "the numbers are stored as text";
            Some(fixes::replace(*argument, format!("CAST({text} AS DECIMAL)"), Applicability::Likely, why))
        }
        _ => None,
    }
}
