//! Several drafts at once: the one whose answer most of them agree on is taken.

use querymend_sql::diff::Tokens;
use querymend_sql::{Approved, Cell, Rows};

use super::steps::LONGEST_TEXT;
use super::{Draft, Hindrance, Run, Step};
use crate::event::Event;
use crate::prompts;

/// A draft that may be sent, and how many drafts came to the same query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    text: String,
    /// The query, out of its wrapping.
    sql: String,
    identity: String,
    votes: usize,
}

impl Run {
    /// Looks at all drafts. Where several are clean and differ, the database says what they come to.
    pub(super) fn weigh(&mut self, draft: Draft) {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut queries: Vec<Approved> = Vec::new();
        let first = draft.text.clone();
        for text in std::iter::once(draft.text).chain(draft.more) {
            let found = self.review(&text);
            let Ok(query) = found.approve() else { continue };
            if !found.is_clean() {
                continue;
            }
            let identity = Tokens::of(query.sql(), self.dialect).identity().to_string();
            if self.seen.contains(&identity) {
                continue;
            }
            match candidates.iter_mut().find(|candidate| candidate.identity == identity) {
                Some(same) => same.votes += 1,
                None => {
                    candidates.push(Candidate { text, sql: query.sql().to_string(), identity, votes: 1 });
                    queries.push(query);
                }
            }
        }
        match candidates.as_mut_slice() {
            // Where none is clean, rules have a word before any other draft.
            [] => self.settle(first),
            [only] => {
                let text = std::mem::take(&mut only.text);
                self.settle(text);
            }
            _ => {
                self.candidates = candidates;
                self.step = Step::Weigh(queries);
            }
        }
    }

    pub(super) fn weighed(&mut self, result: Result<Vec<Result<Rows, Hindrance>>, Hindrance>) {
        if let Some(comparison) = self.comparison.take() {
            return self.compared(comparison, result);
        }
        let candidates = std::mem::take(&mut self.candidates);
        self.counts.database += candidates.len() as u32;
        let given = match result {
            Ok(given) => given,
            Err(hindrance) => return self.hindered(hindrance),
        };
        let keys: Vec<Option<Vec<String>>> = given.iter().map(|rows| rows.as_ref().ok().map(key)).collect();
        let votes = |key: &Vec<String>| -> usize {
            let same = candidates.iter().zip(&keys).filter(|(_, other)| other.as_ref() == Some(key));
            same.map(|(candidate, _)| candidate.votes).sum()
        };
        // Of equally many votes the earliest draft has it: the first is the one that the model thinks likeliest.
        let mut best: Option<(usize, usize)> = None;
        for (at, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            let votes = votes(key);
            if best.is_none_or(|(_, most)| votes > most) {
                best = Some((at, votes));
            }
        }
        let (chosen, agree) = best.unwrap_or((0, 0));
        self.events.push(Event::Weighed {
            attempt: self.attempt,
            drafts: candidates.iter().map(|c| prompts::clipped(&c.text, LONGEST_TEXT).to_string()).collect(),
            agree,
            of: candidates.iter().map(|candidate| candidate.votes).sum(),
        });
        for (at, candidate) in candidates.iter().enumerate() {
            if at != chosen {
                self.seen.insert(candidate.identity.clone());
            }
        }
        let all: usize = candidates.iter().map(|candidate| candidate.votes).sum();
        if agree * 2 <= all {
            let drafts = candidates.iter().zip(&given).map(|(candidate, rows)| {
                let why = format!("{} of {all} drafts", candidate.votes);
                (candidate.sql.as_str(), why, candidate.votes, rows)
            });
            if let Some(clarification) = self.disagreement(drafts.collect()) {
                return self.ask_back(clarification);
            }
        }
        let outcome = given.into_iter().nth(chosen);
        let text = candidates.into_iter().nth(chosen).map(|candidate| candidate.text).unwrap_or_default();
        self.settle(text);
        if let (Some(outcome), Step::Execute(_)) = (outcome, &self.step) {
            // It was run already, and is not run again.
            self.counts.database -= 1;
            self.executed(outcome);
        }
    }
}

/// What rows come to, whatever their order: the same for answers that say the same.
pub(super) fn key(rows: &Rows) -> Vec<String> {
    let cell = |cell: &Cell| match cell {
        // 2 and 2.0 are one figure.
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
