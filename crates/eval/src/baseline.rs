//! Baseline of a dataset: one line per question, small enough to be stored with the dataset.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::report::CaseVerdict;
use crate::text::yes_or_no;
use crate::{CaseOutcome, EvalError, EvalReport, csv};

const HEADER: [&str; 4] = ["id", "outcome", "right", "error_type"];

/// Earlier results of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline {
    /// Entries in dataset order.
    pub entries: Vec<BaselineEntry>,
}

/// Earlier result of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineEntry {
    /// Id of the question.
    pub id: String,
    /// Outcome of the question; the median over several runs.
    pub outcome: CaseOutcome,
    /// `true` if the answer was right in most runs; `None` if it could not be judged.
    pub right: Option<bool>,
    /// Error type of the first failure; empty if there was none.
    pub error_type: String,
}

/// Differences between a report and a baseline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaselineDiff {
    /// Ids of questions with a worse result, each with a description of the change.
    pub regressions: Vec<(String, String)>,
    /// Ids of questions with a better result, each with a description of the change.
    pub improvements: Vec<(String, String)>,
    /// Ids of questions that are not in the baseline.
    pub added: Vec<String>,
    /// Ids of questions in the baseline that were not asked.
    pub missing: Vec<String>,
}

impl Baseline {
    /// Creates a baseline from a report.
    pub fn from_report(report: &EvalReport) -> Baseline {
        let line = |verdict: CaseVerdict| BaselineEntry {
            id: verdict.id,
            outcome: verdict.outcome,
            right: verdict.right,
            error_type: verdict.error_type,
        };
        Baseline { entries: report.verdicts().into_iter().map(line).collect() }
    }

    /// Serializes the baseline as CSV.
    pub fn to_csv(&self) -> String {
        let lines = self
            .entries
            .iter()
            .map(|line| csv::format_row([&line.id, line.outcome.name(), yes_or_no(line.right), &line.error_type]));
        std::iter::once(csv::format_row(HEADER)).chain(lines).collect()
    }

    /// Writes the baseline to a CSV file.
    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, self.to_csv()).map_err(|error| {
            EvalError::anyhow(
                format!("`{}` cannot be written: {error}", path.display()),
                "check the folder and its permissions",
            )
        })
    }

    /// Reads a baseline from a CSV file.
    pub fn read(path: &Path) -> Result<Baseline> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            EvalError::anyhow(format!("`{shown}` cannot be read: {error}"), "write a baseline first")
        })?;
        let wrong = |line: usize, what: String| {
            EvalError::anyhow(
                format!("`{shown}`, line {line}: {what}"),
                format!("its columns are {}", HEADER.join(", ")),
            )
        };
        let table = csv::read(&text).map_err(|line| wrong(line, "a quote is opened and never closed".into()))?;
        let Some((head, rows)) = table.split_first().filter(|(head, _)| head.cells == HEADER) else {
            return Err(wrong(1, "this is not the header of a baseline".into()));
        };
        let mut lines = Vec::new();
        for row in rows {
            let [id, outcome, right, error_type] = row.cells.as_slice() else {
                return Err(wrong(row.line, format!("{} cells instead of {}", row.cells.len(), head.cells.len())));
            };
            let known = [CaseOutcome::FirstAttempt, CaseOutcome::Corrected, CaseOutcome::Failed];
            let Some(outcome) = known.into_iter().find(|known| known.name() == outcome) else {
                return Err(wrong(row.line, format!("field `outcome` is `{outcome}`")));
            };
            let right = match right.as_str() {
                "yes" => Some(true),
                "no" => Some(false),
                "" => None,
                other => return Err(wrong(row.line, format!("field `right` is `{other}`, not yes, no or empty"))),
            };
            lines.push(BaselineEntry { id: id.clone(), outcome, right, error_type: error_type.clone() });
        }
        Ok(Baseline { entries: lines })
    }

    /// Compares a report with the baseline.
    pub fn diff(&self, report: &EvalReport) -> BaselineDiff {
        let now = Baseline::from_report(report);
        let mut before: BTreeMap<&str, &BaselineEntry> =
            self.entries.iter().map(|line| (line.id.as_str(), line)).collect();
        let mut drift = BaselineDiff::default();
        for line in &now.entries {
            let Some(previous) = before.remove(line.id.as_str()) else {
                drift.added.push(line.id.clone());
                continue;
            };
            // A right answer ranks above any answer, and a first-attempt success above a
            // correction.
            let (rank_was, rank_is) =
                ((previous.right == Some(true), previous.outcome), (line.right == Some(true), line.outcome));
            let words = || format!("{} → {}", describe_entry(previous), describe_entry(line));
            match rank_is.cmp(&rank_was) {
                std::cmp::Ordering::Less => drift.regressions.push((line.id.clone(), words())),
                std::cmp::Ordering::Greater => drift.improvements.push((line.id.clone(), words())),
                std::cmp::Ordering::Equal => {}
            }
        }
        drift.missing =
            self.entries.iter().filter(|l| before.contains_key(l.id.as_str())).map(|l| l.id.clone()).collect();
        drift
    }
}

fn describe_entry(line: &BaselineEntry) -> String {
    let right = match line.right {
        Some(true) => ", right",
        Some(false) => ", not right",
        None => "",
    };
    format!("{}{right}", line.outcome.name().replace('_', " "))
}
