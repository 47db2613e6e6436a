//! Self-consistency voting over several sampled drafts.
//!
//! The draft is used whose result most of them agree on.

use querymend_sql::diff::NormalizedTokens;
use querymend_sql::{Approved, Cell, Rows};

use super::{ModelDraft, QuestionRun, RunStep, StepError};
use crate::event::Event;
use crate::prompts;
use crate::run::MAX_TEXT_BYTES;

/// Approved draft with the number of drafts that contain the same query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DraftCandidate {
    text: String,
    /// Query extracted from the draft.
    sql: String,
    identity: String,
    votes: usize,
}

impl QuestionRun {
    /// Reviews all drafts. If several are clean and differ, they are executed to compare their
    /// results.
    pub(super) fn compare_candidates(&mut self, draft: ModelDraft) {
        let mut candidates: Vec<DraftCandidate> = Vec::new();
        let mut queries: Vec<Approved> = Vec::new();
        let first = draft.text.clone();
        for text in std::iter::once(draft.text).chain(draft.alternatives) {
            let found = self.review(&text);
            let Ok(query) = found.approve() else { continue };
            if !found.is_clean() {
                continue;
            }
            let identity = NormalizedTokens::tokenize(query.sql(), self.dialect).identity().to_string();
            if self.seen_queries.contains(&identity) {
                continue;
            }
            match candidates.iter_mut().find(|candidate| candidate.identity == identity) {
                Some(same) => same.votes += 1,
                None => {
                    candidates.push(DraftCandidate { text, sql: query.sql().to_string(), identity, votes: 1 });
                    queries.push(query);
                }
            }
        }
        match candidates.as_mut_slice() {
            // Without a clean draft, try to repair the first one.
            [] => self.review_draft(first),
            [only] => {
                let text = std::mem::take(&mut only.text);
                self.review_draft(text);
            }
            _ => {
                self.candidates = candidates;
                self.step = RunStep::CompareCandidates(queries);
            }
        }
    }

    pub(super) fn on_candidates_compared(&mut self, result: Result<Vec<Result<Rows, StepError>>, StepError>) {
        if let Some(comparison) = self.comparison.take() {
            return self.on_interpretations_compared(comparison, result);
        }
        let candidates = std::mem::take(&mut self.candidates);
        self.call_counts.database += candidates.len() as u32;
        let outcomes = match result {
            Ok(given) => given,
            Err(error) => return self.on_step_error(error),
        };
        let fingerprints: Vec<Option<Vec<String>>> =
            outcomes.iter().map(|rows| rows.as_ref().ok().map(result_fingerprint)).collect();
        let votes = |key: &Vec<String>| -> usize {
            let same = candidates.iter().zip(&fingerprints).filter(|(_, other)| other.as_ref() == Some(key));
            same.map(|(candidate, _)| candidate.votes).sum()
        };
        // On a tie, the earliest draft wins: the first is the one that the model considers most
        // likely.
        let mut best: Option<(usize, usize)> = None;
        for (at, key) in fingerprints.iter().enumerate() {
            let Some(key) = key else { continue };
            let votes = votes(key);
            if best.is_none_or(|(_, most)| votes > most) {
                best = Some((at, votes));
            }
        }
        let (chosen, agree) = best.unwrap_or((0, 0));
        self.events.push(Event::CandidatesCompared {
            attempt: self.attempt,
            drafts: candidates.iter().map(|c| prompts::truncate(&c.text, MAX_TEXT_BYTES).to_string()).collect(),
            agree,
            of: candidates.iter().map(|candidate| candidate.votes).sum(),
        });
        for (at, candidate) in candidates.iter().enumerate() {
            if at != chosen {
                self.seen_queries.insert(candidate.identity.clone());
            }
        }
        let all: usize = candidates.iter().map(|candidate| candidate.votes).sum();
        if agree * 2 <= all {
            let drafts = candidates.iter().zip(&outcomes).map(|(candidate, rows)| {
                let why = format!("{} of {all} drafts", candidate.votes);
                (candidate.sql.as_str(), why, candidate.votes, rows)
            });
            if let Some(clarification) = self.clarify_disagreement(drafts.collect()) {
                return self.ask_for_clarification(clarification);
            }
        }
        let outcome = outcomes.into_iter().nth(chosen);
        let text = candidates.into_iter().nth(chosen).map(|candidate| candidate.text).unwrap_or_default();
        self.review_draft(text);
        if let (Some(outcome), RunStep::Execute(_)) = (outcome, &self.step) {
            // Reuse the result instead of executing the query again.
            self.call_counts.database -= 1;
            self.on_executed(outcome);
        }
    }
}

/// Returns an order-independent fingerprint of the rows, equal for equivalent results.
pub(super) fn result_fingerprint(rows: &Rows) -> Vec<String> {
    let cell = |cell: &Cell| match cell {
        // 2 and 2.0 are the same number.
        Cell::Integer(number) => format!("{:.6}", *number as f64),
        Cell::Number(number) => format!("{number:.6}"),
        Cell::Decimal(text) => text.parse::<f64>().map_or_else(|_| text.clone(), |number| format!("{number:.6}")),
        other => format!("{other:?}"),
    };
    let mut lines: Vec<String> =
        rows.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("\u{1f}")).collect();
    lines.sort_unstable();
    lines
}
