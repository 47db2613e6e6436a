#![doc = include_str!("null_result.md")]

use crate::context::ReviewContext;
use crate::finding::{Finding, Severity, trimmed_span};
use crate::review::Review;
use crate::rows::{Cell, Rows};
use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `null-result` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "null-result",
    group: RuleGroup::Result,
    error_type: ErrorType::Unknown,
    page: include_str!("null_result.md"),
    ..Rule::DEFAULTS
};

pub(super) fn inspect_rows(review: &Review, rows: &Rows, _: &ReviewContext<'_>, out: &mut Vec<Finding>) {
    let [row] = rows.rows.as_slice() else { return };
    if !row.is_empty() && row.iter().all(|cell| *cell == Cell::Null) {
        out.push(
            Finding::new(
                RULE.code,
                Severity::Warning,
                trimmed_span(&review.source),
                "",
                "the only row holds nothing but NULL",
            )
            .with_advice("The result is NULL: no row was left to compute it from, or the value itself is missing."),
        );
    }
}
