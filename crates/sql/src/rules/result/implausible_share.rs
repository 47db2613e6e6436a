#![doc = include_str!("implausible_share.md")]

use super::number;
use crate::finding::{Finding, Severity};
use crate::review::{Context, Review, whole};
use crate::rows::Rows;
use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule = Rule {
    code: "implausible-share",
    group: "result",
    page: include_str!("implausible_share.md"),
    check: only_the_engine_knows,
};

/// A change may be of any size.
const CHANGES: &[&str] =
    &["increase", "decrease", "growth", "grow", "grew", "change", "rise", "drop", "difference", "than"];

pub(super) fn inspect(review: &Review, rows: &Rows, context: &Context<'_>, out: &mut Vec<Finding>) {
    let Some(question) = context.question.map(str::to_lowercase) else { return };
    let word = |w: &str| question.split(|c: char| !c.is_alphanumeric()).any(|q| q == w);
    let asked = word("percent") || word("percentage");
    let [row] = rows.rows.as_slice() else { return };
    let [Some(share)] = row.iter().map(number).collect::<Vec<_>>()[..] else { return };
    if !asked || CHANGES.iter().any(|w| word(w)) {
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
    out.push(Finding::new(RULE.code, Severity::Warning, whole(&review.source), "", shown).advise(advice));
}
