#![doc = include_str!("division_by_zero.md")]

use sqlparser::ast::{BinaryOperator, Expr, Value as Literal};

use crate::dialect::ZeroDivision;
use crate::finding::{Applicability, Edit, Finding, Fix, Severity};
use crate::mend;
use crate::rules::{Rule, Subject, types};
use crate::schema::Type;
use crate::scope::{Facts, Operation};

/// See the page.
pub static RULE: Rule =
    Rule { code: "division-by-zero", group: "types", page: include_str!("division_by_zero.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let facts = subject.facts;
    let refused = subject.refused_for("division-by-zero");
    let fails = refused || subject.context.dialect.zero_division == ZeroDivision::Error;
    let mut guards: Vec<Edit> = Vec::new();
    let first = out.len();
    for operation in &facts.operations {
        if !matches!(operation.operator, BinaryOperator::Divide | BinaryOperator::Modulo) {
            continue;
        }
        let is_zero = matches!(operation.right.literal, Some(Literal::Number(n, _)) if n.parse::<f64>() == Ok(0.0));
        // A column or a count may be zero in some row; NULLIF has been thought of.
        let grouped = operation.block.is_some_and(|b| facts.blocks[b].grouped);
        let plain = operation.right.column.is_some() || may_count_nothing(operation.right_node, grouped);
        // The database has said that some divisor is zero: then it may be any that is not a constant.
        let suspect = refused && operation.right.literal.is_none() && !is_nullif(operation.right_node);
        let may_be_zero = fails && (plain || suspect) && !is_guarded(facts, operation);
        if !is_zero && !may_be_zero {
            continue;
        }
        // Constants are divided before any row is read; anything else fails only if a row gets there, and floats may
        // give infinity.
        let integers = operation.left.kind == Type::Integer && operation.right.kind == Type::Integer;
        let always = is_zero && fails && integers && operation.left.literal.is_some();
        let severity = if always || (refused && !is_zero) { Severity::Error } else { Severity::Warning };
        let span = types::span_of(subject.query, operation.right_node);
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
        let guard = (!is_zero).then(|| format!("NULLIF({}, 0)", subject.query.text(span)));
        let mut finding =
            Finding::new("division-by-zero", severity, span, &divisor, message).suggest(guard.clone()).advise(advice);
        if let Some(text) = guard.filter(|_| mend::worth_mending(subject, out)) {
            guards.push(Edit { span, text: text.clone() });
            finding.fixes.push(mend::replace(span, text, Applicability::Likely, WHY));
        }
        out.push(finding);
    }
    // Nobody says which divisor was zero, so that all of them are guarded at once.
    let inside = |a: &Edit, b: &Edit| a != b && b.span.start <= a.span.start && a.span.end <= b.span.end;
    let whole = guards.clone();
    guards.retain(|g| !whole.iter().any(|w| inside(g, w)));
    guards.sort_by_key(|e| (e.span.start, e.span.end));
    for finding in out[first..].iter_mut().filter(|f| refused && !f.fixes.is_empty()) {
        finding.fixes =
            vec![Fix { edits: guards.clone(), applicability: Applicability::Likely, why: WHY.into(), tied: false }];
    }
}

const WHY: &str = "NULLIF makes the result NULL where the divisor is zero, and the other rows stay as they are";

/// Whether somebody has thought of the zeros already.
fn is_nullif(node: &Expr) -> bool {
    match node {
        Expr::Nested(inner) => is_nullif(inner),
        Expr::Function(call) => call.name.to_string().eq_ignore_ascii_case("nullif"),
        _ => false,
    }
}

/// Whether the same SELECT compares the divisor with a number, in WHERE or in a CASE: its zeros have been thought of.
fn is_guarded(facts: &Facts<'_>, division: &Operation<'_>) -> bool {
    let divisor = division.right;
    facts.operations.iter().filter(|o| o.block == division.block && types::compares(o.operator)).any(|o| {
        let sides = [(o.left, o.left_node, o.right), (o.right, o.right_node, o.left)];
        sides.iter().any(|(side, node, other)| {
            let same = *node == division.right_node || (side.column.is_some() && side.column == divisor.column);
            same && matches!(other.literal, Some(Literal::Number(..)))
        })
    })
}

/// COUNT and SUM may be zero, but COUNT(*) of a group is not.
fn may_count_nothing(node: &Expr, grouped: bool) -> bool {
    match node {
        Expr::Function(call) => {
            let text = call.to_string().to_ascii_lowercase();
            text == "count(*)" && !grouped
                || text.starts_with("count(") && text != "count(*)"
                || text.starts_with("sum(")
        }
        Expr::Nested(inner) => may_count_nothing(inner, grouped),
        Expr::Cast { expr, .. } => may_count_nothing(expr, grouped),
        _ => false,
    }
}
