//! Fixes to try next on a query.

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::fixes::score::SEARCH_COSTS;
use crate::review::Review;
use crate::rule::Rule;
use crate::rule_group::RuleGroup;
use crate::text::similarity::is_similar;

/// Fix that may be applied next.
pub(crate) struct RepairCandidate {
    pub(crate) code: &'static str,
    pub(crate) fix: Fix,
    pub(crate) rank: usize,
    pub(crate) tie_size: usize,
    /// `true` if the fix replaces a column with one of another name.
    pub(crate) renames_column: bool,
}

pub(crate) fn extraction_fixes(review: &Review) -> Vec<&Finding> {
    let artefact = |f: &&Finding| Rule::from_code(f.code).is_some_and(|r| r.group == RuleGroup::LlmOutput);
    review.findings.iter().filter(artefact).filter(|f| f.code != "trailing-semicolon" && !f.fixes.is_empty()).collect()
}

/// Returns the candidates for the next step.
///
/// All extraction fixes are applied first and at once, then the fixes of the first error that has
/// any.
pub(crate) fn next_candidates(review: &Review, max_applicability: Applicability) -> Vec<RepairCandidate> {
    let extraction = extraction_fixes(review);
    if let Some(first) = extraction.first() {
        let mut edits: Vec<_> = extraction.iter().flat_map(|f| f.fixes.iter().flat_map(|x| x.edits.clone())).collect();
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        let why = first.fixes.first().map_or(String::new(), |f| f.why.clone());
        let fix = Fix { edits, applicability: Applicability::Safe, why, is_tied_with_previous: false };
        return vec![RepairCandidate { code: first.code, fix, rank: 0, tie_size: 1, renames_column: false }];
    }
    root_cause(review, max_applicability).map(|finding| candidates_for(finding, max_applicability)).unwrap_or_default()
}

/// Returns the error that is repaired first: the one that causes others, among those with a fix.
pub(crate) fn root_cause(review: &Review, max_applicability: Applicability) -> Option<&Finding> {
    let cause = |f: &&Finding| Rule::from_code(f.code).map_or(u8::MAX, |rule| rule.repair_order);
    let has_fix =
        |f: &&Finding| f.severity == Severity::Error && f.fixes.iter().any(|x| x.applicability <= max_applicability);
    review.findings.iter().filter(has_fix).min_by_key(cause)
}

/// Returns all fixes of all errors, since the first error may have none.
pub(crate) fn speculative_candidates(review: &Review) -> Vec<RepairCandidate> {
    if !extraction_fixes(review).is_empty() {
        return next_candidates(review, Applicability::Suggested);
    }
    let errors = review.findings.iter().filter(|f| f.severity == Severity::Error);
    errors.flat_map(|f| candidates_for(f, Applicability::Suggested)).collect()
}

/// Returns the fixes of a finding as candidates, most certain first.
pub(crate) fn candidates_for(finding: &Finding, max_applicability: Applicability) -> Vec<RepairCandidate> {
    let fixes: Vec<&Fix> = finding.fixes.iter().filter(|f| f.applicability <= max_applicability).collect();
    let first = |at: usize| (0..=at).rev().find(|&i| !fixes[i].is_tied_with_previous).unwrap_or(0);
    let equals = |at: usize| (0..fixes.len()).filter(|&i| first(i) == first(at)).count();
    let keeps = |fix: &Fix| {
        let mut words = fix.edits.iter().flat_map(|e| e.text.split(|c: char| !c.is_alphanumeric() && c != '_'));
        words.any(|word| is_similar(word, &finding.subject, SEARCH_COSTS.min_kept_name_similarity))
    };
    let step = |(rank, fix): (usize, &&Fix)| {
        let renames = finding.code == "unknown-column" && !keeps(fix);
        RepairCandidate {
            code: finding.code,
            fix: (*fix).clone(),
            rank,
            tie_size: equals(rank),
            renames_column: renames,
        }
    };
    fixes.iter().enumerate().map(step).collect()
}
