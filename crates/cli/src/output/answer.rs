//! Human-readable answer: rows on stdout; SQL, repairs and confidence on stderr.

use querymend::{Answer, AnswerStatus, StopReason};
use querymend_sql::diff::diff;
use querymend_sql::{Dialect, Rows};

use crate::clarify;
use crate::error::{CliError, ExitStatus};
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, pluralize, truncate_chars};
use crate::output::{Out, table};

/// Maximum length of the summary of changes, in characters.
const MAX_CHANGES_CHARS: usize = 200;

/// Writes an answer. Repaired failures are shown only by the trace and `--explain`.
pub fn write_answer(
    answer: &Answer,
    format: table::ResultFormat,
    dialect: &Dialect,
    out: &mut Out,
) -> Result<ExitStatus, CliError> {
    if answer.stop == StopReason::Cancelled {
        // A partial answer is useless.
        out.message("stopped");
        return Ok(ExitStatus::Interrupted);
    }
    if format == table::ResultFormat::Json {
        out.json(&to_pretty_json(answer)?)?;
        return Ok(exit_status(answer));
    }
    let mut cut = false;
    if let (AnswerStatus::Answered, table::ResultFormat::Table, Some(text)) = (answer.status, format, &answer.text) {
        // The summary comes first for people; programs that read rows get only rows.
        out.note(&sanitize_lines(text));
    }
    if let Some(rows) = &answer.rows {
        let (text, was_cut) = table::render_rows(rows, format)?;
        cut = was_cut;
        out.rows(&text, format)?;
        out.flush()?;
    }
    match answer.status {
        AnswerStatus::Answered => note_details(answer, dialect, cut, out),
        AnswerStatus::Chat => out.line(&sanitize_lines(answer.text.as_deref().unwrap_or("…")))?,
        AnswerStatus::Drafted => write_draft(answer, out)?,
        AnswerStatus::AskUser => write_clarification(answer, out),
        AnswerStatus::GaveUp | AnswerStatus::Failed | AnswerStatus::Abstained | AnswerStatus::Refused => {
            write_failure(answer, out)
        }
    }
    out.flush()?;
    Ok(exit_status(answer))
}

fn exit_status(answer: &Answer) -> ExitStatus {
    match answer.status {
        AnswerStatus::Answered | AnswerStatus::Drafted | AnswerStatus::Chat => ExitStatus::Success,
        AnswerStatus::GaveUp | AnswerStatus::AskUser | AnswerStatus::Abstained | AnswerStatus::Refused => {
            ExitStatus::Refused
        }
        AnswerStatus::Failed => ExitStatus::Failed,
    }
}

/// Notes the number of rows and any truncation. The hint for raising limits depends on the command.
pub fn note_row_count(rows: &Rows, cut: bool, raised: &str, out: &Out) {
    out.note(&pluralize(rows.rows.len(), "row"));
    if rows.truncated {
        out.message("warning: the answer is truncated: there are more rows than the limits allow");
        out.note(&format!("hint: {raised}"));
    }
    if cut {
        out.note("note: long values are truncated; --format json shows them in full");
    }
}

fn note_details(answer: &Answer, dialect: &Dialect, cut: bool, out: &Out) {
    let none = Rows::default();
    note_row_count(answer.rows.as_ref().unwrap_or(&none), cut, "`limits` in querymend.yaml raises them", out);
    if answer.remembered.is_some() {
        out.note("answered from memory, without a model; --fresh asks the model again");
    }
    let sql = answer.sql.as_deref().unwrap_or_default();
    out.note(&format!("SQL: {}", sanitize_lines(sql)));
    if let Some(changes) = changes_summary(answer, sql, dialect) {
        out.note(&format!("fixed: {changes}"));
    }
    let why = if answer.reasons.is_empty() { String::new() } else { format!(": {}", answer.reasons.join("; ")) };
    out.note(&format!("confidence: {}{}", wire_name(&answer.confidence), one_line(&why)));
    out.detail(&format!("trace: {}", answer.trace_id));
}

/// Writes a draft to stdout, and a note that it was not run to stderr.
fn write_draft(answer: &Answer, out: &mut Out) -> Result<(), CliError> {
    out.message("not run: there is no database; the query was checked against the tables of the schema file");
    out.line(&sanitize_lines(answer.sql.as_deref().unwrap_or_default()))?;
    for fix in &answer.fixes {
        out.note(&format!("fixed: {}", one_line(&fix.why)));
    }
    for warning in &answer.warnings {
        out.note(&format!("warning: {}", one_line(&warning.message)));
    }
    Ok(())
}

/// Returns the differences between the first draft and the executed query, in one line.
fn changes_summary(answer: &Answer, sql: &str, dialect: &Dialect) -> Option<String> {
    let first = answer.attempts.first().filter(|_| !answer.fallback)?;
    let changes: Vec<String> =
        diff(&first.sql, sql, dialect).iter().map(|change| one_line(&change.to_string())).collect();
    let mut line = changes.join(", ");
    truncate_chars(&mut line, MAX_CHANGES_CHARS);
    Some(line).filter(|line| !line.is_empty())
}

/// Writes a clarifying question, with a hint for answering it.
fn write_clarification(answer: &Answer, out: &Out) {
    if let Some(clarification) = &answer.clarification {
        clarify::write(clarification, out);
        out.note("hint: --assume uses the first; or ask again and name the one that you mean");
    }
}

/// Writes the reason for a missing answer, with a hint.
fn write_failure(answer: &Answer, out: &Out) {
    let (message, hint) = match &answer.problem {
        Some(problem) => (problem.message.as_str(), problem.hint.clone()),
        None => ("there is no answer", None),
    };
    let what = match answer.status {
        AnswerStatus::Failed | AnswerStatus::Abstained | AnswerStatus::Refused => one_line(message),
        _ => format!("no answer after {}: {}", pluralize(answer.attempts.len(), "attempt"), one_line(message)),
    };
    if let Some(sql) = &answer.sql {
        out.note(&format!("best attempt: {}", sanitize_lines(sql)));
    }
    out.error(&CliError { hint, ..CliError::new(what) });
}

/// Returns the serialized name of an enum value: `high`, `gave_up`.
pub fn wire_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Returns the display name of a serialized status. A run without a status did not finish.
pub fn status_label(status: &str) -> &str {
    match status {
        "gave_up" => "gave up",
        "ask_user" => "needs clarification",
        "chat" => "text answer",
        "" => "interrupted",
        other => other,
    }
}

/// Escapes control characters in multi-line text, for output to a terminal.
pub fn sanitize_lines(text: &str) -> String {
    text.trim().lines().map(|line| one_line(line).replace("\\t", "\t")).collect::<Vec<_>>().join("\n")
}
