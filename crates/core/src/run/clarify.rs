//! Clarification questions.
//!
//! If a question has several interpretations that lead to different rows, the user chooses one.

use querymend_sql::diff::NormalizedTokens;
use querymend_sql::{
    Applicability, Approved, Interpretation, Interpretations, MAX_INTERPRETATIONS, RepairOutcome, RepairRequest, Rows,
    interpretations,
};
use querymend_sql::{RepairStatus, review};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::vote::result_fingerprint;
use super::{Purpose, QuestionRun, RunStep, StepError};
use crate::event::{Answer, AnswerStatus, Clarification, ClarificationChoice, Confidence, StopReason};
use crate::prompts;
use crate::retry::RetryStrategy;
use crate::strategies::AttemptFailure;

/// Maximum number of rows in a preview.
const MAX_PREVIEW_ROWS: usize = 3;
/// Maximum length of a draft's label, in bytes.
const MAX_LABEL_BYTES: usize = 160;
/// Maximum number of failed drafts, latest first, that are searched for interpretations.
const MAX_FAILED_DRAFTS: usize = 3;

/// Handling of questions with several interpretations that lead to different rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clarify {
    /// Ends the run with a question and two to four options.
    Ask,
    /// Uses the most likely interpretation, even without proof, and reports the assumption.
    Assume,
    /// Uses the most likely interpretation if its names are proven correct, otherwise gives up.
    Off,
}

impl Clarify {
    /// Returns the mode for the setting `ask_user`. If it is absent, `by_default` decides.
    pub fn from_setting(ask_user: Option<bool>, by_default: bool) -> Self {
        if ask_user.unwrap_or(by_default) { Self::Ask } else { Self::Off }
    }
}

/// Interpretations whose results are being compared, and the continuation if the user is not asked.
pub(super) struct InterpretationComparison {
    interpretations: Interpretations,
    /// [`NormalizedTokens::identity`] of each query.
    identities: Vec<String>,
    origin: Origin,
}

enum Origin {
    /// A repair that chose between interpretations. Its query is the first.
    Repair(Box<RepairOutcome>),
    /// A draft that could not be repaired.
    Unrepaired(Resume),
}

/// Continuation after a draft that could not be repaired.
pub(super) enum Resume {
    /// Prompts the model again.
    Retry(Box<AttemptFailure>, RetryStrategy),
    /// Ends the attempts.
    GiveUp(StopReason),
}

impl QuestionRun {
    /// Executes the interpretations of a draft whose repair had to choose between them.
    ///
    /// Returns `false` if there was no choice.
    pub(super) fn compare_repair(&mut self, repair: &RepairOutcome, query: &Approved) -> bool {
        let is_choice = repair.status == RepairStatus::Mended && self.current.engine_error.is_none();
        if !is_choice || !self.can_compare() {
            return false;
        }
        let Some(mut found) = self.interpretations_of(&self.draft_text, Applicability::Likely) else { return false };
        let identity = |sql: &str| NormalizedTokens::tokenize(sql, self.dialect).identity().to_string();
        let taken = identity(query.sql());
        let Some(at) = found.interpretations.iter().position(|interpretation| identity(&interpretation.sql) == taken)
        else {
            return false;
        };
        let first = found.interpretations.remove(at);
        found.interpretations.insert(0, first);
        self.start_comparison(found, Origin::Repair(Box::new(repair.clone())))
    }

    /// Executes the interpretations of the last drafts that could not be repaired.
    ///
    /// Before a retry, this is only worthwhile if the user can be asked and no interpretation is
    /// preferred.
    pub(super) fn compare_unrepaired(&mut self, resume: impl FnOnce() -> Resume) -> bool {
        if self.compared_unrepaired || self.settings.clarify == Clarify::Off || !self.can_compare() {
            return false;
        }
        let resume = resume();
        let is_retry = matches!(resume, Resume::Retry(..));
        if (is_retry && self.settings.clarify != Clarify::Ask) || self.empty_fallback.is_some() {
            return false;
        }
        let failed = self.failures.iter().rev().take(if is_retry { 1 } else { MAX_FAILED_DRAFTS });
        let mut found = failed.filter_map(|failure| self.interpretations_of(&failure.sql, Applicability::Suggested));
        let Some(found) = found.find(|found| found.is_tied || !is_retry) else { return false };
        self.compared_unrepaired = self.start_comparison(found, Origin::Unrepaired(resume));
        self.compared_unrepaired
    }

    fn can_compare(&self) -> bool {
        let is_affordable = self.settings.budget.exhausted(&self.cost, self.now).is_none();
        self.purpose == Purpose::Draft && self.settings.self_correction && self.ask.choice.is_none() && is_affordable
    }

    fn interpretations_of(&self, text: &str, apply: Applicability) -> Option<Interpretations> {
        let question_text = format!("{} {}", self.ask.question, self.ask.evidence.as_deref().unwrap_or_default());
        interpretations(&RepairRequest {
            text,
            context: self.review_context(),
            question: Some(&question_text),
            max_applicability: apply,
            error: None,
        })
    }

    /// Executes the approved interpretations that were not executed before, if there are several.
    fn start_comparison(&mut self, mut found: Interpretations, origin: Origin) -> bool {
        let mut queries: Vec<Approved> = Vec::new();
        let mut identities: Vec<String> = Vec::new();
        let runnable = std::mem::take(&mut found.interpretations).into_iter().filter(|interpretation| {
            let reviewed = review(&interpretation.sql, &self.review_context());
            let Ok(query) = reviewed.approve() else { return false };
            let identity = reviewed.tokens().identity().to_string();
            let is_new = !self.seen_queries.contains(&identity) && !identities.contains(&identity);
            if is_new {
                queries.push(query);
                identities.push(identity);
            }
            is_new
        });
        found.interpretations = runnable.collect();
        self.call_counts.reviews += found.interpretations.len() as u32;
        if queries.len() < 2 {
            return false;
        }
        self.comparison = Some(InterpretationComparison { interpretations: found, identities, origin });
        self.step = RunStep::CompareCandidates(queries);
        true
    }

    pub(super) fn on_interpretations_compared(
        &mut self,
        comparison: InterpretationComparison,
        result: Result<Vec<Result<Rows, StepError>>, StepError>,
    ) {
        let InterpretationComparison {
            interpretations: Interpretations { code, subject, interpretations, .. },
            mut identities,
            origin,
        } = comparison;
        self.call_counts.database += interpretations.len() as u32;
        let mut outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(error) => return self.on_step_error(error),
        };
        let different = distinct_interpretations(interpretations.iter().zip(&outcomes));
        if different.len() > 1 && self.settings.clarify == Clarify::Ask {
            let clarification = build_clarification(code, &subject, &different);
            return self.ask_for_clarification(clarification);
        }
        let likeliest = different.first().map(|(interpretation, _)| *interpretation);
        let chosen = match (&origin, likeliest) {
            (Origin::Repair(_), _) => Some(0),
            (Origin::Unrepaired(_), Some(likeliest)) => {
                interpretations.iter().position(|interpretation| interpretation == likeliest)
            }
            (Origin::Unrepaired(_), None) => None,
        };
        let Some(taken) = chosen else {
            self.seen_queries.extend(identities);
            return match origin {
                Origin::Unrepaired(Resume::Retry(failure, policy)) => self.retry(&failure, policy),
                Origin::Unrepaired(Resume::GiveUp(stop)) => self.start_fallback(stop),
                Origin::Repair(_) => self.start_fallback(StopReason::RepeatedSql),
            };
        };
        let interpretation = &interpretations[taken];
        let others: Vec<&str> = different
            .iter()
            .filter(|(other, _)| *other != interpretation)
            .map(|(other, _)| other.label.as_str())
            .collect();
        let assumed = match others.as_slice() {
            [] => format!("assumed {}: there is no evidence for it", interpretation.label),
            others => format!("assumed {}; it could also be {}", interpretation.label, others.join(" or ")),
        };
        identities.remove(taken);
        self.seen_queries.extend(identities);
        let is_ambiguous = !others.is_empty();
        let outcome = outcomes.swap_remove(taken);
        match origin {
            Origin::Repair(repair) => {
                self.take_interpretation(&repair, outcome, is_ambiguous.then_some((Confidence::Medium, assumed)));
            }
            Origin::Unrepaired(_) => {
                let Interpretation { sql, applied, .. } = interpretation.clone();
                let doubts = vec![assumed.clone()];
                let repair = RepairOutcome { status: RepairStatus::Mended, sql, applied, findings: Vec::new(), doubts };
                self.take_interpretation(&repair, outcome, Some((Confidence::Low, assumed)));
            }
        }
    }

    /// Continues with an interpretation that was already executed.
    fn take_interpretation(
        &mut self,
        repair: &RepairOutcome,
        outcome: Result<Rows, StepError>,
        assumed: Option<(Confidence, String)>,
    ) {
        let Some((query, found)) = self.approve_repair(repair) else {
            return self.start_fallback(StopReason::RepeatedSql);
        };
        self.current.assumption = assumed;
        self.execute_repaired(repair, query, found);
        self.call_counts.database -= 1;
        self.on_executed(outcome);
    }

    /// Returns the clarification for drafts without a majority, each with its reason and its votes.
    pub(super) fn clarify_disagreement(
        &self,
        drafts: Vec<(&str, String, usize, &Result<Rows, StepError>)>,
    ) -> Option<Clarification> {
        if self.settings.clarify != Clarify::Ask || !self.can_compare() {
            return None;
        }
        let mut interpretations: Vec<(Interpretation, usize, &Result<Rows, StepError>)> = Vec::new();
        for (sql, why, votes, rows) in drafts {
            let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            let clipped = prompts::truncate(&line, MAX_LABEL_BYTES);
            let label = if clipped.len() < line.len() { format!("{clipped}…") } else { line };
            interpretations.push((
                Interpretation { label, sql: sql.to_string(), why, applied: Vec::new() },
                votes,
                rows,
            ));
        }
        interpretations.sort_by_key(|(_, votes, _)| std::cmp::Reverse(*votes));
        let different =
            distinct_interpretations(interpretations.iter().map(|(interpretation, _, rows)| (interpretation, *rows)));
        let options: Vec<ClarificationChoice> = different
            .iter()
            .take(MAX_INTERPRETATIONS)
            .map(|(interpretation, rows)| to_choice(interpretation, rows))
            .collect();
        let question = "Which of these queries answers the question?".to_string();
        (options.len() > 1).then_some(Clarification { question, options })
    }

    /// Ends the run with a clarification question.
    pub(super) fn ask_for_clarification(&mut self, clarification: Clarification) {
        let answer = Answer {
            sql: clarification.options.first().map(|choice| choice.sql.clone()),
            text: Some(clarification.question.clone()),
            clarification: Some(clarification),
            ..self.base_answer(AnswerStatus::AskUser, StopReason::Ambiguous)
        };
        self.finish(answer);
    }
}

/// Returns one interpretation per distinct result. If some return rows, those without are dropped.
fn distinct_interpretations<'r>(
    interpretations: impl Iterator<Item = (&'r Interpretation, &'r Result<Rows, StepError>)>,
) -> Vec<(&'r Interpretation, &'r Rows)> {
    let ran: Vec<(&Interpretation, &Rows)> =
        interpretations.filter_map(|(interpretation, rows)| Some((interpretation, rows.as_ref().ok()?))).collect();
    let has_rows = ran.iter().any(|(_, rows)| !rows.is_effectively_empty());
    let mut different: Vec<(&Interpretation, &Rows)> = Vec::new();
    for (interpretation, rows) in ran.into_iter().filter(|(_, rows)| !has_rows || !rows.is_effectively_empty()) {
        if !different.iter().any(|(_, other)| result_fingerprint(other) == result_fingerprint(rows)) {
            different.push((interpretation, rows));
        }
    }
    different
}

fn build_clarification(code: &str, subject: &str, different: &[(&Interpretation, &Rows)]) -> Clarification {
    let labels: Vec<&str> = different.iter().map(|(interpretation, _)| interpretation.label.as_str()).collect();
    let (last, others) = labels.split_last().unwrap_or((&"", &[]));
    let what = if code == "unknown-table" { format!("table is meant by {subject}") } else { subject.to_string() };
    let question = format!("Which {what}: {} or {last}?", others.join(", "));
    Clarification {
        question,
        options: different.iter().map(|(interpretation, rows)| to_choice(interpretation, rows)).collect(),
    }
}

fn to_choice(interpretation: &Interpretation, rows: &Rows) -> ClarificationChoice {
    let preview = Rows {
        columns: rows.columns.clone(),
        rows: rows.rows.iter().take(MAX_PREVIEW_ROWS).cloned().collect(),
        truncated: rows.truncated || rows.rows.len() > MAX_PREVIEW_ROWS,
    };
    ClarificationChoice {
        label: interpretation.label.clone(),
        sql: interpretation.sql.clone(),
        why: interpretation.why.clone(),
        preview,
    }
}
