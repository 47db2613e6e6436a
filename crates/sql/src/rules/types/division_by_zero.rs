#![doc = include_str!("division_by_zero.md")]

use sqlparser::ast::{BinaryOperator, Expr, Value as Literal};

use crate::dialect::ZeroDivision;
use crate::finding::{Applicability, Edit, Finding, Fix, Severity};
use crate::fixes;
use crate::resolve::{BinaryOperation, Resolution, spans};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::Type;

/// The `division-by-zero` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "division-by-zero",
    group: RuleGroup::Types,
    error_type: ErrorType::DivisionByZero,
    page: include_str!("division_by_zero.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let resolution = ctx.resolution;
    let refused = ctx.has_engine_error("division-by-zero");
    let fails = refused || ctx.context.dialect.zero_division == ZeroDivision::Error;
    let mut guards: Vec<Edit> = Vec::new();
    let first = out.len();
    for operation in &resolution.operations {
        if !matches!(operation.operator, BinaryOperator::Divide | BinaryOperator::Modulo) {
            continue;
        }
        let is_zero = matches!(operation.right.literal, Some(Literal::Number(n, _)) if n.parse::<f64>() == Ok(0.0));
        // A column or a count may be zero in some row; NULLIF handles that.
        let grouped = operation.block.is_some_and(|b| resolution.blocks[b].is_grouped);
        let plain = operation.right.column.is_some() || is_possible_zero_count(operation.right_node, grouped);
        // The database reported that some divisor is zero: it may be any that is not a constant.
        let suspect = refused && operation.right.literal.is_none() && !is_nullif(operation.right_node);
        let may_be_zero = fails && (plain || suspect) && !is_guarded(resolution, operation);
        if !is_zero && !may_be_zero {
            continue;
        }
        // Constants are divided before any row is read. Anything else fails only if a row is
        // evaluated, and floats may yield infinity.
        let integers = operation.left.kind == Type::Integer && operation.right.kind == Type::Integer;
        let always = is_zero && fails && integers && operation.left.literal.is_some();
        let severity = if always || (refused && !is_zero) { Severity::Error } else { Severity::Warning };
        let span = spans::expression_span(ctx.query, operation.right_node);
        let divisor = operation.right_node.to_string();
        let (message, advice) = match (is_zero, fails) {
            (true, _) => (
                format!("division by zero {}", if fails { "fails" } else { "gives NULL" }),
                "The divisor is zero: divide by something else.".to_string(),
            ),
            (false, _) => (
                format!("the query fails if `{divisor}` is ever zero"),
                format!("Guard the division: divide by NULLIF({divisor}, 0)."),
            ),
        };
        let guard = (!is_zero).then(|| format!("NULLIF({}, 0)", ctx.query.text(span)));
        let mut finding = Finding::new("division-by-zero", severity, span, &divisor, message)
            .with_suggestion(guard.clone())
            .with_advice(advice);
        if let Some(text) = guard.filter(|_| fixes::within_fix_budget(ctx, out)) {
            guards.push(Edit { span, text: text.clone() });
            finding.fixes.push(fixes::replace(span, text, Applicability::Likely, NULLIF_REASON));
        }
        out.push(finding);
    }
    // The error does not identify the divisor, so all of them are guarded at once.
    let inside = |a: &Edit, b: &Edit| a != b && b.span.start <= a.span.start && a.span.end <= b.span.end;
    let whole = guards.clone();
    guards.retain(|g| !whole.iter().any(|w| inside(g, w)));
    guards.sort_by_key(|e| (e.span.start, e.span.end));
    for finding in out[first..].iter_mut().filter(|f| refused && !f.fixes.is_empty()) {
        finding.fixes = vec![Fix {
            edits: guards.clone(),
            applicability: Applicability::Likely,
            why: NULLIF_REASON.into(),
            is_tied_with_previous: false,
        }];
    }
}

const NULLIF_REASON: &str =
    "NULLIF makes the result NULL where the divisor is zero, and the other rows stay as they are";

/// Returns whether an expression is NULLIF, which handles zeros already.
fn is_nullif(node: &Expr) -> bool {
    match node {
        Expr::Nested(inner) => is_nullif(inner),
        Expr::Function(call) => call.name.to_string().eq_ignore_ascii_case("nullif"),
        _ => false,
    }
}

/// Returns whether the same SELECT compares the divisor with a number, in WHERE or in a CASE, and
/// so handles zeros already.
fn is_guarded(resolution: &Resolution<'_>, division: &BinaryOperation<'_>) -> bool {
    let divisor = division.right;
    resolution.operations.iter().filter(|o| o.block == division.block && spans::is_comparison(o.operator)).any(|o| {
        let sides = [(o.left, o.left_node, o.right), (o.right, o.right_node, o.left)];
        sides.iter().any(|(side, node, other)| {
            let same = *node == division.right_node || (side.column.is_some() && side.column == divisor.column);
            same && matches!(other.literal, Some(Literal::Number(..)))
        })
    })
}

/// Returns whether a call may be zero: COUNT and SUM may, but COUNT(*) of a group may not.
fn is_possible_zero_count(node: &Expr, grouped: bool) -> bool {
    match node {
        Expr::Function(call) => {
            let text = call.to_string().to_ascii_lowercase();
            text == "count(*)" && !grouped
                || text.starts_with("count(") && text != "count(*)"
                || text.starts_with("sum(")
        }
        Expr::Nested(inner) => is_possible_zero_count(inner, grouped),
        Expr::Cast { expr, .. } => is_possible_zero_count(expr, grouped),
        _ => false,
    }
}
