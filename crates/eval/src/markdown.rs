//! Markdown rendering of a report.

use std::collections::BTreeMap;

use crate::text::{markdown_cell, percent};
use crate::{CaseOutcome, CaseRecord, EvalMetrics, EvalReport, ReportSummary, SkippedCase};

/// Maximum number of cases listed individually; the CSV contains all of them.
const MAX_LISTED_CASES: usize = 50;

/// Markdown table under construction.
struct MarkdownTable {
    lines: Vec<String>,
}

impl MarkdownTable {
    /// Starts a table. The first column is left-aligned, the others right-aligned unless their name
    /// starts with `<`.
    fn new(title: &str, columns: &[&str]) -> MarkdownTable {
        let names: Vec<&str> = columns.iter().map(|name| name.trim_start_matches('<')).collect();
        let sides = columns.iter().enumerate();
        let sides: Vec<&str> =
            sides.map(|(i, name)| if i == 0 || name.starts_with('<') { "---" } else { "---:" }).collect();
        let mut lines = if title.is_empty() { Vec::new() } else { vec![format!("## {title}"), String::new()] };
        lines.push(format!("| {} |", names.join(" | ")));
        lines.push(format!("|{}|", sides.join("|")));
        MarkdownTable { lines }
    }

    fn row(&mut self, cells: &[&str]) {
        let cells: Vec<String> = cells.iter().map(|text| markdown_cell(text)).collect();
        self.lines.push(format!("| {} |", cells.join(" | ")));
    }

    fn text(self) -> String {
        self.lines.join("\n") + "\n"
    }
}

impl EvalReport {
    /// Renders the whole report as Markdown.
    pub fn markdown(&self) -> String {
        let all = self.summary();
        let mut parts = vec![
            format!("# {}\n", markdown_cell(&self.title())),
            self.introduction(),
            metrics_table(&all.metrics),
            targets_table(&all),
        ];
        if !all.metrics.by_error_type.is_empty() {
            parts.push(error_types_table(&all.metrics));
        }
        if !all.by_tag.is_empty() {
            parts.push(tags_table(&all));
        }
        if !all.behaviour.is_empty() {
            let counts: Vec<String> = all.behaviour.iter().map(|(name, count)| format!("{name} {count}")).collect();
            parts.push(format!("Against what the set expects: {}.\n", counts.join(", ")));
        }
        if !all.spread.is_empty() {
            parts.push(spread_table(&all));
        }
        let open: Vec<&CaseRecord> = self.records.iter().filter(|record| shortcoming(record).is_some()).collect();
        if !open.is_empty() {
            parts.push(shortcomings_table(&open));
        }
        if !self.skipped.is_empty() {
            parts.push(skipped_table(&self.skipped));
        }
        parts.join("\n")
    }

    fn introduction(&self) -> String {
        let runs = if self.runs == 1 { "one run".to_string() } else { format!("{} runs", self.runs) };
        let (answers, skipped) = (self.records.len(), self.skipped.len());
        let mut text = format!("{answers} answers in {runs}; {skipped} questions could not be asked.\n");
        if !self.is_complete() {
            text += &format!("\n**Not complete**: {answers} of {} were asked.\n", self.expected_records);
        }
        text
    }
}

fn metrics_table(m: &EvalMetrics) -> String {
    let of = |part: usize, whole: usize, rate: f64| format!("{part} of {whole} ({})", percent(rate));
    let effectiveness = m.correction_effectiveness.map_or("nothing to correct".into(), |rate| {
        format!("{} ({} of what failed at first)", m.corrected_success, percent(rate))
    });
    let mut table = MarkdownTable::new("", &["what", "figure"]);
    for (what, figure) in [
        ("answered by the first draft", of(m.first_attempt_success, m.total, m.first_attempt_rate)),
        ("answered after a correction", effectiveness),
        ("not answered", m.final_failures.to_string()),
        ("answered in all", percent(m.overall_success_rate)),
        ("drafts per question", format!("{:.2}", m.avg_attempts)),
        ("first draft right (the rows of a gold query)", of(m.right_first, m.judged, m.right_first_rate)),
        ("answer right", of(m.right, m.judged, m.right_rate)),
        ("made right / made wrong on the way", format!("{} / {}", m.made_right, m.made_wrong)),
        ("answered from plain rows", m.fallbacks.to_string()),
        ("failed for external reasons", m.troubles.to_string()),
        ("model calls", m.llm_calls.to_string()),
        ("tokens read / written", format!("{} / {}", m.input_tokens, m.output_tokens)),
        ("cost", m.usd.map_or("unknown".to_string(), |usd| format!("${usd:.4}"))),
        ("seconds per question", format!("{:.2}", m.mean_seconds())),
    ] {
        table.row(&[what, &figure]);
    }
    table.text()
}

fn targets_table(all: &ReportSummary) -> String {
    let mut table = MarkdownTable::new("Targets", &["rate", "more than", "is", "<"]);
    for target in &all.targets {
        let [above, is, verdict] = target.describe();
        table.row(&[target.name, &above, &is, &verdict]);
    }
    table.text()
}

fn error_types_table(m: &EvalMetrics) -> String {
    let mut table = MarkdownTable::new("What failed at first", &["family", "count", "corrected", "rate", "drafts"]);
    for (family, by) in &m.by_error_type {
        let figures = [by.count.to_string(), by.corrected.to_string(), percent(by.rate), by.attempts.to_string()];
        table.row(&[family, &figures[0], &figures[1], &figures[2], &figures[3]]);
    }
    table.text()
}

fn tags_table(all: &ReportSummary) -> String {
    let mut table = MarkdownTable::new("By group", &["group", "answers", "first draft", "answered", "right"]);
    for (tag, m) in &all.by_tag {
        let (first, answered) = (percent(m.first_attempt_rate), percent(m.overall_success_rate));
        table.row(&[tag, &m.total.to_string(), &first, &answered, &format!("{} of {}", m.right, m.judged)]);
    }
    table.text()
}

fn spread_table(all: &ReportSummary) -> String {
    let mut table = MarkdownTable::new("Between runs", &["figure", "mean", "deviation", "lowest", "highest"]);
    for (name, s) in &all.spread {
        let [mean, deviation, min, max] = [s.mean, s.deviation, s.min, s.max].map(|figure| format!("{figure:.3}"));
        table.row(&[name, &mean, &deviation, &min, &max]);
    }
    table.text()
}

/// Returns the label of a question that was not answered, not right or not judged; `None` if the
/// answer was right.
fn shortcoming(record: &CaseRecord) -> Option<&'static str> {
    if record.outcome == CaseOutcome::Failed {
        Some("not answered")
    } else if record.right == Some(false) {
        Some("not right")
    } else {
        record.right.is_none().then_some("not judged")
    }
}

fn shortcomings_table(open: &[&CaseRecord]) -> String {
    let mut table = MarkdownTable::new("Not answered, not right, not judged", &["question", "run", "<how", "<why"]);
    for record in open.iter().take(MAX_LISTED_CASES) {
        let last = record.drafts.last().and_then(|draft| draft.error.clone());
        let why = record.trouble.clone().or(record.unjudged.clone()).or(last).unwrap_or_default();
        table.row(&[&record.id, &record.run.to_string(), shortcoming(record).unwrap_or_default(), &why]);
    }
    let more = open.len().saturating_sub(MAX_LISTED_CASES);
    table.text() + &if more > 0 { format!("\n{more} more are in the CSV.\n") } else { String::new() }
}

/// Groups skipped questions by reason, since one missing database may affect hundreds.
fn skipped_table(skipped: &[SkippedCase]) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in skipped {
        by_reason.entry(&one.reason).or_default().push(&one.id);
    }
    let mut table = MarkdownTable::new("Could not be asked", &["why", "questions", "<which"]);
    for (reason, ids) in by_reason {
        let which = ids.iter().take(3).copied().collect::<Vec<_>>().join(", ");
        let more = if ids.len() > 3 { ", …" } else { "" };
        table.row(&[reason, &ids.len().to_string(), &format!("{which}{more}")]);
    }
    table.text()
}
