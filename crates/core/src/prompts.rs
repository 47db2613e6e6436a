//! Renders prompts from the templates in `prompts/*.md`.
//!
//! A template has two parts separated by a line of three dashes: the system message and the user
//! message. A template with one part is a user message in an ongoing conversation.

use querymend_model::{CompletionRequest, Message};
use querymend_sql::{Cell, Rows};

use crate::event::Feedback;

/// Named template of the draft prompt.
pub struct PromptVariant {
    /// Name in the configuration and in `eval`.
    pub name: &'static str,
    /// Text of the template.
    pub draft: &'static str,
}

/// Available draft prompts.
///
/// The standard one omits dialect notes: a small model writes far worse queries with them (on 507
/// questions 51 % ran instead of 67 %), and the review handles the dialect anyway.
pub static VARIANTS: &[PromptVariant] = &[
    PromptVariant { name: "standard", draft: include_str!("prompts/draft.md") },
    PromptVariant { name: "careful", draft: include_str!("prompts/draft.careful.md") },
];

/// Returns the variant with this name.
pub fn find_variant(name: &str) -> Option<&'static PromptVariant> {
    VARIANTS.iter().find(|v| v.name == name)
}

/// Values of the draft prompt.
#[derive(Debug, Clone, Copy)]
pub struct DraftPrompt<'d> {
    /// Display name of the dialect.
    pub dialect: &'d str,
    /// Notes on the dialect.
    pub notes: &'d str,
    /// DDL of the linked tables.
    pub schema: &'d str,
    /// Additional facts about the question.
    pub evidence: Option<&'d str>,
    /// Few-shot examples (question and query), most similar first.
    pub examples: &'d [(String, String)],
    /// Previous questions of the conversation with their queries, oldest first.
    pub history: &'d [(String, String)],
    /// Question of the user.
    pub question: &'d str,
}

/// Renders the draft prompt.
pub fn draft(variant: &PromptVariant, draft: &DraftPrompt<'_>) -> Vec<Message> {
    // The most similar example comes last: models weigh recent text most.
    let examples: String = draft.examples.iter().rev().map(format_example).collect();
    let earlier: String = draft.history.iter().map(format_example).collect();
    render_messages(
        variant.draft,
        &[
            ("dialect", draft.dialect),
            ("schema", draft.schema),
            ("notes", &paragraph(draft.notes)),
            ("evidence", &paragraph(draft.evidence.unwrap_or(""))),
            ("examples", &examples),
            ("earlier", &earlier),
            ("question", draft.question),
        ],
    )
}

fn format_example((question, sql): &(String, String)) -> String {
    format!("Question: {question}\n{sql}\n\n")
}

/// Maximum length of the feedback in a prompt, in bytes: less than a hundred tokens.
///
/// The query and the database message do not count.
pub const MAX_ADVICE_BYTES: usize = 320;

/// Renders the message that requests a revision.
///
/// `failure` is the database message, or reports that the review blocked the query.
pub fn revise(failure: &str, feedback: &[Feedback]) -> Message {
    let mut advice = String::new();
    for told in feedback {
        let line = format!("{}\n", told.text.trim());
        if advice.len() + line.len() > MAX_ADVICE_BYTES && !advice.is_empty() {
            break;
        }
        advice.push_str(truncate(&line, MAX_ADVICE_BYTES));
    }
    Message::user(fill_template(
        include_str!("prompts/revise.md").trim_end(),
        &[("failure", failure), ("advice", &advice)],
    ))
}

/// Renders the prompt for a message that does not ask for data.
pub fn chat(question: &str, tables: &[&str]) -> Vec<Message> {
    let tables = tables.join(", ");
    render_messages(include_str!("prompts/chat.md"), &[("tables", truncate(&tables, 2_000)), ("question", question)])
}

/// Renders the prompt for client-side analysis of fetched rows.
pub fn analyse(schema: &str, evidence: Option<&str>, question: &str) -> Vec<Message> {
    let evidence = paragraph(evidence.unwrap_or(""));
    render_messages(
        include_str!("prompts/analyse.md"),
        &[("schema", schema), ("evidence", &evidence), ("question", question)],
    )
}

/// Renders the prompt for a program that the client runs over its fetched rows.
pub fn program(tables: &str, evidence: Option<&str>, question: &str) -> Vec<Message> {
    let evidence = paragraph(evidence.unwrap_or(""));
    render_messages(
        include_str!("prompts/program.md"),
        &[("tables", tables), ("evidence", &evidence), ("question", question)],
    )
}

/// Requests the draft as a JSON object, both in the prompt and by JSON schema.
pub(crate) fn request_json(request: &mut CompletionRequest) {
    request.schema = Some(serde_json::json!({
        "type": "object",
        "properties": {"sql": {"type": "string"}},
        "required": ["sql"],
        "additionalProperties": false,
    }));
    if let Some(system) = request.messages.first_mut() {
        system.text.push_str(" Write it as JSON: {\"sql\": \"…\"}.");
    }
}

/// Renders the prompt to correct a query that the rules could not repair.
pub fn correct(dialect: &str, schema: &str, question: &str, sql: &str, faults: &str) -> Vec<Message> {
    let question = if question.is_empty() { String::new() } else { format!("Question: {question}\n\n") };
    render_messages(
        include_str!("prompts/correct.md"),
        &[
            ("dialect", dialect),
            ("schema", schema),
            ("question", &question),
            ("sql", truncate(sql, MAX_CORRECTED_SQL_BYTES)),
            ("faults", truncate(faults, MAX_FAULTS_BYTES)),
        ],
    )
}

/// Maximum length of the query in a correction prompt, in bytes.
const MAX_CORRECTED_SQL_BYTES: usize = 8_000;
/// Maximum length of the error description in a correction prompt, in bytes.
const MAX_FAULTS_BYTES: usize = 1_000;

/// Renders the prompt to summarize rows.
pub fn summarise(question: &str, rows: &str) -> Vec<Message> {
    render_messages(include_str!("prompts/summarise.md"), &[("question", question), ("rows", rows)])
}

/// Maximum number of rows in a prompt; the total is added if there are more.
const MAX_PROMPT_ROWS: usize = 50;

/// Formats the first rows for a prompt, with tab-separated cells.
pub(crate) fn format_rows(rows: &Rows) -> String {
    let cell = |cell: &Cell| match cell {
        Cell::Null => "NULL".to_string(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Number(value) => value.to_string(),
        Cell::Decimal(value) => value.clone(),
        Cell::Text(value) | Cell::Binary(value) => truncate(value, 200).replace(['\n', '\t'], " "),
    };
    let mut lines = vec![rows.columns.join("\t")];
    lines.extend(rows.rows.iter().take(MAX_PROMPT_ROWS).map(|row| row.iter().map(cell).collect::<Vec<_>>().join("\t")));
    if rows.rows.len() > MAX_PROMPT_ROWS || rows.truncated {
        let more = if rows.truncated { "more than " } else { "" };
        lines.push(format!("({more}{} rows in all)", rows.rows.len()));
    }
    lines.join("\n")
}

fn paragraph(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!("{text}\n\n") }
}

fn render_messages(template: &str, values: &[(&str, &str)]) -> Vec<Message> {
    match template.split_once("\n---\n") {
        Some((system, user)) => {
            vec![
                Message::system(fill_template(system.trim(), values)),
                Message::user(fill_template(user.trim(), values)),
            ]
        }
        None => vec![Message::user(fill_template(template.trim(), values))],
    }
}

/// Replaces placeholders in a template.
///
/// Values are not expanded again: a question may contain `{schema}` (template injection).
fn fill_template(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let placeholder = rest.find('}').and_then(|end| {
            let (_, value) = values.iter().find(|(name, _)| *name == &rest[1..end])?;
            Some((end + 1, *value))
        });
        match placeholder {
            Some((end, value)) => {
                out.push_str(value);
                rest = &rest[end..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Truncates a text to at most `max_bytes`, at a character boundary.
pub(crate) fn truncate(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let end = (0..=max_bytes).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_placeholders_inside_substituted_values() {
        assert_eq!(fill_template("a {x} b {y} c {z}", &[("x", "{y}"), ("y", "2")]), "a {y} b 2 c {z}");
    }

    #[test]
    fn bounds_feedback_length_in_revise_prompt() {
        let long = Feedback { kind: "x".into(), text: "an advice that goes on and on ".repeat(40) };
        let message = revise("no such column: id", &[long.clone(), long]);
        let told = message.text.len() - "no such column: id".len();
        // One token of English or SQL is about four bytes.
        assert!(told / 4 < 100, "{told} bytes");
        assert!(message.text.ends_with("Answer with the corrected query only."));
    }
}
