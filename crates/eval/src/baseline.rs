//! What a set came to before: one line for each question, small enough to be kept beside the set.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::report::Verdict;
use crate::{Outcome, Report, Trouble, csv};

const HEAD: [&str; 4] = ["id", "outcome", "right", "error_type"];

/// What a set came to before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline {
    /// In the order of the set.
    pub lines: Vec<Line>,
}

/// What one question came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which.
    pub id: String,
    /// How it ended; over several runs, the one in the middle.
    pub outcome: Outcome,
    /// Whether it was right, in most of the runs.
    pub right: Option<bool>,
    /// The family of the first failure; empty if there was none.
    pub error_type: String,
}

/// How a report differs from a baseline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// Worse than before: which, and in which way.
    pub regressions: Vec<(String, String)>,
    /// Better than before.
    pub improvements: Vec<(String, String)>,
    /// Not in the baseline.
    pub added: Vec<String>,
    /// In the baseline, but not asked this time.
    pub missing: Vec<String>,
}

impl Baseline {
    /// What a report comes to.
    pub fn of(report: &Report) -> Baseline {
        let line = |verdict: Verdict| Line {
            id: verdict.id,
            outcome: verdict.outcome,
            right: verdict.right,
            error_type: verdict.error_type,
        };
        Baseline { lines: report.verdicts().into_iter().map(line).collect() }
    }

    /// As a file holds it.
    pub fn csv(&self) -> String {
        let lines = self.lines.iter().map(|line| {
            csv::line([&line.id, line.outcome.name(), crate::report::yes_or_no(line.right), &line.error_type])
        });
        std::iter::once(csv::line(HEAD)).chain(lines).collect()
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, self.csv()).map_err(|error| {
            Trouble::error(
                format!("`{}` cannot be written: {error}", path.display()),
                "check the folder and its permissions",
            )
        })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Baseline> {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| Trouble::error(format!("`{shown}` cannot be read: {error}"), "write a baseline first"))?;
        let wrong = |line: usize, what: String| {
            Trouble::error(format!("`{shown}`, line {line}: {what}"), format!("its columns are {}", HEAD.join(", ")))
        };
        let table = csv::read(&text).map_err(|line| wrong(line, "a quote is opened and never closed".into()))?;
        let Some((head, rows)) = table.split_first().filter(|(head, _)| head.cells == HEAD) else {
            return Err(wrong(1, "this is not the head of a baseline".into()));
        };
        let mut lines = Vec::new();
        for row in rows {
            let [id, outcome, right, error_type] = row.cells.as_slice() else {
                return Err(wrong(row.line, format!("{} cells instead of {}", row.cells.len(), head.cells.len())));
            };
            let known = [Outcome::FirstAttempt, Outcome::Corrected, Outcome::Failed];
            let Some(outcome) = known.into_iter().find(|known| known.name() == outcome) else {
                return Err(wrong(row.line, format!("field `outcome` is `{outcome}`")));
            };
            let right = match right.as_str() {
                "yes" => Some(true),
                "no" => Some(false),
                "" => None,
                other => return Err(wrong(row.line, format!("field `right` is `{other}`, not yes, no or empty"))),
            };
            lines.push(Line { id: id.clone(), outcome, right, error_type: error_type.clone() });
        }
        Ok(Baseline { lines })
    }

    /// What has changed since.
    pub fn against(&self, report: &Report) -> Drift {
        let now = Baseline::of(report);
        let mut before: BTreeMap<&str, &Line> = self.lines.iter().map(|line| (line.id.as_str(), line)).collect();
        let mut drift = Drift::default();
        for line in &now.lines {
            let Some(was) = before.remove(line.id.as_str()) else {
                drift.added.push(line.id.clone());
                continue;
            };
            // A right answer weighs more than any answer, and any answer more than a first attempt.
            let (rank_was, rank_is) =
                ((was.right == Some(true), was.outcome), (line.right == Some(true), line.outcome));
            let words = || format!("{} → {}", in_words(was), in_words(line));
            match rank_is.cmp(&rank_was) {
                std::cmp::Ordering::Less => drift.regressions.push((line.id.clone(), words())),
                std::cmp::Ordering::Greater => drift.improvements.push((line.id.clone(), words())),
                std::cmp::Ordering::Equal => {}
            }
        }
        drift.missing =
            self.lines.iter().filter(|l| before.contains_key(l.id.as_str())).map(|l| l.id.clone()).collect();
        drift
    }
}

fn in_words(line: &Line) -> String {
    let right = match line.right {
        Some(true) => ", right",
        Some(false) => ", not right",
        None => "",
    };
    format!("{}{right}", line.outcome.name().replace('_', " "))
}
