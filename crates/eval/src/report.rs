//! Report of a run, for people and programs. The same records always produce the same text.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::results::{self, ResultsHeader};
use crate::text::yes_or_no;
use crate::{
    BarChart, CaseOutcome, CaseRecord, EvalMetrics, ExpectationMatch, MetricTarget, SkippedCase, Spread, csv, spread,
};

/// Metric of a run; `None` if it is undefined.
type MetricFn = fn(&EvalMetrics) -> Option<f64>;

/// Report of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalReport {
    /// Name of the dataset.
    pub dataset: String,
    /// Label of the measured system.
    pub label: String,
    /// Number of times each question should be asked.
    pub runs: u32,
    /// Expected number of records over all runs.
    pub expected_records: usize,
    /// Records by run, in dataset order.
    pub records: Vec<CaseRecord>,
    /// Questions that cannot be asked.
    pub skipped: Vec<SkippedCase>,
    pub(crate) fingerprint: String,
}

/// Result of a question over all runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaseVerdict {
    pub id: String,
    /// Median outcome; the worse one of two.
    pub outcome: CaseOutcome,
    /// `true` if the answer was right in most runs; `None` if it was never judged.
    pub right: Option<bool>,
    pub error_type: String,
}

/// Summary of a report, for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportSummary {
    /// Name of the dataset.
    pub dataset: String,
    /// Label of the measured system.
    pub label: String,
    /// Number of times each question should be asked.
    pub runs: u32,
    /// `true` if every question was asked in every run.
    pub complete: bool,
    /// Metrics over all runs.
    pub metrics: EvalMetrics,
    /// Targets, and whether each is met.
    pub targets: [MetricTarget; 3],
    /// Spread of rates between runs; empty for a single run.
    pub spread: BTreeMap<&'static str, Spread>,
    /// Metrics by group.
    pub by_tag: BTreeMap<String, EvalMetrics>,
    /// Number of questions by [`ExpectationMatch`].
    pub behaviour: BTreeMap<&'static str, usize>,
    /// Questions that cannot be asked.
    pub skipped: Vec<SkippedCase>,
}

impl EvalReport {
    pub(crate) fn new(header: ResultsHeader, runs: u32, of: usize, records: Vec<CaseRecord>) -> EvalReport {
        let ResultsHeader { dataset, fingerprint, label, skipped } = header;
        EvalReport { dataset, label, runs, expected_records: of, records, skipped, fingerprint }
    }

    /// Reads the results file of a run, complete or not.
    pub fn read(path: &Path) -> Result<EvalReport> {
        let (header, mut records) = results::read(path)?;
        // Concurrent questions are stored in order of completion.
        records.sort_by(|a, b| (a.run, &a.id).cmp(&(b.run, &b.id)));
        let runs = records.iter().map(|record| record.run).max().unwrap_or(1);
        let of = records.len();
        Ok(EvalReport::new(header, runs, of, records))
    }

    /// Returns whether every question was asked in every run.
    pub fn is_complete(&self) -> bool {
        self.records.len() == self.expected_records
    }

    /// Returns the metrics over all runs.
    pub fn metrics(&self) -> EvalMetrics {
        EvalMetrics::from_records(&self.records)
    }

    /// Returns the metrics of each run.
    pub fn per_run(&self) -> Vec<EvalMetrics> {
        let run = |run| EvalMetrics::from_records(self.records.iter().filter(|record| record.run == run));
        (1..=self.runs).map(run).filter(|metrics| metrics.total > 0).collect()
    }

    /// Returns the summary for programs.
    pub fn summary(&self) -> ReportSummary {
        let metrics = self.metrics();
        let mut by_tag: BTreeMap<String, Vec<&CaseRecord>> = BTreeMap::new();
        for record in &self.records {
            for tag in &record.tags {
                by_tag.entry(tag.clone()).or_default().push(record);
            }
        }
        let mut behaviour = BTreeMap::new();
        for known in self.records.iter().filter_map(|record| record.behaviour) {
            *behaviour.entry(known.name()).or_default() += 1;
        }
        ReportSummary {
            dataset: self.dataset.clone(),
            label: self.label.clone(),
            runs: self.runs,
            complete: self.is_complete(),
            targets: metrics.targets(),
            metrics,
            spread: self.spreads(),
            by_tag: by_tag.into_iter().map(|(tag, records)| (tag, EvalMetrics::from_records(records))).collect(),
            behaviour,
            skipped: self.skipped.clone(),
        }
    }

    fn spreads(&self) -> BTreeMap<&'static str, Spread> {
        let runs = self.per_run();
        if runs.len() < 2 {
            return BTreeMap::new();
        }
        let rates: [(&str, MetricFn); 5] = [
            ("first_attempt_rate", |m| Some(m.first_attempt_rate)),
            ("correction_effectiveness", |m| m.correction_effectiveness),
            ("overall_success_rate", |m| Some(m.overall_success_rate)),
            ("right_rate", |m| (m.judged > 0).then_some(m.right_rate)),
            ("avg_attempts", |m| Some(m.avg_attempts)),
        ];
        let of = |rate: MetricFn| spread(&runs.iter().filter_map(rate).collect::<Vec<_>>());
        rates.into_iter().filter_map(|(name, rate)| Some((name, of(rate)?))).collect()
    }

    /// Returns the result of each question over all runs, in dataset order.
    pub(crate) fn verdicts(&self) -> Vec<CaseVerdict> {
        let mut order: Vec<&str> = Vec::new();
        let mut by_id: BTreeMap<&str, Vec<&CaseRecord>> = BTreeMap::new();
        for record in &self.records {
            let records = by_id.entry(&record.id).or_default();
            if records.is_empty() {
                order.push(&record.id);
            }
            records.push(record);
        }
        order.into_iter().filter_map(|id| case_verdict(id, by_id.get(id)?)).collect()
    }

    /// Serializes the records as CSV, one line per question and run.
    pub fn to_csv(&self) -> String {
        let head = [
            "run",
            "id",
            "tags",
            "outcome",
            "status",
            "right_first",
            "right",
            "attempts",
            "error_type",
            "behaviour",
            "llm_calls",
            "input_tokens",
            "output_tokens",
            "usd",
            "seconds",
            "sql",
            "unjudged",
            "trouble",
        ];
        let lines = self.records.iter().map(|record| {
            let status = serde_json::to_value(record.status).ok().and_then(|name| name.as_str().map(str::to_string));
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let cells = [
                record.run.to_string(),
                record.id.clone(),
                record.tags.join(" "),
                record.outcome.name().to_string(),
                status.unwrap_or_default(),
                yes_or_no(record.right_first).to_string(),
                yes_or_no(record.right).to_string(),
                record.drafts.len().to_string(),
                text(&record.error_type),
                record.behaviour.map_or("", ExpectationMatch::name).to_string(),
                record.llm_calls.to_string(),
                record.cost.input_tokens.to_string(),
                record.cost.output_tokens.to_string(),
                record.cost.usd.map_or_else(String::new, |usd| format!("{usd:.6}")),
                format!("{:.3}", record.seconds),
                text(&record.sql),
                text(&record.unjudged),
                text(&record.trouble),
            ];
            csv::format_row(cells.iter().map(String::as_str))
        });
        std::iter::once(csv::format_row(head)).chain(lines).collect()
    }

    /// Returns a bar chart of the rates.
    pub fn chart(&self) -> BarChart {
        let groups = rates(&self.metrics()).into_iter().map(|(name, value)| (name.to_string(), vec![value]));
        BarChart { title: self.title(), series: vec![self.label.clone()], groups: groups.collect() }
    }

    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.dataset, self.label)
    }
}

fn case_verdict(id: &str, records: &[&CaseRecord]) -> Option<CaseVerdict> {
    let mut outcomes: Vec<CaseOutcome> = records.iter().map(|record| record.outcome).collect();
    outcomes.sort();
    let outcome = *outcomes.get((outcomes.len().max(1) - 1) / 2)?;
    let judged: Vec<bool> = records.iter().filter_map(|record| record.right).collect();
    let right = judged.iter().filter(|right| **right).count();
    let error_type =
        records.iter().find(|record| record.outcome == outcome).and_then(|record| record.error_type.clone());
    Some(CaseVerdict {
        id: id.to_string(),
        outcome,
        right: (!judged.is_empty()).then_some(2 * right > judged.len()),
        error_type: error_type.unwrap_or_default(),
    })
}

/// Returns the rates that charts and comparisons show.
pub(crate) fn rates(m: &EvalMetrics) -> [(&'static str, Option<f64>); 5] {
    let judged = |rate: f64| (m.judged > 0).then_some(rate);
    [
        ("First draft answered", Some(m.first_attempt_rate)),
        ("Correction effectiveness", m.correction_effectiveness),
        ("Answered in all", Some(m.overall_success_rate)),
        ("First draft right", judged(m.right_first_rate)),
        ("Answer right", judged(m.right_rate)),
    ]
}
