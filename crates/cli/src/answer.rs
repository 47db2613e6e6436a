//! An answer for people: rows on stdout, and on stderr the SQL, what was mended, and how sure it is.

use querymend::{Answer, Status, Stop};
use querymend_sql::diff::diff;
use querymend_sql::{Dialect, Rows};

use crate::clarify;
use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::out::{Out, counted};
use crate::render::one_line;
use crate::table;

/// The longest that the line on what was mended may be.
const LONGEST_LINE: usize = 200;

/// Writes an answer. A failure that was mended is not spoken of: the trace and `--explain` tell it.
pub fn write(answer: &Answer, format: table::Format, dialect: &Dialect, out: &mut Out) -> Result<Exit, Failure> {
    if answer.stop == Stop::Cancelled {
        // Half an answer helps nobody.
        out.say("stopped");
        return Ok(Exit::Interrupted);
    }
    if format == table::Format::Json {
        out.json(&pretty(answer)?)?;
        return Ok(exit(answer));
    }
    let mut cut = false;
    if let (Status::Answered, table::Format::Table, Some(text)) = (answer.status, format, &answer.text) {
        // For people, the words come first; programs that read rows are given nothing else.
        out.note(&printable(text));
    }
    if let Some(rows) = &answer.rows {
        let (text, was_cut) = table::write(rows, format)?;
        cut = was_cut;
        out.rows(&text, format)?;
        out.flush()?;
    }
    match answer.status {
        Status::Answered => about(answer, dialect, cut, out),
        Status::Chat => out.line(&printable(answer.text.as_deref().unwrap_or("…")))?,
        Status::Drafted => drafted(answer, out)?,
        Status::AskUser => ask_back(answer, out),
        Status::GaveUp | Status::Failed | Status::Abstained | Status::Refused => trouble(answer, out),
    }
    out.flush()?;
    Ok(exit(answer))
}

fn exit(answer: &Answer) -> Exit {
    match answer.status {
        Status::Answered | Status::Drafted | Status::Chat => Exit::Done,
        Status::GaveUp | Status::AskUser | Status::Abstained | Status::Refused => Exit::Refused,
        Status::Failed => Exit::Failed,
    }
}

/// How many rows there are, and what is missing of them. How the limits are raised depends on who asks.
pub fn tell_rows(rows: &Rows, cut: bool, raised: &str, out: &Out) {
    out.note(&counted(rows.rows.len(), "row"));
    if rows.truncated {
        out.say("warning: the answer is truncated: there are more rows than the limits allow");
        out.note(&format!("hint: {raised}"));
    }
    if cut {
        out.note("note: long values are cut short; --format json shows them whole");
    }
}

fn about(answer: &Answer, dialect: &Dialect, cut: bool, out: &Out) {
    let none = Rows::default();
    tell_rows(answer.rows.as_ref().unwrap_or(&none), cut, "`limits` in querymend.yaml raises them", out);
    if answer.remembered.is_some() {
        out.note("answered from memory, without a model; --fresh asks it again");
    }
    let sql = answer.sql.as_deref().unwrap_or_default();
    out.note(&format!("SQL: {}", printable(sql)));
    if let Some(mended) = mended(answer, sql, dialect) {
        out.note(&format!("mended: {mended}"));
    }
    let why = if answer.reasons.is_empty() { String::new() } else { format!(": {}", answer.reasons.join("; ")) };
    out.note(&format!("confidence: {}{}", word(&answer.confidence), one_line(&why)));
    out.detail(&format!("trace: {}", answer.trace_id));
}

/// A query that was not run: it goes to stdout, and that it was not run to stderr.
fn drafted(answer: &Answer, out: &mut Out) -> Result<(), Failure> {
    out.say("not run: there is no database; the query was checked against the tables of the schema file");
    out.line(&printable(answer.sql.as_deref().unwrap_or_default()))?;
    for fix in &answer.fixes {
        out.note(&format!("mended: {}", one_line(&fix.why)));
    }
    for warning in &answer.warnings {
        out.note(&format!("warning: {}", one_line(&warning.message)));
    }
    Ok(())
}

/// The snippets that differ between the first draft and the query that ran, in one line.
fn mended(answer: &Answer, sql: &str, dialect: &Dialect) -> Option<String> {
    let first = answer.attempts.first().filter(|_| !answer.fallback)?;
    let changes: Vec<String> =
        diff(&first.sql, sql, dialect).iter().map(|change| one_line(&change.to_string())).collect();
    let mut line = changes.join(", ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST_LINE) {
        line.truncate(end);
        line.push('…');
    }
    Some(line).filter(|line| !line.is_empty())
}

/// Writes a question back, and how it is answered.
fn ask_back(answer: &Answer, out: &Out) {
    if let Some(clarification) = &answer.clarification {
        clarify::write(clarification, out);
        out.note("hint: --assume takes the first; or ask again and name the one that you mean");
    }
}

/// Why there is no answer, and what can be done.
fn trouble(answer: &Answer, out: &Out) {
    let (message, hint) = match &answer.problem {
        Some(problem) => (problem.message.as_str(), problem.hint.clone()),
        None => ("there is no answer", None),
    };
    let what = match answer.status {
        Status::Failed | Status::Abstained | Status::Refused => one_line(message),
        _ => format!("no answer after {}: {}", counted(answer.attempts.len(), "attempt"), one_line(message)),
    };
    if let Some(sql) = &answer.sql {
        out.note(&format!("best attempt: {}", printable(sql)));
    }
    out.error(&Failure { hint, ..Failure::new(what) });
}

/// A word of the protocol: `high`, `gave_up`.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// How a run ended, from the word of the protocol. A run that has none did not come to its end.
pub fn ending(status: &str) -> &str {
    match status {
        "gave_up" => "gave up",
        "ask_user" => "asked back",
        "chat" => "in words",
        "" => "cut off",
        other => other,
    }
}

/// Text of several lines, made harmless for a terminal.
pub fn printable(text: &str) -> String {
    text.trim().lines().map(|line| one_line(line).replace("\\t", "\t")).collect::<Vec<_>>().join("\n")
}
