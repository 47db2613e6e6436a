//! Findings about the rows that a query returned. These rules report nothing before the query is
//! run.

pub mod empty_result;
pub mod implausible_share;
pub mod null_result;

use crate::context::ReviewContext;
use crate::finding::Finding;
use crate::review::Review;
use crate::rows::{Cell, Rows};
use crate::rule::Rule;

/// Check of the rows that a query returned.
type RowInspector = fn(&Review, &Rows, &ReviewContext<'_>, &mut Vec<Finding>);

/// Rules that inspect rows, each with its check.
static RESULT_RULES: &[(&Rule, RowInspector)] = &[
    (&empty_result::RULE, empty_result::inspect_rows),
    (&null_result::RULE, null_result::inspect_rows),
    (&implausible_share::RULE, implausible_share::inspect_rows),
];

/// Inspects the rows of a query and returns the findings.
pub fn inspect_rows(review: &Review, rows: &Rows, context: &ReviewContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (_, inspect_rule) in RESULT_RULES {
        inspect_rule(review, rows, context, &mut out);
    }
    out.retain(|found| Rule::from_code(found.code).is_none_or(|rule| context.policy.is_rule_enabled(rule)));
    out
}

/// Returns the numeric value of a cell.
fn cell_number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(number) => Some(*number as f64),
        Cell::Number(number) => Some(*number),
        Cell::Decimal(text) | Cell::Text(text) => text.parse().ok(),
        Cell::Null | Cell::Boolean(_) | Cell::Binary(_) => None,
    }
}
