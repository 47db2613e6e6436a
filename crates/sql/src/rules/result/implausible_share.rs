#![doc = include_str!("implausible_share.md")]

use super::cell_number;
use crate::context::ReviewContext;
use crate::finding::{Finding, Severity, trimmed_span};
use crate::review::Review;
use crate::rows::Rows;
use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `implausible-share` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "implausible-share",
    group: RuleGroup::Result,
    error_type: ErrorType::Unknown,
    page: include_str!("implausible_share.md"),
    ..Rule::DEFAULTS
};

/// Terms for a change, which may be of any size.
const CHANGE_WORDS: &[&str] =
    &["increase", "decrease", "growth", "grow", "grew", "change", "rise", "drop", "difference", "than"];

pub(super) fn inspect_rows(review: &Review, rows: &Rows, context: &ReviewContext<'_>, out: &mut Vec<Finding>) {
    let Some(question) = context.question.map(str::to_lowercase) else { return };
    let word = |w: &str| question.split(|c: char| !c.is_alphanumeric()).any(|q| q == w);
    let asked = word("percent") || word("percentage");
    let [row] = rows.rows.as_slice() else { return };
    let [Some(share)] = row.iter().map(cell_number).collect::<Vec<_>>()[..] else { return };
    if !asked || CHANGE_WORDS.iter().any(|w| word(w)) {
        return;
    }
    let (shown, advice) = if share == 0.0 || share == 100.0 {
        let all = if share == 0.0 { "none" } else { "all" };
        let why = "a division of whole numbers, or a condition that holds for none or all, gives that";
        (
            format!("a share of exactly {share} percent ({all} of them): {why}"),
            "Divide as decimals: 100.0 * part / whole.",
        )
    } else if !(0.0..=100.0).contains(&share) {
        (format!("a share of {share} percent is more than all or less than none"), "Divide the part by the whole.")
    } else {
        return;
    };
    let advice =
        format!("{advice} The whole must hold the rows that the question speaks of, the part only some of them.");
    out.push(Finding::new(RULE.code, Severity::Warning, trimmed_span(&review.source), "", shown).with_advice(advice));
}
