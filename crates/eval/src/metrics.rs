//! The figures: first attempts apart from corrections, so that a weak generator cannot hide behind a good loop, and right
//! answers apart from both.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Outcome, Record};
use crate::report::percent;

/// What a set of questions comes to.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Metrics {
    /// Questions asked.
    pub total: usize,
    /// Answered by the first draft as the model wrote it.
    pub first_attempt_success: usize,
    /// Answered after a correction, by rules or by the model.
    pub corrected_success: usize,
    /// Not answered.
    pub final_failures: usize,
    /// Drafts in all.
    pub attempts: usize,
    /// `first_attempt_success / total`: how good the generator is by itself.
    pub first_attempt_rate: f64,
    /// `corrected_success / (total - first_attempt_success)`: how much correction helps. Absent where nothing had to be corrected.
    pub correction_effectiveness: Option<f64>,
    /// `(first_attempt_success + corrected_success) / total`.
    pub overall_success_rate: f64,
    /// `attempts / total`.
    pub avg_attempts: f64,
    /// By the family of the first failure.
    pub by_error_type: BTreeMap<String, ByType>,
    /// Questions whose answer could be held against a gold query.
    pub judged: usize,
    /// The first draft, as written, gave the right rows.
    pub right_first: usize,
    /// The answer did.
    pub right: usize,
    /// The first draft did not, the answer did.
    pub made_right: usize,
    /// The first draft did, the answer did not: a false correction.
    pub made_wrong: usize,
    /// `right_first / judged`.
    pub right_first_rate: f64,
    /// `right / judged`.
    pub right_rate: f64,
    /// Answered from plain rows.
    pub fallbacks: usize,
    /// Could not even be asked.
    pub troubles: usize,
    /// Calls of a model.
    pub llm_calls: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// What that cost, where the price is known.
    pub usd: Option<f64>,
    /// From question to answer, all together.
    pub seconds: f64,
}

/// What became of one family of failures.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ByType {
    /// How often the first draft failed so.
    pub count: usize,
    /// How often it was answered in the end.
    pub corrected: usize,
    /// Drafts that these questions took: what a family of failures may cost before it is given up.
    pub attempts: usize,
    /// `corrected / count`.
    pub rate: f64,
}

/// A share of a whole; of nothing, none.
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Metrics {
    /// Adds everything up.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Record>) -> Metrics {
        let mut m = Metrics::default();
        for record in records {
            m.add(record);
        }
        m.first_attempt_rate = share(m.first_attempt_success, m.total);
        let failed_at_first = m.total - m.first_attempt_success;
        m.correction_effectiveness = (failed_at_first > 0).then(|| share(m.corrected_success, failed_at_first));
        m.overall_success_rate = share(m.first_attempt_success + m.corrected_success, m.total);
        m.avg_attempts = share(m.attempts, m.total);
        m.right_first_rate = share(m.right_first, m.judged);
        m.right_rate = share(m.right, m.judged);
        for family in m.by_error_type.values_mut() {
            family.rate = share(family.corrected, family.count);
        }
        m
    }

    fn add(&mut self, record: &Record) {
        self.total += 1;
        self.attempts += record.drafts.len();
        match record.outcome {
            Outcome::FirstAttempt => self.first_attempt_success += 1,
            Outcome::Corrected => self.corrected_success += 1,
            Outcome::Failed => self.final_failures += 1,
        }
        if let Some(error_type) = &record.error_type {
            let family = self.by_error_type.entry(error_type.clone()).or_default();
            family.count += 1;
            family.attempts += record.drafts.len();
            family.corrected += usize::from(record.outcome == Outcome::Corrected);
        }
        if let (Some(first), Some(last)) = (record.right_first, record.right) {
            self.judged += 1;
            self.right_first += usize::from(first);
            self.right += usize::from(last);
            self.made_right += usize::from(!first && last);
            self.made_wrong += usize::from(first && !last);
        }
        self.fallbacks += usize::from(record.fallback);
        self.troubles += usize::from(record.trouble.is_some());
        self.llm_calls += u64::from(record.llm_calls);
        self.input_tokens += record.cost.input_tokens;
        self.output_tokens += record.cost.output_tokens;
        self.usd = match (self.usd, record.cost.usd) {
            (None, None) => None,
            (so_far, more) => Some(so_far.unwrap_or(0.0) + more.unwrap_or(0.0)),
        };
        self.seconds += record.seconds;
    }

    /// Seconds for one question.
    pub fn seconds_each(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.seconds / self.total as f64 }
    }

    /// The three targets and how they were met.
    pub fn targets(&self) -> [Target; 3] {
        let asked = self.total > 0;
        let target = |name, above, value: Option<f64>| Target {
            name,
            above,
            value,
            // Where nothing had to be corrected, correction did not fall short.
            met: value.map_or(asked, |value| asked && value > above),
            by: value.map(|value| value - above),
        };
        [
            target("first_attempt_rate", 0.30, Some(self.first_attempt_rate)),
            target("correction_effectiveness", 0.60, self.correction_effectiveness),
            target("overall_success_rate", 0.85, Some(self.overall_success_rate)),
        ]
    }
}

/// Something to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Target {
    /// Which rate.
    pub name: &'static str,
    /// What it must be more than.
    pub above: f64,
    /// What it is; absent where nothing had to be corrected.
    pub value: Option<f64>,
    /// Whether it is more.
    pub met: bool,
    /// By how much; less than nothing if it is missed.
    pub by: Option<f64>,
}

impl Target {
    /// The target for people: what the rate must be more than, what it is, and whether that is enough.
    pub fn told(&self) -> [String; 3] {
        let verdict = match (self.met, self.by) {
            (true, Some(by)) => format!("met by {:.1} points", by * 100.0),
            (false, Some(by)) => format!("missed by {:.1} points", by.abs() * 100.0),
            (true, None) => "met".to_string(),
            (false, None) => "missed: nothing was asked".to_string(),
        };
        [percent(self.above), self.value.map_or("nothing to correct".to_string(), percent), verdict]
    }
}

/// How far several runs lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// The standard deviation between them (of a sample: one run has none).
    pub deviation: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

/// Mean and spread of some values; none of nothing.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let (first, rest) = values.split_first()?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if rest.is_empty() { 0.0 } else { (squares / (count - 1.0)).sqrt() };
    let ends = rest.iter().fold((*first, *first), |(min, max), value| (min.min(*value), max.max(*value)));
    Some(Spread { mean, deviation, min: ends.0, max: ends.1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_told_without_signs() {
        let told = |met, value: Option<f64>| {
            Target { name: "rate", above: 0.60, value, met, by: value.map(|value| value - 0.60) }.told().join(" | ")
        };
        for (met, value, text) in [
            (true, Some(0.75), "60.0% | 75.0% | met by 15.0 points"),
            (false, Some(0.30), "60.0% | 30.0% | missed by 30.0 points"),
            // Exactly at the mark is not above it.
            (false, Some(0.60), "60.0% | 60.0% | missed by 0.0 points"),
            (true, None, "60.0% | nothing to correct | met"),
            (false, None, "60.0% | nothing to correct | missed: nothing was asked"),
        ] {
            assert_eq!(told(met, value), text);
        }
    }
}
