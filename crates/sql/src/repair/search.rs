//! Best-first search for a repaired query over the fixes of its findings.
//!
//! Every candidate is reviewed again. The search does no I/O: [`RepairSearch::advance`] returns the
//! queries for the database, and the caller passes the answers back.

use std::collections::{HashMap, HashSet};

use crate::dialect::{EngineError, classify};
use crate::finding::{Applicability, Finding, Fix, Severity, apply_edits};
use crate::fixes::score::SEARCH_COSTS;
use crate::repair::candidates::{RepairCandidate, extraction_fixes, next_candidates, speculative_candidates};
use crate::repair::node::{
    DatabaseProbe, SearchNode, applicability_cost, cheapest_node, into_outcome, is_unparsable, meaning_doubt, new_node,
    node_with_engine_error, probe_penalty, row_loss_proof, speculative_outcome, with_extraction_fixes,
};
use crate::repair::{AppliedFix, RepairOutcome, RepairRequest, RepairStatus};
use crate::review::{Approved, LiteralFilter, Review, Verdict, review};

/// Maximum number of reviews per repair.
const MAX_REVIEWS: usize = 120;
/// Maximum number of bytes reviewed per repair.
///
/// A longer text costs more to review and is reviewed less often, but at least `MIN_REVIEWS` times.
const MAX_REVIEWED_BYTES: usize = 400_000;
const MIN_REVIEWS: usize = 6;
/// Maximum number of reviews in the speculative phase.
const MAX_SPECULATIVE_REVIEWS: usize = 30;
/// Maximum number of database probes per repair.
const MAX_PROBES: usize = 16;
/// Number of fixes after which a query that runs is not checked for silent errors.
const MAX_SILENT_FIXES: usize = 12;

/// Next step of the search: a query for the database, or the outcome.
#[derive(Debug)]
pub enum SearchStep {
    /// Dry run of a query; answer with [`RepairSearch::answer_dry_run`].
    DryRun(Approved),
    /// Check for at least one row; answer with [`RepairSearch::answer_returns_rows`].
    ReturnsRows(Approved),
    /// Outcome of the finished search.
    Done(Box<RepairOutcome>),
}

/// State of a warning that may be an error that no database reports.
enum SilentErrorCheck {
    /// The database must answer a probe first.
    NeedsProbe(DatabaseProbe, Approved),
    /// The error is proved.
    Proved(&'static str, Fix),
}

/// State of a repair search.
pub struct RepairSearch<'r> {
    request: RepairRequest<'r>,
    /// `true` if a database is available; without one every clean query counts as one that runs.
    has_database: bool,
    frontier: Vec<SearchNode>,
    /// Node whose dry run is pending.
    pending_dry_run: Option<SearchNode>,
    visited: HashSet<String>,
    review_count: usize,
    best: Option<SearchNode>,
    /// Probes and whether they returned rows; `None` if the database did not answer in time.
    probe_results: HashMap<DatabaseProbe, Option<bool>>,
    pending_probe: Option<DatabaseProbe>,
    /// Query that runs, with a pending probe of its filter values or proofs.
    pending_accept_probe: Option<(SearchNode, Approved)>,
    /// Repaired query with a pending check for rows.
    pending_row_check: Option<(SearchNode, Approved)>,
    /// `true` if a repaired query is checked for rows.
    ///
    /// Not needed if the caller runs the query next.
    checks_rows: bool,
    /// `true` if unproved fixes are tried after all others have failed.
    allows_speculation: bool,
    is_speculating: bool,
    outcome: Option<RepairOutcome>,
}

impl<'r> RepairSearch<'r> {
    /// Starts a search; `connected` is `false` if no database can be queried.
    pub fn new(request: RepairRequest<'r>, connected: bool) -> Self {
        let first = new_node(&request, request.text.to_string(), Vec::new(), 0);
        Self {
            request,
            has_database: connected,
            frontier: vec![first],
            pending_dry_run: None,
            visited: HashSet::new(),
            review_count: 1,
            best: None,
            probe_results: HashMap::new(),
            pending_probe: None,
            pending_accept_probe: None,
            pending_row_check: None,
            checks_rows: false,
            allows_speculation: false,
            is_speculating: false,
            outcome: None,
        }
    }

    /// Makes an unrepairable query run by guessing, if a guess succeeds.
    ///
    /// The status is still [`RepairStatus::GaveUp`], since nothing proves that the guess is right.
    /// Only a database can confirm that the query runs, so without one nothing is guessed.
    #[must_use]
    pub fn with_speculative_fixes(mut self) -> Self {
        self.allows_speculation = self.has_database && self.request.max_applicability >= Applicability::Likely;
        self.checks_rows = self.has_database;
        self
    }

    /// Advances the search until it needs the database or is finished.
    pub fn advance(&mut self) -> SearchStep {
        loop {
            if let Some(done) = &self.outcome {
                return SearchStep::Done(Box::new(done.clone()));
            }
            if let Some((_, query)) = self.pending_accept_probe.as_ref().or(self.pending_row_check.as_ref()) {
                return SearchStep::ReturnsRows(query.clone());
            }
            let Some(at) = cheapest_node(&self.frontier) else {
                if !self.start_speculative_phase() {
                    self.outcome = Some(self.give_up());
                }
                continue;
            };
            if let Some(probe) = self.frontier[at].pending_probes.pop() {
                match self.probe_results.get(&probe) {
                    Some(found) => self.frontier[at].cost += probe_penalty(&probe, *found, self.frontier[at].tie_size),
                    None => {
                        if let Some(query) = self.probe_query(&probe) {
                            self.frontier[at].pending_probes.push(probe.clone());
                            self.pending_probe = Some(probe);
                            return SearchStep::ReturnsRows(query);
                        }
                    }
                }
                continue;
            }
            let node = self.frontier.swap_remove(at);
            if !node.review.is_clean() {
                self.expand(node);
                continue;
            }
            match node.review.approve().ok().filter(|_| self.has_database) {
                Some(query) => {
                    self.pending_dry_run = Some(node);
                    return SearchStep::DryRun(query);
                }
                None => self.accept(node),
            }
        }
    }

    /// Answers [`SearchStep::DryRun`].
    pub fn answer_dry_run(&mut self, answer: Result<(), EngineError>) {
        let Some(node) = self.pending_dry_run.take() else { return };
        match answer {
            Ok(()) => self.accept(node),
            Err(error) => {
                let classified = classify(node.review.dialect(), &error);
                let with_error = node_with_engine_error(&self.request, &node, &classified);
                self.expand(with_error.unwrap_or(node));
            }
        }
    }

    /// Answers [`SearchStep::ReturnsRows`].
    pub fn answer_returns_rows(&mut self, answer: Option<bool>) {
        if let Some(probe) = self.pending_probe.take() {
            self.probe_results.insert(probe, answer);
        }
        if let Some((node, _)) = self.pending_accept_probe.take() {
            self.accept(node);
        } else if let Some((mut node, _)) = self.pending_row_check.take() {
            if answer == Some(false) {
                node.doubts.push("it returns no rows".into());
            }
            self.outcome = Some(into_outcome(RepairStatus::Mended, node));
        }
    }

    /// Accepts a clean query that the database would run.
    ///
    /// A query that was clean from the start is not changed, unless the caller reports an error
    /// that only occurs while rows are read.
    fn accept(&mut self, node: SearchNode) {
        let untouched = node.applied.is_empty() && extraction_fixes(&node.review).is_empty();
        if let Some(classified) = self.request.error.filter(|_| untouched)
            && let Some(with_error) = node_with_engine_error(&self.request, &node, classified)
        {
            return self.expand(with_error);
        }
        if let Some(fix) = self.null_comparison_fix(&node) {
            return self.apply_warning_fix(node, "compared-with-null", &fix);
        }
        if self.has_database
            && let Some((probe, fix)) = self.value_spelling_fix(&node)
        {
            match self.probe_results.contains_key(&probe) {
                true => return self.apply_warning_fix(node, "unknown-value", &fix),
                false => {
                    if let Some(query) = self.probe_query(&probe) {
                        self.pending_probe = Some(probe);
                        self.pending_accept_probe = Some((node, query));
                        return;
                    }
                }
            }
        }
        if self.has_database {
            match self.silent_error(&node) {
                Some(SilentErrorCheck::Proved(code, fix)) => return self.apply_warning_fix(node, code, &fix),
                Some(SilentErrorCheck::NeedsProbe(probe, query)) => {
                    self.pending_probe = Some(probe);
                    self.pending_accept_probe = Some((node, query));
                    return;
                }
                None => {}
            }
        }
        // A changed query should also run on older database versions, since the version is unknown.
        if !untouched
            && self.review_count < MAX_REVIEWS
            && let Some(next) = self.apply_compatibility_fix(&node)
        {
            self.frontier = vec![next];
            return;
        }
        // Fixes from the speculative phase may be certain enough: an earlier error without a fix
        // hid them.
        if node.applied.iter().any(|a| a.applicability > self.request.max_applicability) {
            self.outcome = Some(speculative_outcome(&self.request, with_extraction_fixes(node)));
            return;
        }
        if untouched {
            self.outcome = Some(into_outcome(RepairStatus::Untouched, node));
            return;
        }
        let mut node = with_extraction_fixes(node);
        let warnings = node.review.findings.iter().filter(|f| f.severity == Severity::Warning);
        node.doubts.extend(warnings.map(|f| f.message.clone()).collect::<Vec<_>>());
        match node.review.approve().ok().filter(|_| self.checks_rows) {
            Some(query) => self.pending_row_check = Some((node, query)),
            None => self.outcome = Some(into_outcome(RepairStatus::Mended, node)),
        }
    }

    /// Returns a filter value that the value index spells differently, and its fix.
    ///
    /// The index may be out of date, so a value that the database contains is skipped.
    fn value_spelling_fix(&self, node: &SearchNode) -> Option<(DatabaseProbe, Fix)> {
        let values = self.request.context.schema?.value_index()?;
        let misspelt = |f: &&Finding| f.code == "unknown-value" && f.proofs.is_empty();
        node.review.findings.iter().filter(misspelt).find_map(|finding| {
            let fix = finding.fixes.first().filter(|fix| fix.applicability == Applicability::Safe)?;
            let absent =
                |s: &&LiteralFilter| s.value == finding.subject && values.is_absent(&s.table, &s.column, &s.value);
            let probe = DatabaseProbe::Value(node.review.literal_filters.iter().find(absent)?.clone());
            let nowhere = matches!(self.probe_results.get(&probe), None | Some(Some(false)));
            nowhere.then(|| (probe, fix.clone()))
        })
    }

    /// Returns the first warning whose proofs hold or have not been probed.
    fn silent_error(&self, node: &SearchNode) -> Option<SilentErrorCheck> {
        if node.applied.len() >= MAX_SILENT_FIXES {
            return None;
        }
        'findings: for finding in node.review.findings.iter().filter(|f| f.has_provable_fix()) {
            let Some(fix) = finding.fixes.first() else { continue };
            let changes_rows =
                row_loss_proof(node, fix, &self.request.context).filter(|_| finding.code == "unknown-value");
            for proof in finding.proofs.iter().chain(&changes_rows) {
                let probe = DatabaseProbe::Proof(proof.sql.clone());
                match self.probe_results.get(&probe) {
                    Some(answer) if *answer == Some(proof.expects_rows) => {}
                    Some(_) => continue 'findings,
                    None => match self.probe_query(&probe) {
                        Some(query) => return Some(SilentErrorCheck::NeedsProbe(probe, query)),
                        None => continue 'findings,
                    },
                }
            }
            return Some(SilentErrorCheck::Proved(finding.code, fix.clone()));
        }
        None
    }

    /// Returns the fix of a comparison with NULL, which is never true.
    ///
    /// Only a query that is repaired for another error is changed; one that runs is not.
    fn null_comparison_fix(&self, node: &SearchNode) -> Option<Fix> {
        let mut own =
            node.review.findings.iter().filter(|f| f.code == "compared-with-null" && !node.applied.is_empty());
        own.find_map(|f| f.fixes.first().filter(|fix| fix.applicability <= self.request.max_applicability).cloned())
    }

    /// Continues with the fix of a warning if the fixed query is clean too.
    ///
    /// An example is a filter value in the spelling of its column.
    fn apply_warning_fix(&mut self, node: SearchNode, code: &'static str, fix: &Fix) {
        let text = apply_edits(&node.review.source, &fix.edits);
        let mut applied = node.applied.clone();
        applied.push(AppliedFix { code, applicability: fix.applicability, why: fix.why.clone() });
        let mut next = new_node(&self.request, text, applied, node.cost);
        next.doubts.clone_from(&node.doubts);
        self.review_count += 1;
        if next.review.is_clean() && next.text != node.text {
            self.frontier = vec![next];
        } else {
            let status = if node.applied.is_empty() { RepairStatus::Untouched } else { RepairStatus::Mended };
            self.outcome = Some(into_outcome(status, node));
        }
    }

    /// Returns the number of implausible comparisons in a query.
    ///
    /// These are comparisons of a number with text, with a value that only other columns contain,
    /// or between columns without a foreign key.
    fn implausible_comparisons(&self, review: &Review) -> usize {
        let values = self.request.context.schema.and_then(|schema| schema.value_index());
        let elsewhere = |f: &Finding| values.is_some_and(|values| !values.columns_with_value(&f.subject).is_empty());
        let respelt = |f: &Finding| f.fixes.iter().any(|fix| fix.applicability == Applicability::Safe);
        let strange = |f: &&Finding| match f.code {
            "type-mismatch" | "join-not-on-foreign-key" => true,
            "unknown-value" => !respelt(f) && elsewhere(f),
            _ => false,
        };
        review.findings.iter().filter(strange).count()
    }

    /// Replaces a function that older database versions lack, if the result is clean.
    fn apply_compatibility_fix(&mut self, node: &SearchNode) -> Option<SearchNode> {
        let fix =
            node.review.compatibility_fix.as_ref().filter(|fix| fix.applicability <= self.request.max_applicability)?;
        let mut applied = node.applied.clone();
        applied.push(AppliedFix { code: "unknown-function", applicability: fix.applicability, why: fix.why.clone() });
        let mut next = new_node(&self.request, apply_edits(&node.review.source, &fix.edits), applied, node.cost);
        next.doubts.clone_from(&node.doubts);
        self.review_count += 1;
        next.review.is_clean().then_some(next)
    }

    /// Starts the speculative phase from the best node; returns `false` if it is not allowed.
    fn start_speculative_phase(&mut self) -> bool {
        let hopeful = |b: &&SearchNode| b.review.verdict() == Verdict::Approved || is_unparsable(&b.review);
        let Some(best) = self.best.as_ref().filter(hopeful).filter(|_| self.allows_speculation && !self.is_speculating)
        else {
            return false;
        };
        self.frontier.push(best.clone());
        self.is_speculating = true;
        self.review_count = 0;
        true
    }

    /// Adds all fixes of the root cause to the frontier.
    fn expand(&mut self, node: SearchNode) {
        let steps = match self.is_speculating {
            true => speculative_candidates(&node.review),
            false => next_candidates(&node.review, self.request.max_applicability),
        };
        let (compares_rows, candidates) = (self.has_database && steps.len() > 1, steps.len());
        let max_reviews = if self.is_speculating { MAX_SPECULATIVE_REVIEWS } else { MAX_REVIEWS };
        for RepairCandidate { code, fix, rank, tie_size: equals, renames_column: renames } in steps {
            if self.review_count >= (MAX_REVIEWED_BYTES / node.text.len().max(1)).clamp(MIN_REVIEWS, max_reviews) {
                break;
            }
            let text = apply_edits(&node.review.source, &fix.edits);
            if text == node.text || !self.visited.insert(text.clone()) {
                continue;
            }
            let mut next = new_node(&self.request, text, node.applied.clone(), node.cost + rank);
            self.review_count += 1;
            // A replaced column or table that makes a comparison implausible is wrong, however
            // similar its name.
            let is_implausible =
                self.implausible_comparisons(&next.review) > self.implausible_comparisons(&node.review);
            let replaces = renames || code == "unknown-table";
            let applicability = if replaces && is_implausible { Applicability::Suggested } else { fix.applicability };
            next.cost += applicability_cost(applicability)
                + SEARCH_COSTS.implausible_owner * usize::from(is_implausible && code == "ambiguous-column");
            next.applied.push(AppliedFix { code, applicability, why: fix.why.clone() });
            next.doubts.clone_from(&node.doubts);
            next.doubts.extend(meaning_doubt(code, applicability, renames, candidates, &node.review, &next.review));
            next.tie_size = equals;
            if compares_rows {
                let new = next.review.literal_filters.iter().filter(|s| !node.review.literal_filters.contains(s));
                next.pending_probes = new.cloned().map(DatabaseProbe::Value).collect();
            }
            // Ambiguous columns and unknown tables do not depend on the join path.
            if compares_rows && equals > 1 && !["ambiguous-column", "unknown-table"].contains(&code) {
                let new = next.review.join_keys.iter().filter(|k| !node.review.join_keys.contains(k));
                next.pending_probes.extend(new.cloned().map(DatabaseProbe::Key));
            }
            let salvaged = next.errors <= node.errors && fix.applicability == Applicability::Safe;
            let shrinks = next.errors < node.errors || salvaged;
            // A safe query must stay safe; a refused one may become safe.
            let harmless = next.review.verdict() == Verdict::Approved || node.review.verdict() == Verdict::Refused;
            if shrinks && harmless {
                self.frontier.push(next);
            }
        }
        // In the speculative phase, a node counts only if it runs.
        if !self.is_speculating && self.best.as_ref().is_none_or(|b| (node.errors, node.cost) < (b.errors, b.cost)) {
            self.best = Some(node);
        }
    }

    fn give_up(&mut self) -> RepairOutcome {
        match self.best.take() {
            Some(best) if best.review.verdict() == Verdict::Refused && !is_unparsable(&best.review) => {
                into_outcome(RepairStatus::Refused, best)
            }
            Some(best) => into_outcome(RepairStatus::GaveUp, best),
            None => into_outcome(
                RepairStatus::GaveUp,
                new_node(&self.request, self.request.text.to_string(), Vec::new(), 0),
            ),
        }
    }

    /// Returns the query of a probe, or `None` if the limit is reached or the query is refused.
    fn probe_query(&self, probe: &DatabaseProbe) -> Option<Approved> {
        if self.probe_results.len() >= MAX_PROBES {
            return None;
        }
        match probe {
            DatabaseProbe::Value(stated) => stated.existence_probe(&self.request.context),
            DatabaseProbe::Key(key) => key.uniqueness_probe(&self.request.context),
            DatabaseProbe::Proof(sql) => review(sql, &self.request.context).approve().ok(),
        }
    }
}

#[cfg(test)]
mod tests;
