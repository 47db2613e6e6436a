//! Two runs of the same questions, held against each other question by question.

use std::collections::HashMap;

use anyhow::Result;
use serde::Serialize;

use crate::report::{Verdict, cell, percent, rates};
use crate::{Chart, Metrics, Record, Report, Trouble};

/// Above so many questions that differ, the exact test gives way to its approximation.
const MOST_EXACT: usize = 25;

/// How two runs compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What was measured first.
    pub a: String,
    /// What was measured then.
    pub b: String,
    /// The dataset.
    pub dataset: String,
    /// Questions that both were asked; only these count.
    pub cases: usize,
    /// Questions that only one was asked.
    pub left_out: usize,
    /// The first run on these questions.
    pub metrics_a: Metrics,
    /// The second.
    pub metrics_b: Metrics,
    /// Whether there were rows.
    pub answered: Paired,
    /// Whether they were the right ones, of the questions where that can be said of both.
    pub right: Paired,
}

/// The same questions in two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Good in both.
    pub both: usize,
    /// Good in neither.
    pub neither: usize,
    /// Not good in the first, good in the second.
    pub fixed: Vec<String>,
    /// Good in the first, not good in the second.
    pub broken: Vec<String>,
    /// Whether that may be chance.
    pub test: McNemar,
}

/// McNemar's test of two counts of questions that went the one way and the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct McNemar {
    /// How it was computed.
    pub method: Method,
    /// Chi-square, where that was used.
    pub statistic: Option<f64>,
    /// How likely so large a difference is where there is none.
    pub p: f64,
}

/// How a test was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// With the binomial distribution, on both sides.
    Exact,
    /// With chi-square and the correction for continuity.
    ChiSquare,
}

/// McNemar's test: `fixed` questions went from bad to good, `broken` from good to bad.
pub fn mcnemar(fixed: usize, broken: usize) -> McNemar {
    let (n, fewer) = (fixed + broken, fixed.min(broken));
    if n <= MOST_EXACT {
        // The chance of so few heads or fewer in n throws, and of so few tails.
        let (mut ways, mut sum) = (1.0_f64, 0.0);
        for heads in 0..=fewer {
            sum += ways;
            ways = ways * (n - heads) as f64 / (heads + 1) as f64;
        }
        let p = (2.0 * sum / 2.0_f64.powi(n as i32)).min(1.0);
        return McNemar { method: Method::Exact, statistic: None, p };
    }
    let apart = (fixed.abs_diff(broken) as f64 - 1.0).max(0.0);
    let statistic = apart * apart / n as f64;
    McNemar { method: Method::ChiSquare, statistic: Some(statistic), p: erfc((statistic / 2.0).sqrt()) }
}

/// The complementary error function of a number that is not negative: the chance beyond chi-square is `erfc(√(x/2))`.
fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        // Maclaurin's series of erf; its terms shrink fast here.
        let (mut term, mut sum) = (x, x);
        for k in 1..100 {
            term *= -x * x / f64::from(k);
            sum += term / f64::from(2 * k + 1);
        }
        1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        // The continued fraction, from its far end.
        let fraction = (1..=100).rev().fold(x, |below, k| x + f64::from(k) / 2.0 / below);
        (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / fraction
    }
}

/// Holds two runs of the same questions against each other. Where a question was asked several times, most of the runs decide.
pub fn compare(a: &Report, b: &Report) -> Result<Comparison> {
    if a.fingerprint != b.fingerprint {
        return Err(Trouble::error(
            format!("`{}` and `{}` are not of the same questions", a.title(), b.title()),
            "run both on the same dataset, with the same gold queries",
        ));
    }
    let verdicts = |report: &Report| report.verdicts();
    let (all_a, all_b) = (verdicts(a), verdicts(b));
    let of_b: HashMap<&str, &Verdict> = all_b.iter().map(|verdict| (verdict.id.as_str(), verdict)).collect();
    let pairs: Vec<(&Verdict, &Verdict)> =
        all_a.iter().filter_map(|verdict| Some((verdict, *of_b.get(verdict.id.as_str())?))).collect();
    if pairs.is_empty() {
        let what = format!("`{}` and `{}` have no question in common", a.title(), b.title());
        return Err(Trouble::error(what, "run both with the same --limit"));
    }
    let common: std::collections::HashSet<&str> = pairs.iter().map(|(verdict, _)| verdict.id.as_str()).collect();
    let metrics = |records: &[Record]| Metrics::of(records.iter().filter(|r| common.contains(r.id.as_str())));
    Ok(Comparison {
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

fn paired(pairs: &[(&Verdict, &Verdict)], good: impl Fn(&Verdict) -> Option<bool>) -> Paired {
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
    Paired { both, neither, fixed, broken, test }
}

impl Comparison {
    /// Metric, first, second, change.
    fn rows(&self) -> Vec<[String; 4]> {
        let (a, b) = (&self.metrics_a, &self.metrics_b);
        let share = |name: &str, a: Option<f64>, b: Option<f64>| {
            let shown = |value: Option<f64>| value.map_or("–".to_string(), percent);
            let change = a.zip(b).map_or(String::new(), |(a, b)| format!("{:+.1} points", (b - a) * 100.0));
            [name.to_string(), shown(a), shown(b), change]
        };
        // Relative to the first: what there was none of has no percentage.
        let change = |a: f64, b: f64| if a == 0.0 { String::new() } else { format!("{:+.1}%", (b - a) / a * 100.0) };
        let mean = |name: &str, unit: &str, a: f64, b: f64| {
            [name.to_string(), format!("{a:.2}{unit}"), format!("{b:.2}{unit}"), change(a, b)]
        };
        let each = |part: u64, m: &Metrics| if m.total == 0 { 0.0 } else { part as f64 / m.total as f64 };
        let tokens = |m: &Metrics| each(m.input_tokens + m.output_tokens, m);
        let failed = |m: &Metrics| format!("{}/{}", m.final_failures, m.total);
        let mut rows = vec![share("Success rate", Some(a.overall_success_rate), Some(b.overall_success_rate))];
        rows.push(mean("Average time", " s", a.seconds_each(), b.seconds_each()));
        rows.push([
            "Failed questions".to_string(),
            failed(a),
            failed(b),
            change(each(a.final_failures as u64, a), each(b.final_failures as u64, b)),
        ]);
        let shares = rates(a).into_iter().zip(rates(b)).filter(|((name, _), _)| *name != "Answered in all");
        rows.extend(shares.map(|((name, a), (_, b))| share(name, a, b)));
        rows.push(mean("Drafts for a question", "", a.avg_attempts, b.avg_attempts));
        rows.push(mean("Model calls for a question", "", each(a.llm_calls, a), each(b.llm_calls, b)));
        rows.push(mean("Tokens for a question", "", tokens(a), tokens(b)));
        rows
    }

    /// The table for a terminal, with what was fixed and broken below.
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

    /// The same as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n| metric | {} | {} | change |\n|---|---:|---:|---:|\n",
            cell(&self.title()),
            cell(&self.a),
            cell(&self.b)
        );
        for row in self.rows() {
            text += &format!("| {} |\n", row.join(" | "));
        }
        for sentence in self.sentences() {
            text += &format!("\n{}\n", cell(&sentence));
        }
        text
    }

    /// The rates of both as bars.
    pub fn chart(&self) -> Chart {
        let both = rates(&self.metrics_a).into_iter().zip(rates(&self.metrics_b));
        let groups = both.map(|((name, a), (_, b))| (name.to_string(), vec![a, b])).collect();
        Chart { title: self.title(), series: vec![self.a.clone(), self.b.clone()], groups }
    }

    fn title(&self) -> String {
        format!("{} against {} ({}, {} questions)", self.a, self.b, self.dataset, self.cases)
    }

    fn sentences(&self) -> Vec<String> {
        let sentence = |what: &str, paired: &Paired| {
            let how = match paired.test.method {
                Method::Exact => "exact".to_string(),
                Method::ChiSquare => format!("chi-square {:.3}", paired.test.statistic.unwrap_or_default()),
            };
            let (fixed, broken) = (paired.fixed.len(), paired.broken.len());
            format!("{what}: {fixed} fixed, {broken} broken, McNemar p = {:.4} ({how}).", paired.test.p)
        };
        let mut all = vec![sentence("Answered", &self.answered), sentence("Right", &self.right)];
        if !self.right.broken.is_empty() {
            all.push(format!("Right before and not any more: {}.", self.right.broken.join(", ")));
        }
        if self.left_out > 0 {
            all.push(format!("{} questions were asked in one run only and do not count.", self.left_out));
        }
        all
    }
}
