#![doc = include_str!("empty_result.md")]

use crate::finding::{Finding, Severity};
use crate::review::{Context, Review, whole};
use crate::rows::Rows;
use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule =
    Rule { code: "empty-result", group: "result", page: include_str!("empty_result.md"), check: only_the_engine_knows };

pub(super) fn inspect(review: &Review, rows: &Rows, _: &Context<'_>, out: &mut Vec<Finding>) {
    if rows.rows.is_empty() {
        out.push(
            Finding::new(RULE.code, Severity::Warning, whole(&review.source), "", "nothing was found")
                .advise("The query runs and finds nothing: a condition or a join is too narrow."),
        );
    }
}
