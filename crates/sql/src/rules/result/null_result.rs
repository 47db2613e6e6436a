#![doc = include_str!("null_result.md")]

use crate::finding::{Finding, Severity};
use crate::review::{Context, Review, whole};
use crate::rows::{Cell, Rows};
use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule =
    Rule { code: "null-result", group: "result", page: include_str!("null_result.md"), check: only_the_engine_knows };

pub(super) fn inspect(review: &Review, rows: &Rows, _: &Context<'_>, out: &mut Vec<Finding>) {
    let [row] = rows.rows.as_slice() else { return };
    if !row.is_empty() && row.iter().all(|cell| *cell == Cell::Null) {
        out.push(
            Finding::new(
                RULE.code,
                Severity::Warning,
                whole(&review.source),
                "",
                "the only row holds nothing but NULL",
            )
            .advise("The result is NULL: no row was left to compute it from, or the value itself is missing."),
        );
    }
}
