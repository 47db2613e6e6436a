//! An answer for people: rows on stdout, and on stderr the SQL, what was mended, and how sure it is.

use querymend::{Answer, Status, Stop};
use querymend_sql::Dialect;
use querymend_sql::diff::diff;

use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::out::Out;
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
    if let Some(rows) = &answer.rows {
        let (text, was_cut) = table::write(rows, format)?;
        cut = was_cut;
        out.rows(&text, format)?;
        out.flush()?;
    }
    match answer.status {
        Status::Answered => about(answer, dialect, cut, out),
        Status::Chat => out.line(&printable(answer.text.as_deref().unwrap_or("…")))?,
        Status::GaveUp | Status::AskUser | Status::Failed => trouble(answer, out),
    }
    out.flush()?;
    Ok(exit(answer))
}

fn exit(answer: &Answer) -> Exit {
    match answer.status {
        Status::Answered | Status::Chat => Exit::Done,
        Status::GaveUp | Status::AskUser => Exit::Refused,
        Status::Failed => Exit::Failed,
    }
}

fn about(answer: &Answer, dialect: &Dialect, cut: bool, out: &Out) {
    let rows = answer.rows.as_ref();
    let count = rows.map_or(0, |rows| rows.rows.len());
    out.note(&format!("{count} {}", if count == 1 { "row" } else { "rows" }));
    if rows.is_some_and(|rows| rows.truncated) {
        out.say("warning: the answer is truncated: there are more rows than the limits allow");
        out.note("hint: `limits` in querymend.yaml raises them");
    }
    if cut {
        out.note("note: long values are cut short; --format json shows them whole");
    }
    if let Some(text) = &answer.text {
        out.note(&format!("in words: {}", printable(text)));
    }
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

/// Why there is no answer, and what can be done.
fn trouble(answer: &Answer, out: &Out) {
    let (message, hint) = match &answer.problem {
        Some(problem) => (problem.message.as_str(), problem.hint.clone()),
        None => ("there is no answer", None),
    };
    let what = match answer.status {
        Status::Failed => one_line(message),
        _ => format!("no answer after {}: {}", attempts(answer.attempts.len()), one_line(message)),
    };
    if let Some(sql) = &answer.sql {
        out.note(&format!("best attempt: {}", printable(sql)));
    }
    if !answer.choices.is_empty() {
        out.say("which of these is meant?");
        answer.choices.iter().for_each(|choice| out.say(&format!("  {}", one_line(choice))));
    }
    out.error(&Failure { hint, ..Failure::new(what) });
}

fn attempts(count: usize) -> String {
    if count == 1 { "1 attempt".into() } else { format!("{count} attempts") }
}

/// A word of the protocol: `high`, `gave_up`.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Text of several lines, made harmless for a terminal.
pub fn printable(text: &str) -> String {
    text.trim().lines().map(|line| one_line(line).replace("\\t", "\t")).collect::<Vec<_>>().join("\n")
}
