//! What tools answer: a text that a model reads at little cost, and the same as data for programs. Both are bounded.

use querymend::correct::{Corrected, Placed};
use querymend::direct::{Checked, Emptiness, Grounded, NotRun, Ran};
use querymend::{Answer, Problem, Status};
use querymend_sql::{Cell, Finding, Rows, Severity};
use serde_json::{Map, Value, json};

use crate::http::csv;
use crate::service::word;

/// The longest text of an answer, in bytes.
pub const MOST_TEXT: usize = 20_000;
/// What of it is kept free for the line that says that something was cut.
const SLACK: usize = 200;
/// The longest cell, in bytes.
const LONGEST_CELL: usize = 2_000;
/// The longest message of a finding, in bytes.
const LONGEST_MESSAGE: usize = 600;
/// Findings that are told.
const MOST_FINDINGS: usize = 20;

/// An answer.
#[derive(Debug)]
pub struct Told {
    /// For a model.
    pub text: String,
    /// For a program.
    pub data: Value,
    /// What was asked for could not be done.
    pub failed: bool,
}

impl Told {
    /// An answer; its text is cut where it is too long.
    pub fn new(text: String, data: Value) -> Self {
        Self { text: cut(text, MOST_TEXT), data, failed: false }
    }

    fn with_rows(mut text: String, mut data: Map<String, Value>, rows: Rows) -> Self {
        let fitted = Fitted::new(rows, MOST_TEXT.saturating_sub(text.len() + SLACK));
        text.push_str(&csv(&fitted.rows).replace("\r\n", "\n"));
        text.push_str(&fitted.in_words());
        data.insert("row_count".into(), fitted.found.into());
        if fitted.more {
            // The limits on queries kept the rest away, so that nobody knows how many there are.
            data.insert("row_count_is_minimum".into(), true.into());
        }
        data.insert("rows".into(), json!(fitted.rows));
        Self::new(text, Value::Object(data))
    }
}

impl From<Problem> for Told {
    fn from(problem: Problem) -> Self {
        Self::from(NotRun::from(problem))
    }
}

impl From<NotRun> for Told {
    fn from(not: NotRun) -> Self {
        let mut text = format!("{}: {}\n", word(&not.problem.code), not.problem.message);
        if let Some(hint) = &not.problem.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        if let Some(wait) = not.problem.retry_after_s {
            text.push_str(&format!("try again in {wait} s\n"));
        }
        // What the one finding says is the message already.
        let rest = not.findings.iter().filter(|placed| placed.finding.message != not.problem.message);
        text.push_str(&rest.take(MOST_FINDINGS).map(placed_line).collect::<String>());
        let mut data = object(json!(not.problem));
        findings(&mut data, "findings", not.findings.iter().map(brief_placed));
        Self { failed: true, ..Self::new(text, Value::Object(data)) }
    }
}

/// What became of a question.
pub fn answer(answer: Answer, session_id: Option<&str>) -> Told {
    let mut data = object(json!({
        "status": answer.status, "trace_id": answer.trace_id, "sql": answer.sql, "confidence": answer.confidence,
        "corrections": answer.corrections, "metadata": answer.metadata, "cost": answer.cost,
    }));
    if let Some(id) = session_id {
        data.insert("session_id".into(), id.into());
    }
    if let (Status::GaveUp | Status::Failed | Status::Abstained | Status::Refused, Some(problem)) =
        (answer.status, answer.problem)
    {
        let Told { mut text, data: of_problem, .. } = Told::from(problem);
        if let Some(sql) = &answer.sql {
            text.push_str(&format!("best attempt, which did not work: {sql}\n"));
        }
        data.extend(object(of_problem));
        return Told { failed: true, ..Told::new(text, Value::Object(data)) };
    }
    let mut text = format!("{}, confidence {}\n", word(&answer.status).replace('_', " "), word(&answer.confidence));
    let mut also = |name: &str, lines: Vec<String>| {
        let lines: Vec<String> = lines.into_iter().take(MOST_FINDINGS).map(|line| cut(line, LONGEST_CELL)).collect();
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
    also("warning", answer.warnings.iter().map(|finding| shortened(&finding.message)).collect());
    if let Some(id) = session_id {
        text.push_str(&format!("session_id: {id}\n"));
    }
    if let Some(sql) = &answer.sql {
        text.push_str(&format!("sql: {sql}\n"));
    }
    match answer.rows {
        Some(rows) => Told::with_rows(text, data, rows),
        None => Told::new(text, Value::Object(data)),
    }
}

/// What a query gave.
pub fn ran(ran: Ran) -> Told {
    let text: String = ran.warnings.iter().take(MOST_FINDINGS).map(placed_line).collect();
    let mut data = object(json!({ "sql": ran.sql, "ms": ran.ms }));
    findings(&mut data, "warnings", ran.warnings.iter().map(brief_placed));
    Told::with_rows(text, data, ran.rows)
}

/// What is wrong with a query.
pub fn checked(checked: &Checked) -> Told {
    let mut text = match (checked.clean, checked.findings.is_empty()) {
        (true, true) => "nothing is wrong with the query\n",
        (true, false) => "the query can run; what is odd about it:\n",
        (false, _) => "the query cannot be run:\n",
    }
    .to_owned();
    text.push_str(&checked.findings.iter().take(MOST_FINDINGS).map(placed_line).collect::<String>());
    let mut data = object(json!({
        "clean": checked.clean, "verdict": checked.verdict, "dialect": checked.dialect,
        "tables": checked.extracted.tables,
    }));
    findings(&mut data, "findings", checked.findings.iter().map(brief_placed));
    Told::new(text, Value::Object(data))
}

/// What became of a broken query.
pub fn corrected(corrected: &Corrected) -> Told {
    let mut text = format!("{}: {}\n", word(&corrected.status).replace('_', " "), corrected.correction_applied);
    if corrected.success {
        text.push_str(&format!("confidence {}\nsql: {}\n", word(&corrected.confidence), corrected.corrected_sql));
    } else if let Some(best) = &corrected.best_attempt {
        text.push_str(&format!("best attempt, which is not right yet: {best}\n"));
    }
    text.push_str(&corrected.findings.iter().take(MOST_FINDINGS).map(placed_line).collect::<String>());
    let mut data = object(json!({
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
    findings(&mut data, "findings", corrected.findings.iter().map(brief_placed));
    Told::new(text, Value::Object(data))
}

/// Values that are like a word.
pub fn grounded(word: &str, found: &[Grounded]) -> Told {
    let mut text: String = found
        .iter()
        .map(|one| {
            let same = if one.same { " (the very word)" } else { "" };
            format!("{}.{} = '{}'{same}\n", one.table, one.column, shortened(&one.value))
        })
        .collect();
    if found.is_empty() {
        text = format!(
            "no value is like `{}`; columns that are private or very long are not looked at\n",
            shortened(word)
        );
    }
    Told::new(text, json!({ "values": found }))
}

/// Why a query finds nothing.
pub fn emptiness(emptiness: &Emptiness) -> Told {
    let mut text = String::new();
    if emptiness.finds_rows {
        text.push_str("the query does find rows\n");
    }
    for condition in &emptiness.conditions {
        text.push_str(&format!("without this condition it would find rows: {condition}\n"));
    }
    for absent in &emptiness.absent {
        let sought = &absent.sought;
        let near =
            if absent.near.is_empty() { String::new() } else { format!("; like it: {}", absent.near.join(", ")) };
        text.push_str(&format!("{}.{} never is '{}'{near}\n", sought.table, sought.column, shortened(&sought.value)));
    }
    if text.is_empty() {
        text.push_str("the query finds nothing, and no single condition is the reason\n");
    }
    Told::new(text, json!(emptiness))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The first findings; where there are more, how many there are.
fn findings(data: &mut Map<String, Value>, name: &str, all: impl ExactSizeIterator<Item = Value>) {
    let count = all.len();
    data.insert(name.into(), all.take(MOST_FINDINGS).collect());
    if count > MOST_FINDINGS {
        data.insert(format!("{name}_count"), count.into());
    }
}

/// A finding without what only editors need.
fn brief_placed(placed: &Placed) -> Value {
    let mut brief = brief(&placed.finding);
    brief.insert("line".into(), placed.line.into());
    brief.insert("column".into(), placed.column.into());
    Value::Object(brief)
}

fn brief(finding: &Finding) -> Map<String, Value> {
    let mut brief = object(json!({
        "code": finding.code, "severity": finding.severity, "message": shortened(&finding.message),
    }));
    if !finding.advice.is_empty() {
        brief.insert("advice".into(), shortened(&finding.advice).into());
    }
    brief
}

fn placed_line(placed: &Placed) -> String {
    let Placed { finding, line, column, .. } = placed;
    let severity = finding.severity.word();
    let mut text = format!("{severity}[{}] {line}:{column} {}\n", finding.code, shortened(&finding.message));
    if finding.severity == Severity::Error && !finding.advice.is_empty() {
        text.push_str(&format!("  {}\n", shortened(&finding.advice)));
    }
    text
}

fn shortened(text: &str) -> String {
    cut(text.to_owned(), LONGEST_MESSAGE)
}

/// A text that is no longer than it may be. Where it was, that is said.
fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let whole = text.len();
    let mut end = most.saturating_sub(40);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(&format!("… (cut, {whole} bytes)"));
    text
}

/// Rows as far as there is room for them.
struct Fitted {
    rows: Rows,
    /// How many there were.
    found: usize,
    /// The database had even more.
    more: bool,
    cut_cells: usize,
}

impl Fitted {
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
                    && text.len() > LONGEST_CELL
                {
                    *text = cut(std::mem::take(text), LONGEST_CELL);
                    cut_here += 1;
                }
            }
            // JSON takes a little more than the text does.
            let bytes = serde_json::to_string(&row).map_or(usize::MAX, |text| text.len());
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
            cut_cells += cut_here;
            kept.push(row);
        }
        let truncated = more || kept.len() < found || cut_cells > 0;
        Self { rows: Rows { columns, rows: kept, truncated }, found, more, cut_cells }
    }

    fn in_words(&self) -> String {
        let (shown, found) = (self.rows.rows.len(), self.found);
        let least = if self.more { "at least " } else { "" };
        let rows = if found == 1 && !self.more { "row" } else { "rows" };
        let mut text = if shown < found || self.more {
            format!("truncated: {shown} of {least}{found} rows; aggregate, or ask for fewer rows or columns\n")
        } else {
            format!("{found} {rows}\n")
        };
        if self.cut_cells > 0 {
            text.push_str(&format!("{} long values are cut\n", self.cut_cells));
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
    fn l10_answers_are_bounded_and_say_what_is_missing() {
        for (count, cell, all) in
            [(3, "x", true), (5_000, "some words", false), (30, &"é".repeat(5_000), false), (0, "", true)]
        {
            let told = ran(Ran { sql: "SELECT".into(), rows: rows(count, cell), warnings: Vec::new(), ms: 1.0 });
            assert!(told.text.len() <= MOST_TEXT, "{}", told.text.len());
            assert!(told.data.to_string().len() <= MOST_TEXT + 1_000);
            assert_eq!(told.data["row_count"], count);
            assert_eq!(told.data["rows"]["truncated"], !all);
            assert_eq!(told.text.contains("truncated: "), !all, "{}", told.text);
        }
    }

    #[test]
    fn l10_one_row_that_does_not_fit_is_told() {
        let row = vec![Cell::Text("x".repeat(1_900)); 50];
        let rows = Rows { columns: vec!["c".into(); 50], rows: vec![row], truncated: true };
        let told = ran(Ran { sql: "SELECT".into(), rows, warnings: Vec::new(), ms: 1.0 });
        assert!(told.text.contains("truncated: 0 of at least 1 rows"), "{}", told.text);
        assert_eq!(told.data["row_count_is_minimum"], true);
    }
}
