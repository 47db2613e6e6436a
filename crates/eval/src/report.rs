//! What a run came to, for people and for programs. The same records always give the same text.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::results::{self, Header};
use crate::{Behaviour, Chart, Metrics, Outcome, Record, Skipped, Spread, Target, csv, spread};

/// A figure of a run, where it has one.
type Rate = fn(&Metrics) -> Option<f64>;

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The dataset.
    pub dataset: String,
    /// What was measured.
    pub label: String,
    /// How often each question was to be asked.
    pub runs: u32,
    /// How many answers there were to be, over all runs.
    pub of: usize,
    /// What became of each question, run by run, in the order of the set.
    pub records: Vec<Record>,
    /// Questions that could not be asked.
    pub skipped: Vec<Skipped>,
    pub(crate) fingerprint: String,
}

/// What a question came to over all runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub id: String,
    /// The one in the middle; of two, the worse.
    pub outcome: Outcome,
    /// In most of the runs.
    pub right: Option<bool>,
    pub error_type: String,
}

/// The figures of a report, for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The dataset.
    pub dataset: String,
    /// What was measured.
    pub label: String,
    /// How often each question was to be asked.
    pub runs: u32,
    /// Whether every question was asked.
    pub complete: bool,
    /// All runs together.
    pub metrics: Metrics,
    /// The targets and how they were met.
    pub targets: [Target; 3],
    /// How far the runs lie apart, if there were several.
    pub spread: BTreeMap<&'static str, Spread>,
    /// By group.
    pub by_tag: BTreeMap<String, Metrics>,
    /// How often questions behaved as the dataset expects.
    pub behaviour: BTreeMap<&'static str, usize>,
    /// Questions that could not be asked.
    pub skipped: Vec<Skipped>,
}

impl Report {
    pub(crate) fn new(header: Header, runs: u32, of: usize, records: Vec<Record>) -> Report {
        let Header { dataset, fingerprint, label, skipped } = header;
        Report { dataset, label, runs, of, records, skipped, fingerprint }
    }

    /// Reads the results file of a run, whether it came to its end or not.
    pub fn read(path: &Path) -> Result<Report> {
        let (header, mut records) = results::read(path)?;
        // Questions that were under way together stand in the order in which they happened to end.
        records.sort_by(|a, b| (a.run, &a.id).cmp(&(b.run, &b.id)));
        let runs = records.iter().map(|record| record.run).max().unwrap_or(1);
        let of = records.len();
        Ok(Report::new(header, runs, of, records))
    }

    /// Whether every question was asked, as often as it was to be.
    pub fn is_complete(&self) -> bool {
        self.records.len() == self.of
    }

    /// All runs together.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(&self.records)
    }

    /// Each run by itself.
    pub fn per_run(&self) -> Vec<Metrics> {
        let run = |run| Metrics::of(self.records.iter().filter(|record| record.run == run));
        (1..=self.runs).map(run).filter(|metrics| metrics.total > 0).collect()
    }

    /// The figures, for programs.
    pub fn summary(&self) -> Summary {
        let metrics = self.metrics();
        let mut by_tag: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
        for record in &self.records {
            for tag in &record.tags {
                by_tag.entry(tag.clone()).or_default().push(record);
            }
        }
        let mut behaviour = BTreeMap::new();
        for known in self.records.iter().filter_map(|record| record.behaviour) {
            *behaviour.entry(known.name()).or_default() += 1;
        }
        Summary {
            dataset: self.dataset.clone(),
            label: self.label.clone(),
            runs: self.runs,
            complete: self.is_complete(),
            targets: metrics.targets(),
            metrics,
            spread: self.spreads(),
            by_tag: by_tag.into_iter().map(|(tag, records)| (tag, Metrics::of(records))).collect(),
            behaviour,
            skipped: self.skipped.clone(),
        }
    }

    fn spreads(&self) -> BTreeMap<&'static str, Spread> {
        let runs = self.per_run();
        if runs.len() < 2 {
            return BTreeMap::new();
        }
        let rates: [(&str, Rate); 5] = [
            ("first_attempt_rate", |m| Some(m.first_attempt_rate)),
            ("correction_effectiveness", |m| m.correction_effectiveness),
            ("overall_success_rate", |m| Some(m.overall_success_rate)),
            ("right_rate", |m| (m.judged > 0).then_some(m.right_rate)),
            ("avg_attempts", |m| Some(m.avg_attempts)),
        ];
        let of = |rate: Rate| spread(&runs.iter().filter_map(rate).collect::<Vec<_>>());
        rates.into_iter().filter_map(|(name, rate)| Some((name, of(rate)?))).collect()
    }

    /// What each question came to, in the order of the set.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let mut order: Vec<&str> = Vec::new();
        let mut by_id: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
        for record in &self.records {
            let records = by_id.entry(&record.id).or_default();
            if records.is_empty() {
                order.push(&record.id);
            }
            records.push(record);
        }
        order.into_iter().filter_map(|id| verdict(id, by_id.get(id)?)).collect()
    }

    /// A line for each question and run.
    pub fn csv(&self) -> String {
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
                record.behaviour.map_or("", Behaviour::name).to_string(),
                record.llm_calls.to_string(),
                record.cost.input_tokens.to_string(),
                record.cost.output_tokens.to_string(),
                record.cost.usd.map_or_else(String::new, |usd| format!("{usd:.6}")),
                format!("{:.3}", record.seconds),
                text(&record.sql),
                text(&record.unjudged),
                text(&record.trouble),
            ];
            csv::line(cells.iter().map(String::as_str))
        });
        std::iter::once(csv::line(head)).chain(lines).collect()
    }

    /// The rates as bars.
    pub fn chart(&self) -> Chart {
        let groups = rates(&self.metrics()).into_iter().map(|(name, value)| (name.to_string(), vec![value]));
        Chart { title: self.title(), series: vec![self.label.clone()], groups: groups.collect() }
    }

    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.dataset, self.label)
    }
}

fn verdict(id: &str, records: &[&Record]) -> Option<Verdict> {
    let mut outcomes: Vec<Outcome> = records.iter().map(|record| record.outcome).collect();
    outcomes.sort();
    let outcome = *outcomes.get((outcomes.len().max(1) - 1) / 2)?;
    let judged: Vec<bool> = records.iter().filter_map(|record| record.right).collect();
    let right = judged.iter().filter(|right| **right).count();
    let error_type =
        records.iter().find(|record| record.outcome == outcome).and_then(|record| record.error_type.clone());
    Some(Verdict {
        id: id.to_string(),
        outcome,
        right: (!judged.is_empty()).then_some(2 * right > judged.len()),
        error_type: error_type.unwrap_or_default(),
    })
}

/// The rates that charts and comparisons show.
pub(crate) fn rates(m: &Metrics) -> [(&'static str, Option<f64>); 5] {
    let judged = |rate: f64| (m.judged > 0).then_some(rate);
    [
        ("First draft answered", Some(m.first_attempt_rate)),
        ("Correction effectiveness", m.correction_effectiveness),
        ("Answered in all", Some(m.overall_success_rate)),
        ("First draft right", judged(m.right_first_rate)),
        ("Answer right", judged(m.right_rate)),
    ]
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

pub(crate) fn yes_or_no(truth: Option<bool>) -> &'static str {
    match truth {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

/// Text as a cell of a Markdown table takes it.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}
