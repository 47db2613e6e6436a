//! Comparison of two runs, question by question.

use std::collections::HashMap;

use anyhow::Result;
use serde::Serialize;

use crate::report::{CaseVerdict, rates};
use crate::text::{markdown_cell, percent};
use crate::{BarChart, CaseRecord, EvalError, EvalMetrics, EvalReport};

/// Maximum number of discordant pairs for the exact test; above it the chi-square approximation is
/// used.
const MAX_EXACT_PAIRS: usize = 25;

/// Comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunComparison {
    /// Label of the first run.
    pub a: String,
    /// Label of the second run.
    pub b: String,
    /// Name of the dataset.
    pub dataset: String,
    /// Number of questions asked in both runs; only these are compared.
    pub cases: usize,
    /// Number of questions asked in only one of the runs.
    pub left_out: usize,
    /// Metrics of the first run on the common questions.
    pub metrics_a: EvalMetrics,
    /// Metrics of the second run on the common questions.
    pub metrics_b: EvalMetrics,
    /// Paired outcomes by whether the question was answered with rows.
    pub answered: PairedOutcomes,
    /// Paired outcomes by whether the answer was right, for questions judged in both runs.
    pub right: PairedOutcomes,
}

/// Outcomes of the same questions in two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairedOutcomes {
    /// Number of questions that succeeded in both runs.
    pub both: usize,
    /// Number of questions that failed in both runs.
    pub neither: usize,
    /// Ids of questions that failed in the first run and succeeded in the second.
    pub fixed: Vec<String>,
    /// Ids of questions that succeeded in the first run and failed in the second.
    pub broken: Vec<String>,
    /// Significance test of the difference.
    pub test: McNemar,
}

/// Result of McNemar's test on the numbers of fixed and broken questions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct McNemar {
    /// Method by which the p-value was computed.
    pub method: McNemarMethod,
    /// Chi-square statistic; `None` for the exact test.
    pub statistic: Option<f64>,
    /// Two-sided p-value, from 0 to 1.
    pub p: f64,
}

/// Method of a McNemar test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McNemarMethod {
    /// Exact two-sided binomial test.
    Exact,
    /// Chi-square approximation with continuity correction.
    ChiSquare,
}

/// Runs McNemar's test: `fixed` questions changed from failure to success, `broken` from success to
/// failure.
pub fn mcnemar(fixed: usize, broken: usize) -> McNemar {
    let (n, fewer) = (fixed + broken, fixed.min(broken));
    if n <= MAX_EXACT_PAIRS {
        // Two-sided binomial tail: at most `fewer` heads, or at most `fewer` tails, in n fair coin
        // flips.
        let (mut ways, mut sum) = (1.0_f64, 0.0);
        for heads in 0..=fewer {
            sum += ways;
            ways = ways * (n - heads) as f64 / (heads + 1) as f64;
        }
        let p = (2.0 * sum / 2.0_f64.powi(n as i32)).min(1.0);
        return McNemar { method: McNemarMethod::Exact, statistic: None, p };
    }
    let apart = (fixed.abs_diff(broken) as f64 - 1.0).max(0.0);
    let statistic = apart * apart / n as f64;
    McNemar { method: McNemarMethod::ChiSquare, statistic: Some(statistic), p: erfc((statistic / 2.0).sqrt()) }
}

/// Returns the complementary error function for `x >= 0`. The upper tail of chi-square with one
/// degree of freedom is `erfc(√(x/2))`.
fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        // Maclaurin series of erf, which converges fast in this range.
        let (mut term, mut sum) = (x, x);
        for k in 1..100 {
            term *= -x * x / f64::from(k);
            sum += term / f64::from(2 * k + 1);
        }
        1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        // Continued fraction, evaluated from the innermost term.
        let fraction = (1..=100).rev().fold(x, |below, k| x + f64::from(k) / 2.0 / below);
        (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / fraction
    }
}

/// Compares two runs of the same questions. If a question was asked several times, the majority of
/// its runs decides.
pub fn compare(a: &EvalReport, b: &EvalReport) -> Result<RunComparison> {
    if a.fingerprint != b.fingerprint {
        return Err(EvalError::anyhow(
            format!("`{}` and `{}` do not have the same questions", a.title(), b.title()),
            "run both on the same dataset, with the same gold queries",
        ));
    }
    let verdicts = |report: &EvalReport| report.verdicts();
    let (all_a, all_b) = (verdicts(a), verdicts(b));
    let of_b: HashMap<&str, &CaseVerdict> = all_b.iter().map(|verdict| (verdict.id.as_str(), verdict)).collect();
    let pairs: Vec<(&CaseVerdict, &CaseVerdict)> =
        all_a.iter().filter_map(|verdict| Some((verdict, *of_b.get(verdict.id.as_str())?))).collect();
    if pairs.is_empty() {
        let what = format!("`{}` and `{}` have no question in common", a.title(), b.title());
        return Err(EvalError::anyhow(what, "run both with the same --limit"));
    }
    let common: std::collections::HashSet<&str> = pairs.iter().map(|(verdict, _)| verdict.id.as_str()).collect();
    let metrics =
        |records: &[CaseRecord]| EvalMetrics::from_records(records.iter().filter(|r| common.contains(r.id.as_str())));
    Ok(RunComparison {
        a: a.label.clone(),
        b: b.label.clone(),
        dataset: a.dataset.clone(),
        cases: pairs.len(),
        left_out: all_a.len() + all_b.len() - 2 * pairs.len(),
        metrics_a: metrics(&a.records),
        metrics_b: metrics(&b.records),
        answered: paired(&pairs, |verdict| Some(verdict.outcome.is_success())),
        right: paired(&pairs, |verdict| verdict.right),
    })
}

fn paired(pairs: &[(&CaseVerdict, &CaseVerdict)], good: impl Fn(&CaseVerdict) -> Option<bool>) -> PairedOutcomes {
    let (mut both, mut neither, mut fixed, mut broken) = (0, 0, Vec::new(), Vec::new());
    for (a, b) in pairs {
        match (good(a), good(b)) {
            (Some(true), Some(true)) => both += 1,
            (Some(false), Some(false)) => neither += 1,
            (Some(false), Some(true)) => fixed.push(a.id.clone()),
            (Some(true), Some(false)) => broken.push(a.id.clone()),
            _ => {}
        }
    }
    let test = mcnemar(fixed.len(), broken.len());
    PairedOutcomes { both, neither, fixed, broken, test }
}

impl RunComparison {
    /// Returns the rows of the comparison: metric, first run, second run, change.
    fn rows(&self) -> Vec<[String; 4]> {
        let (a, b) = (&self.metrics_a, &self.metrics_b);
        let share = |name: &str, a: Option<f64>, b: Option<f64>| {
            let shown = |value: Option<f64>| value.map_or("–".to_string(), percent);
            let change = a.zip(b).map_or(String::new(), |(a, b)| format!("{:+.1} points", (b - a) * 100.0));
            [name.to_string(), shown(a), shown(b), change]
        };
        // The change is relative to the first run, so it is undefined if that value is zero.
        let change = |a: f64, b: f64| if a == 0.0 { String::new() } else { format!("{:+.1}%", (b - a) / a * 100.0) };
        let mean = |name: &str, unit: &str, a: f64, b: f64| {
            [name.to_string(), format!("{a:.2}{unit}"), format!("{b:.2}{unit}"), change(a, b)]
        };
        let each = |part: u64, m: &EvalMetrics| if m.total == 0 { 0.0 } else { part as f64 / m.total as f64 };
        let tokens = |m: &EvalMetrics| each(m.input_tokens + m.output_tokens, m);
        let failed = |m: &EvalMetrics| format!("{}/{}", m.final_failures, m.total);
        let mut rows = vec![share("Success rate", Some(a.overall_success_rate), Some(b.overall_success_rate))];
        rows.push(mean("Average time", " s", a.mean_seconds(), b.mean_seconds()));
        rows.push([
            "Failed questions".to_string(),
            failed(a),
            failed(b),
            change(each(a.final_failures as u64, a), each(b.final_failures as u64, b)),
        ]);
        let shares = rates(a).into_iter().zip(rates(b)).filter(|((name, _), _)| *name != "Answered in all");
        rows.extend(shares.map(|((name, a), (_, b))| share(name, a, b)));
        rows.push(mean("Drafts per question", "", a.avg_attempts, b.avg_attempts));
        rows.push(mean("Model calls per question", "", each(a.llm_calls, a), each(b.llm_calls, b)));
        rows.push(mean("Tokens per question", "", tokens(a), tokens(b)));
        rows
    }

    /// Renders a plain-text table for a terminal, with fixed and broken questions below.
    pub fn table(&self) -> String {
        let head = ["Metric".to_string(), self.a.clone(), self.b.clone(), "Change".to_string()];
        let rows: Vec<[String; 4]> = std::iter::once(head).chain(self.rows()).collect();
        let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        let line = |row: &[String; 4]| {
            let cells = row.iter().zip(widths).enumerate().map(|(i, (cell, width))| {
                let pad = " ".repeat(width - cell.chars().count());
                if i == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
            });
            cells.collect::<Vec<_>>().join("   ").trim_end().to_string()
        };
        let title = self.title();
        let mut lines = vec![title.clone(), "=".repeat(title.chars().count())];
        lines.extend(rows.iter().take(1).map(line));
        lines.push("-".repeat(widths.iter().sum::<usize>() + 9));
        lines.extend(rows.iter().skip(1).map(line));
        lines.push(String::new());
        lines.extend(self.sentences());
        lines.join("\n") + "\n"
    }

    /// Renders the comparison as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n| metric | {} | {} | change |\n|---|---:|---:|---:|\n",
            markdown_cell(&self.title()),
            markdown_cell(&self.a),
            markdown_cell(&self.b)
        );
        for row in self.rows() {
            text += &format!("| {} |\n", row.join(" | "));
        }
        for sentence in self.sentences() {
            text += &format!("\n{}\n", markdown_cell(&sentence));
        }
        text
    }

    /// Returns a bar chart of the rates of both runs.
    pub fn chart(&self) -> BarChart {
        let both = rates(&self.metrics_a).into_iter().zip(rates(&self.metrics_b));
        let groups = both.map(|((name, a), (_, b))| (name.to_string(), vec![a, b])).collect();
        BarChart { title: self.title(), series: vec![self.a.clone(), self.b.clone()], groups }
    }

    fn title(&self) -> String {
        format!("{} against {} ({}, {} questions)", self.a, self.b, self.dataset, self.cases)
    }

    fn sentences(&self) -> Vec<String> {
        let sentence = |what: &str, paired: &PairedOutcomes| {
            let how = match paired.test.method {
                McNemarMethod::Exact => "exact".to_string(),
                McNemarMethod::ChiSquare => format!("chi-square {:.3}", paired.test.statistic.unwrap_or_default()),
            };
            let (fixed, broken) = (paired.fixed.len(), paired.broken.len());
            format!("{what}: {fixed} fixed, {broken} broken, McNemar p = {:.4} ({how}).", paired.test.p)
        };
        let mut all = vec![sentence("Answered", &self.answered), sentence("Right", &self.right)];
        if !self.right.broken.is_empty() {
            all.push(format!("No longer right: {}.", self.right.broken.join(", ")));
        }
        if self.left_out > 0 {
            all.push(format!("{} questions were asked in one run only and do not count.", self.left_out));
        }
        all
    }
}
