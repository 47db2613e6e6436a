//! What the rows that came back say against the query. These rules look at rows only: before the query is run they are silent.

pub mod empty_result;
pub mod implausible_share;
pub mod null_result;

use crate::finding::Finding;
use crate::review::{Context, Review};
use crate::rows::{Cell, Rows};
use crate::rules::Rule;

/// Looks at rows.
type Inspect = fn(&Review, &Rows, &Context<'_>, &mut Vec<Finding>);

/// The rules that look at rows, each with how it does.
static INSPECTED: &[(&Rule, Inspect)] = &[
    (&empty_result::RULE, empty_result::inspect),
    (&null_result::RULE, null_result::inspect),
    (&implausible_share::RULE, implausible_share::inspect),
];

/// What the rows of a query say against it.
pub fn inspect(review: &Review, rows: &Rows, context: &Context<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (_, inspect) in INSPECTED {
        inspect(review, rows, context, &mut out);
    }
    out.retain(|found| Rule::named(found.code).is_none_or(|rule| context.policy.checks(rule)));
    out
}

/// The number that a cell is.
fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(number) => Some(*number as f64),
        Cell::Number(number) => Some(*number),
        Cell::Decimal(text) | Cell::Text(text) => text.parse().ok(),
        Cell::Null | Cell::Boolean(_) | Cell::Binary(_) => None,
    }
}
