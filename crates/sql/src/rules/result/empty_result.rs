#![doc = include_str!("empty_result.md")]

use crate::context::ReviewContext;
use crate::finding::{Finding, Severity, trimmed_span};
use crate::review::Review;
use crate::rows::Rows;
use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `empty-result` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "empty-result",
    group: RuleGroup::Result,
    error_type: ErrorType::Unknown,
    page: include_str!("empty_result.md"),
    ..Rule::DEFAULTS
};

pub(super) fn inspect_rows(review: &Review, rows: &Rows, _: &ReviewContext<'_>, out: &mut Vec<Finding>) {
    if rows.rows.is_empty() {
        out.push(
            Finding::new(RULE.code, Severity::Warning, trimmed_span(&review.source), "", "nothing was found")
                .with_advice("The query runs and finds nothing: a condition or a join is too narrow."),
        );
    }
}
