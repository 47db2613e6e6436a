#![doc = include_str!("division_by_zero.md")]

use sqlparser::ast::{BinaryOperator, Expr, Spanned, Value as Literal};

use crate::dialect::ZeroDivision;
use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "division-by-zero", group: "types", page: include_str!("division_by_zero.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let fails = subject.context.dialect.zero_division == ZeroDivision::Error;
    for operation in &subject.facts.operations {
        if !matches!(operation.operator, BinaryOperator::Divide | BinaryOperator::Modulo) {
            continue;
        }
        let is_zero = matches!(operation.right.literal, Some(Literal::Number(n, _)) if n.parse::<f64>() == Ok(0.0));
        // A column or a count may be zero in some row; a literal is not, and NULLIF has been thought of.
        let may_be_zero = fails
            && operation.right.literal.is_none()
            && (operation.right.column.is_some() || is_count(operation.right_node));
        if !is_zero && !may_be_zero {
            continue;
        }
        let severity = if is_zero && fails { Severity::Error } else { Severity::Warning };
        let span = subject.query.span(operation.right_node.span());
        let divisor = subject.query.text(span);
        let message = match (is_zero, fails) {
            (true, true) => "division by zero fails".to_string(),
            (true, false) => "division by zero gives NULL".to_string(),
            (false, _) => format!("the query fails if `{divisor}` is ever zero"),
        };
        out.push(
            Finding::new("division-by-zero", severity, span, divisor, message)
                .suggest((!is_zero && !divisor.is_empty()).then(|| format!("NULLIF({divisor}, 0)")))
                .advise(format!("Guard the division: divide by NULLIF({divisor}, 0).")),
        );
    }
}

fn is_count(node: &Expr) -> bool {
    match node {
        Expr::Function(call) => {
            call.name.to_string().eq_ignore_ascii_case("count") || call.name.to_string().eq_ignore_ascii_case("sum")
        }
        Expr::Nested(inner) => is_count(inner),
        Expr::Cast { expr, .. } => is_count(expr),
        _ => false,
    }
}
