//! Tool results: compact text for the model and structured data for programs, both bounded in size.

use querymend::correction::{CorrectionResponse, LocatedFinding};
use querymend::sql_api::{CheckReport, EmptyResultReport, MatchingValue, QueryError, QueryResult};
use querymend::{Answer, AnswerStatus, Problem};
use querymend_sql::{Cell, Finding, Rows, Severity};
use serde_json::{Map, Value, json};

use crate::encode::csv;
use crate::wire_name::wire_name;

/// Maximum length of a result's text, in bytes.
pub const MAX_TEXT_BYTES: usize = 20_000;
/// Bytes reserved for the truncation note.
const TRUNCATION_NOTE_BYTES: usize = 200;
/// Bytes reserved for the suffix of a truncated text.
const TRUNCATION_SUFFIX_BYTES: usize = 40;
/// Maximum length of a cell, in bytes.
const MAX_CELL_BYTES: usize = 2_000;
/// Maximum length of a finding's message, in bytes.
const MAX_MESSAGE_BYTES: usize = 600;
/// Maximum number of findings in a result.
const MAX_FINDINGS: usize = 20;

/// Result of a tool call.
#[derive(Debug)]
pub struct ToolOutput {
    /// Text for the model.
    pub text: String,
    /// Structured data for programs.
    pub data: Value,
    /// `true` if the tool failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// Creates a successful result, truncating its text if necessary.
    pub fn new(text: String, data: Value) -> Self {
        Self { text: truncate_text(text, MAX_TEXT_BYTES), data, is_error: false }
    }

    fn with_rows(mut text: String, mut data: Map<String, Value>, rows: Rows) -> Self {
        let fitted = TruncatedRows::new(rows, MAX_TEXT_BYTES.saturating_sub(text.len() + TRUNCATION_NOTE_BYTES));
        text.push_str(&csv::encode(&fitted.rows).replace("\r\n", "\n"));
        text.push_str(&fitted.summary());
        data.insert("row_count".into(), fitted.total.into());
        if fitted.has_more {
            // Query limits cut off the rest, so the total is unknown.
            data.insert("row_count_is_minimum".into(), true.into());
        }
        data.insert("rows".into(), json!(fitted.rows));
        Self::new(text, Value::Object(data))
    }
}

impl From<Problem> for ToolOutput {
    fn from(problem: Problem) -> Self {
        Self::from(QueryError::from(problem))
    }
}

impl From<QueryError> for ToolOutput {
    fn from(error: QueryError) -> Self {
        let mut text = format!("{}: {}\n", wire_name(&error.problem.code), error.problem.message);
        if let Some(hint) = &error.problem.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        if let Some(wait) = error.problem.retry_after_s {
            text.push_str(&format!("try again in {wait} s\n"));
        }
        // Skip the finding that the message already repeats.
        let rest = error.findings.iter().filter(|located| located.finding.message != error.problem.message);
        text.push_str(&rest.take(MAX_FINDINGS).map(finding_line).collect::<String>());
        let mut data = into_object(json!(error.problem));
        insert_findings(&mut data, "findings", error.findings.iter().map(located_finding_json));
        Self { is_error: true, ..Self::new(text, Value::Object(data)) }
    }
}

/// Renders the answer to a question.
pub fn answer_output(answer: Answer, session_id: Option<&str>) -> ToolOutput {
    let mut data = into_object(json!({
        "status": answer.status, "trace_id": answer.trace_id, "sql": answer.sql, "confidence": answer.confidence,
        "corrections": answer.corrections, "metadata": answer.metadata, "cost": answer.cost,
    }));
    if let Some(id) = session_id {
        data.insert("session_id".into(), id.into());
    }
    if let (
        AnswerStatus::GaveUp | AnswerStatus::Failed | AnswerStatus::Abstained | AnswerStatus::Refused,
        Some(problem),
    ) = (answer.status, answer.problem)
    {
        let ToolOutput { mut text, data: of_problem, .. } = ToolOutput::from(problem);
        if let Some(sql) = &answer.sql {
            text.push_str(&format!("best attempt, which failed: {sql}\n"));
        }
        data.extend(into_object(of_problem));
        return ToolOutput { is_error: true, ..ToolOutput::new(text, Value::Object(data)) };
    }
    let mut text =
        format!("{}, confidence {}\n", wire_name(&answer.status).replace('_', " "), wire_name(&answer.confidence));
    let mut also = |name: &str, lines: Vec<String>| {
        let lines: Vec<String> =
            lines.into_iter().take(MAX_FINDINGS).map(|line| truncate_text(line, MAX_CELL_BYTES)).collect();
        for line in &lines {
            text.push_str(&format!("{name}: {line}\n"));
        }
        if !lines.is_empty() {
            data.insert(name.into(), lines.into());
        }
    };
    also("text", answer.text.into_iter().collect());
    let options = answer.clarification.iter().flat_map(|clarification| &clarification.options);
    also("choice", options.map(|choice| format!("{}: {}", choice.label, choice.sql)).collect());
    also("reason", answer.reasons);
    also("mended", answer.fixes.into_iter().map(|fix| fix.why).collect());
    also("warning", answer.warnings.iter().map(|finding| truncate_message(&finding.message)).collect());
    if let Some(id) = session_id {
        text.push_str(&format!("session_id: {id}\n"));
    }
    if let Some(sql) = &answer.sql {
        text.push_str(&format!("sql: {sql}\n"));
    }
    match answer.rows {
        Some(rows) => ToolOutput::with_rows(text, data, rows),
        None => ToolOutput::new(text, Value::Object(data)),
    }
}

/// Renders the result of a query.
pub fn run_output(ran: QueryResult) -> ToolOutput {
    let text: String = ran.warnings.iter().take(MAX_FINDINGS).map(finding_line).collect();
    let mut data = into_object(json!({ "sql": ran.sql, "ms": ran.ms }));
    insert_findings(&mut data, "warnings", ran.warnings.iter().map(located_finding_json));
    ToolOutput::with_rows(text, data, ran.rows)
}

/// Renders the findings of a check.
pub fn check_output(checked: &CheckReport) -> ToolOutput {
    let mut text = match (checked.clean, checked.findings.is_empty()) {
        (true, true) => "no findings\n",
        (true, false) => "the query can run, with warnings:\n",
        (false, _) => "the query cannot run:\n",
    }
    .to_owned();
    text.push_str(&checked.findings.iter().take(MAX_FINDINGS).map(finding_line).collect::<String>());
    let mut data = into_object(json!({
        "clean": checked.clean, "verdict": checked.verdict, "dialect": checked.dialect,
        "tables": checked.extracted.tables,
    }));
    insert_findings(&mut data, "findings", checked.findings.iter().map(located_finding_json));
    ToolOutput::new(text, Value::Object(data))
}

/// Renders the result of a repair.
pub fn correction_output(corrected: &CorrectionResponse) -> ToolOutput {
    let mut text = format!("{}: {}\n", wire_name(&corrected.status).replace('_', " "), corrected.correction_applied);
    if corrected.success {
        text.push_str(&format!("confidence {}\nsql: {}\n", wire_name(&corrected.confidence), corrected.corrected_sql));
    } else if let Some(best) = &corrected.best_attempt {
        text.push_str(&format!("best attempt, which still has errors: {best}\n"));
    }
    text.push_str(&corrected.findings.iter().take(MAX_FINDINGS).map(finding_line).collect::<String>());
    let mut data = into_object(json!({
        "corrected_sql": corrected.corrected_sql, "correction_applied": corrected.correction_applied,
        "success": corrected.success, "trace_id": corrected.trace_id, "status": corrected.status,
        "confidence": corrected.confidence, "fixes": corrected.fixes,
    }));
    let more = [
        ("best_attempt", &corrected.best_attempt),
        ("session_id", &corrected.session_id),
        ("user_id", &corrected.user_id),
    ];
    for (name, value) in more {
        value.as_ref().and_then(|value| data.insert(name.into(), value.clone().into()));
    }
    insert_findings(&mut data, "findings", corrected.findings.iter().map(located_finding_json));
    ToolOutput::new(text, Value::Object(data))
}

/// Renders the values that match a search text.
pub fn values_output(word: &str, found: &[MatchingValue]) -> ToolOutput {
    let mut text: String = found
        .iter()
        .map(|one| {
            let same = if one.same { " (exact match)" } else { "" };
            format!("{}.{} = '{}'{same}\n", one.table, one.column, truncate_message(&one.value))
        })
        .collect();
    if found.is_empty() {
        text = format!(
            "no value matches `{}`; sensitive and very long columns are not searched\n",
            truncate_message(word)
        );
    }
    ToolOutput::new(text, json!({ "values": found }))
}

/// Renders the reasons for an empty result.
pub fn empty_result_output(report: &EmptyResultReport) -> ToolOutput {
    let mut text = String::new();
    if report.finds_rows {
        text.push_str("the query returns rows\n");
    }
    for condition in &report.conditions {
        text.push_str(&format!("without this predicate it would return rows: {condition}\n"));
    }
    for absent in &report.absent {
        let filter = &absent.filter;
        let near =
            if absent.near.is_empty() { String::new() } else { format!("; similar: {}", absent.near.join(", ")) };
        text.push_str(&format!(
            "{}.{} has no value '{}'{near}\n",
            filter.table,
            filter.column,
            truncate_message(&filter.value)
        ));
    }
    if text.is_empty() {
        text.push_str("the query returns no rows, and no single predicate is the reason\n");
    }
    ToolOutput::new(text, json!(report))
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Inserts the first findings, and their total count if there are more.
fn insert_findings(data: &mut Map<String, Value>, name: &str, all: impl ExactSizeIterator<Item = Value>) {
    let count = all.len();
    data.insert(name.into(), all.take(MAX_FINDINGS).collect());
    if count > MAX_FINDINGS {
        data.insert(format!("{name}_count"), count.into());
    }
}

/// Returns a finding as JSON, without the fields that only editors need.
fn located_finding_json(located: &LocatedFinding) -> Value {
    let mut brief = finding_json(&located.finding);
    brief.insert("line".into(), located.line.into());
    brief.insert("column".into(), located.column.into());
    Value::Object(brief)
}

fn finding_json(finding: &Finding) -> Map<String, Value> {
    let mut brief = into_object(json!({
        "code": finding.code, "severity": finding.severity, "message": truncate_message(&finding.message),
    }));
    if !finding.advice.is_empty() {
        brief.insert("advice".into(), truncate_message(&finding.advice).into());
    }
    brief
}

fn finding_line(located: &LocatedFinding) -> String {
    let LocatedFinding { finding, line, column, .. } = located;
    let severity = finding.severity.as_str();
    let mut text = format!("{severity}[{}] {line}:{column} {}\n", finding.code, truncate_message(&finding.message));
    if finding.severity == Severity::Error && !finding.advice.is_empty() {
        text.push_str(&format!("  {}\n", truncate_message(&finding.advice)));
    }
    text
}

fn truncate_message(text: &str) -> String {
    truncate_text(text.to_owned(), MAX_MESSAGE_BYTES)
}

/// Truncates a text to a number of bytes and appends a note about its full length.
fn truncate_text(mut text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let whole = text.len();
    text.truncate(text.floor_char_boundary(max_bytes.saturating_sub(TRUNCATION_SUFFIX_BYTES)));
    text.push_str(&format!("… (truncated, {whole} bytes)"));
    text
}

/// Rows truncated to the available space.
struct TruncatedRows {
    rows: Rows,
    /// Number of rows before truncation.
    total: usize,
    /// `true` if the database had more rows than the query limit.
    has_more: bool,
    truncated_cells: usize,
}

impl TruncatedRows {
    fn new(rows: Rows, room: usize) -> Self {
        let Rows { columns, rows, truncated: more } = rows;
        let found = rows.len();
        let mut left = room.saturating_sub(columns.iter().map(|name| name.len() + 3).sum());
        let mut cut_cells = 0;
        let mut kept = Vec::new();
        for mut row in rows {
            let mut cut_here = 0;
            for cell in &mut row {
                if let Cell::Text(text) | Cell::Binary(text) = cell
                    && text.len() > MAX_CELL_BYTES
                {
                    *text = truncate_text(std::mem::take(text), MAX_CELL_BYTES);
                    cut_here += 1;
                }
            }
            // Measured as JSON, which is slightly larger than the text.
            let bytes = serde_json::to_string(&row).map_or(usize::MAX, |text| text.len());
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
            cut_cells += cut_here;
            kept.push(row);
        }
        let truncated = more || kept.len() < found || cut_cells > 0;
        Self { rows: Rows { columns, rows: kept, truncated }, total: found, has_more: more, truncated_cells: cut_cells }
    }

    fn summary(&self) -> String {
        let (shown, found) = (self.rows.rows.len(), self.total);
        let least = if self.has_more { "at least " } else { "" };
        let rows = if found == 1 && !self.has_more { "row" } else { "rows" };
        let mut text = if shown < found || self.has_more {
            format!("truncated: {shown} of {least}{found} rows; aggregate, or ask for fewer rows or columns\n")
        } else {
            format!("{found} {rows}\n")
        };
        if self.truncated_cells > 0 {
            text.push_str(&format!("{} long values are truncated\n", self.truncated_cells));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize, cell: &str) -> Rows {
        let rows = (0..count).map(|_| vec![Cell::Text(cell.to_owned()), Cell::Null]).collect();
        Rows { columns: vec!["a".into(), "b".into()], rows, truncated: false }
    }

    #[test]
    fn truncates_long_results_and_reports_it() {
        for (count, cell, all) in
            [(3, "x", true), (5_000, "some words", false), (30, &"é".repeat(5_000), false), (0, "", true)]
        {
            let output = run_output(QueryResult {
                sql: "SELECT".into(),
                rows: rows(count, cell),
                warnings: Vec::new(),
                ms: 1.0,
            });
            assert!(output.text.len() <= MAX_TEXT_BYTES, "{}", output.text.len());
            assert!(output.data.to_string().len() <= MAX_TEXT_BYTES + 1_000);
            assert_eq!(output.data["row_count"], count);
            assert_eq!(output.data["rows"]["truncated"], !all);
            assert_eq!(output.text.contains("truncated: "), !all, "{}", output.text);
        }
    }

    #[test]
    fn reports_a_row_that_does_not_fit() {
        let row = vec![Cell::Text("x".repeat(1_900)); 50];
        let rows = Rows { columns: vec!["c".into(); 50], rows: vec![row], truncated: true };
        let output = run_output(QueryResult { sql: "SELECT".into(), rows, warnings: Vec::new(), ms: 1.0 });
        assert!(output.text.contains("truncated: 0 of at least 1 rows"), "{}", output.text);
        assert_eq!(output.data["row_count_is_minimum"], true);
    }
}
