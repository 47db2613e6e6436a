//! Clarifying questions: where a question has several readings that lead to different rows, a person chooses one.

use querymend_sql::diff::Tokens;
use querymend_sql::{Applicability, Approved, MAX_READINGS, Reading, Readings, Repair, Request, Rows, readings};
use querymend_sql::{Status as Repaired, review};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::steps::is_empty;
use super::weigh::key;
use super::{Hindrance, Purpose, Run, Step};
use crate::event::{Answer, Choice, Clarification, Confidence, Status, Stop};
use crate::prompts;
use crate::retry::RetryStrategy;
use crate::strategies::Trouble;

/// The strategy of an attempt whose query a person chose.
pub(super) const CHOICE: &str = "choice";
/// Rows of a preview.
const MAX_PREVIEW_ROWS: usize = 3;
/// Bytes of the label of a draft.
const MAX_LABEL: usize = 160;
/// How many failed drafts, the latest first, are searched for readings.
const MAX_FAILED_DRAFTS: usize = 3;

/// What happens where a question has several readings that lead to different rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clarify {
    /// The run ends with a question and two to four options.
    Ask,
    /// The most likely reading is taken, and the answer says so; also where nothing proves that one is right.
    Assume,
    /// The most likely reading is taken if something proves that its names are right, else the question is given up.
    Off,
}

impl Clarify {
    /// Returns what the setting `ask_user` says; where it is absent, `by_default` decides whether to ask.
    pub fn from_setting(ask_user: Option<bool>, by_default: bool) -> Self {
        if ask_user.unwrap_or(by_default) { Self::Ask } else { Self::Off }
    }
}

/// Readings whose rows are being compared, and what follows if nobody is asked.
pub(super) struct Comparison {
    readings: Readings,
    /// Their queries, as [`Tokens::identity`] has them.
    identities: Vec<String>,
    origin: Origin,
}

enum Origin {
    /// A repair that chose between readings. Its query is the first.
    Repair(Box<Repair>),
    /// A draft that could not be repaired.
    Unrepaired(Resume),
}

/// How a run goes on after a draft that could not be repaired.
pub(super) enum Resume {
    /// The model is asked again.
    Retry(Box<Trouble>, RetryStrategy),
    /// The attempts are over.
    GiveUp(Stop),
}

impl Run {
    /// Runs the readings of a draft whose repair had to choose between them. Returns false if it had no choice.
    pub(super) fn compare_repair(&mut self, repair: &Repair, query: &Approved) -> bool {
        let is_choice = repair.status == Repaired::Mended && self.current.refusal.is_none();
        if !is_choice || !self.may_compare() {
            return false;
        }
        let Some(mut found) = self.readings_of(&self.drafted, Applicability::Likely) else { return false };
        let identity = |sql: &str| Tokens::of(sql, self.dialect).identity().to_string();
        let taken = identity(query.sql());
        let Some(at) = found.readings.iter().position(|reading| identity(&reading.sql) == taken) else { return false };
        let first = found.readings.remove(at);
        found.readings.insert(0, first);
        self.compare(found, Origin::Repair(Box::new(repair.clone())))
    }

    /// Runs the readings of the last drafts that could not be repaired. Before the model is asked again that is only worth it if a
    /// person can be asked, and nothing prefers one reading to another.
    pub(super) fn compare_unrepaired(&mut self, resume: impl FnOnce() -> Resume) -> bool {
        if self.compared_unrepaired || self.settings.clarify == Clarify::Off || !self.may_compare() {
            return false;
        }
        let resume = resume();
        let is_retry = matches!(resume, Resume::Retry(..));
        if (is_retry && self.settings.clarify != Clarify::Ask) || self.kept.is_some() {
            return false;
        }
        let failed = self.troubles.iter().rev().take(if is_retry { 1 } else { MAX_FAILED_DRAFTS });
        let mut found = failed.filter_map(|trouble| self.readings_of(&trouble.sql, Applicability::Suggested));
        let Some(found) = found.find(|found| found.is_tied || !is_retry) else { return false };
        self.compared_unrepaired = self.compare(found, Origin::Unrepaired(resume));
        self.compared_unrepaired
    }

    fn may_compare(&self) -> bool {
        let is_affordable = self.settings.budget.spent(&self.cost, self.now).is_none();
        self.purpose == Purpose::Draft && self.settings.correction && self.ask.choice.is_none() && is_affordable
    }

    fn readings_of(&self, text: &str, apply: Applicability) -> Option<Readings> {
        let words = format!("{} {}", self.ask.question, self.ask.evidence.as_deref().unwrap_or_default());
        readings(&Request { text, context: self.context(), question: Some(&words), apply, error: None })
    }

    /// Runs the readings that may be run and were not run before, if these are several.
    fn compare(&mut self, mut found: Readings, origin: Origin) -> bool {
        let mut queries: Vec<Approved> = Vec::new();
        let mut identities: Vec<String> = Vec::new();
        let kept = std::mem::take(&mut found.readings).into_iter().filter(|reading| {
            let reviewed = review(&reading.sql, &self.context());
            let Ok(query) = reviewed.approve() else { return false };
            let identity = reviewed.tokens().identity().to_string();
            let is_new = !self.seen.contains(&identity) && !identities.contains(&identity);
            if is_new {
                queries.push(query);
                identities.push(identity);
            }
            is_new
        });
        found.readings = kept.collect();
        self.counts.reviews += found.readings.len() as u32;
        if queries.len() < 2 {
            return false;
        }
        self.comparison = Some(Comparison { readings: found, identities, origin });
        self.step = Step::Weigh(queries);
        true
    }

    pub(super) fn compared(&mut self, comparison: Comparison, result: Result<Vec<Result<Rows, Hindrance>>, Hindrance>) {
        let Comparison { readings: Readings { code, subject, readings, .. }, mut identities, origin } = comparison;
        self.counts.database += readings.len() as u32;
        let mut outcomes = match result {
            Ok(outcomes) => outcomes,
            Err(hindrance) => return self.hindered(hindrance),
        };
        let different = different(readings.iter().zip(&outcomes));
        if different.len() > 1 && self.settings.clarify == Clarify::Ask {
            let clarification = clarification(code, &subject, &different);
            return self.ask_back(clarification);
        }
        let likeliest = different.first().map(|(reading, _)| *reading);
        let taken = match (&origin, likeliest) {
            (Origin::Repair(_), _) => Some(0),
            (Origin::Unrepaired(_), Some(likeliest)) => readings.iter().position(|reading| reading == likeliest),
            (Origin::Unrepaired(_), None) => None,
        };
        let Some(taken) = taken else {
            self.seen.extend(identities);
            return match origin {
                Origin::Unrepaired(Resume::Retry(trouble, policy)) => self.ask_again(&trouble, policy),
                Origin::Unrepaired(Resume::GiveUp(stop)) => self.fall_back(stop),
                Origin::Repair(_) => self.fall_back(Stop::SameSql),
            };
        };
        let reading = &readings[taken];
        let others: Vec<&str> =
            different.iter().filter(|(other, _)| *other != reading).map(|(other, _)| other.label.as_str()).collect();
        let assumed = match others.as_slice() {
            [] => format!("assumed {}: nothing proves it", reading.label),
            others => format!("assumed {}; it could also be {}", reading.label, others.join(" or ")),
        };
        identities.remove(taken);
        self.seen.extend(identities);
        let is_ambiguous = !others.is_empty();
        let outcome = outcomes.swap_remove(taken);
        match origin {
            Origin::Repair(repair) => {
                self.take_reading(&repair, outcome, is_ambiguous.then_some((Confidence::Medium, assumed)));
            }
            Origin::Unrepaired(_) => {
                let Reading { sql, applied, .. } = reading.clone();
                let doubts = vec![assumed.clone()];
                let repair = Repair { status: Repaired::Mended, sql, applied, findings: Vec::new(), doubts };
                self.take_reading(&repair, outcome, Some((Confidence::Low, assumed)));
            }
        }
    }

    /// Goes on with a reading, which was run already.
    fn take_reading(
        &mut self,
        repair: &Repair,
        outcome: Result<Rows, Hindrance>,
        assumed: Option<(Confidence, String)>,
    ) {
        let Some((query, found)) = self.usable(repair) else { return self.fall_back(Stop::SameSql) };
        self.current.assumed = assumed;
        self.send_repaired(repair, query, found);
        self.counts.database -= 1;
        self.executed(outcome);
    }

    /// Returns the question about drafts that no majority agrees on, each with its reason and its votes.
    pub(super) fn disagreement(
        &self,
        drafts: Vec<(&str, String, usize, &Result<Rows, Hindrance>)>,
    ) -> Option<Clarification> {
        if self.settings.clarify != Clarify::Ask || !self.may_compare() {
            return None;
        }
        let mut readings: Vec<(Reading, usize, &Result<Rows, Hindrance>)> = Vec::new();
        for (sql, why, votes, rows) in drafts {
            let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            let clipped = prompts::clipped(&line, MAX_LABEL);
            let label = if clipped.len() < line.len() { format!("{clipped}…") } else { line };
            readings.push((Reading { label, sql: sql.to_string(), why, applied: Vec::new() }, votes, rows));
        }
        readings.sort_by_key(|(_, votes, _)| std::cmp::Reverse(*votes));
        let different = different(readings.iter().map(|(reading, _, rows)| (reading, *rows)));
        let options: Vec<Choice> =
            different.iter().take(MAX_READINGS).map(|(reading, rows)| choice(reading, rows)).collect();
        let question = "Which of these queries answers the question?".to_string();
        (options.len() > 1).then_some(Clarification { question, options })
    }

    /// Ends the run with a question back.
    pub(super) fn ask_back(&mut self, clarification: Clarification) {
        let answer = Answer {
            sql: clarification.options.first().map(|choice| choice.sql.clone()),
            text: Some(clarification.question.clone()),
            clarification: Some(clarification),
            ..self.blank(Status::AskUser, Stop::Ambiguous)
        };
        self.finish(answer);
    }
}

/// Returns one reading for each different answer. Where some return rows, those that return none are not meant.
fn different<'r>(
    readings: impl Iterator<Item = (&'r Reading, &'r Result<Rows, Hindrance>)>,
) -> Vec<(&'r Reading, &'r Rows)> {
    let ran: Vec<(&Reading, &Rows)> =
        readings.filter_map(|(reading, rows)| Some((reading, rows.as_ref().ok()?))).collect();
    let has_rows = ran.iter().any(|(_, rows)| !is_empty(rows));
    let mut different: Vec<(&Reading, &Rows)> = Vec::new();
    for (reading, rows) in ran.into_iter().filter(|(_, rows)| !has_rows || !is_empty(rows)) {
        if !different.iter().any(|(_, other)| key(other) == key(rows)) {
            different.push((reading, rows));
        }
    }
    different
}

fn clarification(code: &str, subject: &str, different: &[(&Reading, &Rows)]) -> Clarification {
    let labels: Vec<&str> = different.iter().map(|(reading, _)| reading.label.as_str()).collect();
    let (last, others) = labels.split_last().unwrap_or((&"", &[]));
    let what = if code == "unknown-table" { format!("table is meant by {subject}") } else { subject.to_string() };
    let question = format!("Which {what}: {} or {last}?", others.join(", "));
    Clarification { question, options: different.iter().map(|(reading, rows)| choice(reading, rows)).collect() }
}

fn choice(reading: &Reading, rows: &Rows) -> Choice {
    let preview = Rows {
        columns: rows.columns.clone(),
        rows: rows.rows.iter().take(MAX_PREVIEW_ROWS).cloned().collect(),
        truncated: rows.truncated || rows.rows.len() > MAX_PREVIEW_ROWS,
    };
    Choice { label: reading.label.clone(), sql: reading.sql.clone(), why: reading.why.clone(), preview }
}
