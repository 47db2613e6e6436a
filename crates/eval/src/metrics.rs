//! Metrics of an evaluation. First attempts are separate from corrections, so that a good
//! correction loop cannot hide a weak generator, and right answers are separate from both.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::outcome::CaseOutcome;
use crate::record::CaseRecord;
use crate::text::percent;

/// Metrics of a set of questions.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct EvalMetrics {
    /// Number of questions asked.
    pub total: usize,
    /// Number of questions answered by the first draft as the model wrote it.
    pub first_attempt_success: usize,
    /// Number of questions answered after a correction, by rules or by the model.
    pub corrected_success: usize,
    /// Number of questions not answered.
    pub final_failures: usize,
    /// Total number of drafts.
    pub attempts: usize,
    /// `first_attempt_success / total`, from 0 to 1: accuracy of the generator alone.
    pub first_attempt_rate: f64,
    /// `corrected_success / (total - first_attempt_success)`, from 0 to 1: benefit of correction.
    /// Null if nothing had to be corrected.
    pub correction_effectiveness: Option<f64>,
    /// `(first_attempt_success + corrected_success) / total`, from 0 to 1.
    pub overall_success_rate: f64,
    /// `attempts / total`.
    pub avg_attempts: f64,
    /// Metrics by error type of the first failure.
    pub by_error_type: BTreeMap<String, ErrorTypeMetrics>,
    /// Number of questions whose answer could be compared with a gold query.
    pub judged: usize,
    /// Number of questions whose first draft, as written, returned the right rows.
    pub right_first: usize,
    /// Number of questions whose final answer returned the right rows.
    pub right: usize,
    /// Number of questions whose first draft was wrong and whose final answer was right.
    pub made_right: usize,
    /// Number of questions whose first draft was right and whose final answer was wrong: false
    /// corrections.
    pub made_wrong: usize,
    /// `right_first / judged`, from 0 to 1.
    pub right_first_rate: f64,
    /// `right / judged`, from 0 to 1.
    pub right_rate: f64,
    /// Number of questions answered by the plain-rows fallback.
    pub fallbacks: usize,
    /// Number of questions that could not be asked.
    pub troubles: usize,
    /// Number of model calls.
    pub llm_calls: u64,
    /// Number of tokens in prompts.
    pub input_tokens: u64,
    /// Number of generated tokens.
    pub output_tokens: u64,
    /// Cost in US dollars; null if no price is known.
    pub usd: Option<f64>,
    /// Total time from question to answer, in seconds.
    pub seconds: f64,
}

/// Metrics of one error type.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ErrorTypeMetrics {
    /// Number of questions whose first draft failed with this error type.
    pub count: usize,
    /// Number of these questions that were answered after a correction.
    pub corrected: usize,
    /// Number of drafts for these questions: the cost of this error type.
    pub attempts: usize,
    /// `corrected / count`, from 0 to 1.
    pub rate: f64,
}

/// Returns `part / whole`, or 0 if `whole` is 0.
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl EvalMetrics {
    /// Aggregates records into metrics.
    pub fn from_records<'r>(records: impl IntoIterator<Item = &'r CaseRecord>) -> EvalMetrics {
        let mut m = EvalMetrics::default();
        for record in records {
            m.add(record);
        }
        m.first_attempt_rate = ratio(m.first_attempt_success, m.total);
        let failed_at_first = m.total - m.first_attempt_success;
        m.correction_effectiveness = (failed_at_first > 0).then(|| ratio(m.corrected_success, failed_at_first));
        m.overall_success_rate = ratio(m.first_attempt_success + m.corrected_success, m.total);
        m.avg_attempts = ratio(m.attempts, m.total);
        m.right_first_rate = ratio(m.right_first, m.judged);
        m.right_rate = ratio(m.right, m.judged);
        for family in m.by_error_type.values_mut() {
            family.rate = ratio(family.corrected, family.count);
        }
        m
    }

    fn add(&mut self, record: &CaseRecord) {
        self.total += 1;
        self.attempts += record.drafts.len();
        match record.outcome {
            CaseOutcome::FirstAttempt => self.first_attempt_success += 1,
            CaseOutcome::Corrected => self.corrected_success += 1,
            CaseOutcome::Failed => self.final_failures += 1,
        }
        if let Some(error_type) = &record.error_type {
            let family = self.by_error_type.entry(error_type.clone()).or_default();
            family.count += 1;
            family.attempts += record.drafts.len();
            family.corrected += usize::from(record.outcome == CaseOutcome::Corrected);
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

    /// Returns the mean time per question, in seconds.
    pub fn mean_seconds(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.seconds / self.total as f64 }
    }

    /// Returns the three targets and whether each is met.
    pub fn targets(&self) -> [MetricTarget; 3] {
        let asked = self.total > 0;
        let target = |name, above, value: Option<f64>| MetricTarget {
            name,
            above,
            value,
            // If nothing had to be corrected, the target counts as met.
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

/// Target for a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricTarget {
    /// Name of the rate.
    pub name: &'static str,
    /// Threshold that the rate must exceed.
    pub above: f64,
    /// Measured rate; null if nothing had to be corrected.
    pub value: Option<f64>,
    /// `true` if the rate exceeds the threshold.
    pub met: bool,
    /// Margin above the threshold; negative if the target is missed, null if there is no rate.
    pub by: Option<f64>,
}

impl MetricTarget {
    /// Formats the target for people: threshold, measured rate and verdict.
    pub fn describe(&self) -> [String; 3] {
        let verdict = match (self.met, self.by) {
            (true, Some(by)) => format!("met by {:.1} points", by * 100.0),
            (false, Some(by)) => format!("missed by {:.1} points", by.abs() * 100.0),
            (true, None) => "met".to_string(),
            (false, None) => "missed: nothing was asked".to_string(),
        };
        [percent(self.above), self.value.map_or("nothing to correct".to_string(), percent), verdict]
    }
}

/// Spread of a metric over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Mean over the runs.
    pub mean: f64,
    /// Sample standard deviation; 0 for a single run.
    pub deviation: f64,
    /// Minimum over the runs.
    pub min: f64,
    /// Maximum over the runs.
    pub max: f64,
}

/// Returns the spread of some values; `None` if there are none.
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
    fn describes_targets_without_negative_numbers() {
        let told = |met, value: Option<f64>| {
            MetricTarget { name: "rate", above: 0.60, value, met, by: value.map(|value| value - 0.60) }
                .describe()
                .join(" | ")
        };
        for (met, value, text) in [
            (true, Some(0.75), "60.0% | 75.0% | met by 15.0 points"),
            (false, Some(0.30), "60.0% | 30.0% | missed by 30.0 points"),
            // A rate equal to the threshold does not exceed it.
            (false, Some(0.60), "60.0% | 60.0% | missed by 0.0 points"),
            (true, None, "60.0% | nothing to correct | met"),
            (false, None, "60.0% | nothing to correct | missed: nothing was asked"),
        ] {
            assert_eq!(told(met, value), text);
        }
    }
}
