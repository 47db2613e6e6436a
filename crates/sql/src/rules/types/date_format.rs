#![doc = include_str!("date_format.md")]

use sqlparser::ast::{Spanned, Value as Literal};

use crate::finding::{Finding, Severity};
use crate::resolve::spans;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `date-format` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "date-format",
    group: RuleGroup::Types,
    error_type: ErrorType::TypeMismatch,
    page: include_str!("date_format.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for operation in ctx.resolution.operations.iter().filter(|o| spans::is_comparison(o.operator)) {
        let sides = [
            (operation.left, operation.right, operation.right_node),
            (operation.right, operation.left, operation.left_node),
        ];
        for (side, other, node) in sides {
            let (true, Some(Literal::SingleQuotedString(text))) =
                (side.kind.is_date_or_timestamp() && side.column.is_some(), other.literal)
            else {
                continue;
            };
            if is_iso(text) || is_special(text) {
                continue;
            }
            out.push(
                Finding::new(
                    "date-format",
                    Severity::Warning,
                    ctx.query.span(node.span()),
                    text,
                    format!("'{text}' is not a date in the form YYYY-MM-DD"),
                )
                .with_advice(format!("Write dates as 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM:SS', not '{text}'.")),
            );
        }
    }
}

/// Returns whether text is a date, or a prefix of one, in the form that compares as text: `2024`,
/// `2024-01`, `2024-01-31 10:00`.
fn is_iso(text: &str) -> bool {
    let shape: String = text.trim().chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let date = "0000-00-00";
    let n = shape.len().min(date.len());
    shape.len() >= 4
        && shape.is_char_boundary(n)
        && shape[..n] == date[..n]
        && matches!(shape.as_bytes().get(10), None | Some(b' ' | b'T'))
}

fn is_special(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "now" | "today" | "yesterday" | "tomorrow" | "infinity" | "-infinity" | "epoch"
    )
}
