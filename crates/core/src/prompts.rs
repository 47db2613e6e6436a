//! What models are told. The words are in `prompts/*.md`; here they are filled in.
//!
//! A prompt file has two parts, parted by a line of three dashes: what the system says and what the user says. A file with one
//! part is a message of the user in a conversation that goes on.

use querymend_model::{Message, Request};
use querymend_sql::{Cell, Rows};

use crate::event::Feedback;

/// A way to word the first question, by name.
pub struct Variant {
    /// As the configuration and `eval` call it.
    pub name: &'static str,
    /// The text.
    pub draft: &'static str,
}

/// The wordings that can be compared with each other. The standard one leaves out what is peculiar about the dialect: a small
/// model writes far worse queries with it (on 507 questions 51 % ran instead of 67 %), and the critic knows it anyway.
pub static VARIANTS: &[Variant] = &[
    Variant { name: "standard", draft: include_str!("prompts/draft.md") },
    Variant { name: "careful", draft: include_str!("prompts/draft.careful.md") },
];

/// The wording of that name.
pub fn variant(name: &str) -> Option<&'static Variant> {
    VARIANTS.iter().find(|v| v.name == name)
}

/// What the first question is made of.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'d> {
    /// As people call the dialect.
    pub dialect: &'d str,
    /// What is peculiar about it.
    pub notes: &'d str,
    /// The tables, as text.
    pub schema: &'d str,
    /// What is known besides the question.
    pub evidence: Option<&'d str>,
    /// Questions that are like this one, with their queries, the likest first.
    pub examples: &'d [(String, String)],
    /// Questions of the same conversation, with the queries that answered them, oldest first.
    pub earlier: &'d [(String, String)],
    /// The question.
    pub question: &'d str,
}

/// The first question to the model.
pub fn draft(variant: &Variant, draft: &Draft<'_>) -> Vec<Message> {
    // The likest stands last: what was read last weighs most.
    let examples: String = draft.examples.iter().rev().map(pair).collect();
    let earlier: String = draft.earlier.iter().map(pair).collect();
    conversation(
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

fn pair((question, sql): &(String, String)) -> String {
    format!("Question: {question}\n{sql}\n\n")
}

/// The longest that what is told besides the query and the engine's own words may be: under a hundred tokens.
pub const MOST_ADVICE: usize = 320;

/// The message that sends a query back. `failure` holds the engine's own words, or says that the critic held the query back.
pub fn revise(failure: &str, feedback: &[Feedback]) -> Message {
    let mut advice = String::new();
    for told in feedback {
        let line = format!("{}\n", told.text.trim());
        if advice.len() + line.len() > MOST_ADVICE && !advice.is_empty() {
            break;
        }
        advice.push_str(clipped(&line, MOST_ADVICE));
    }
    Message::user(fill(include_str!("prompts/revise.md").trim_end(), &[("failure", failure), ("advice", &advice)]))
}

/// A message that does not ask for data.
pub fn chat(question: &str, tables: &[&str]) -> Vec<Message> {
    let tables = tables.join(", ");
    conversation(include_str!("prompts/chat.md"), &[("tables", clipped(&tables, 2_000)), ("question", question)])
}

/// The one question over rows that were fetched.
pub fn analyse(schema: &str, evidence: Option<&str>, question: &str) -> Vec<Message> {
    let evidence = paragraph(evidence.unwrap_or(""));
    conversation(
        include_str!("prompts/analyse.md"),
        &[("schema", schema), ("evidence", &evidence), ("question", question)],
    )
}

/// A program over rows that are fetched where it runs.
pub fn program(tables: &str, evidence: Option<&str>, question: &str) -> Vec<Message> {
    let evidence = paragraph(evidence.unwrap_or(""));
    conversation(
        include_str!("prompts/program.md"),
        &[("tables", tables), ("evidence", &evidence), ("question", question)],
    )
}

/// Asks for a draft as a JSON object, in words and by a schema.
pub(crate) fn ask_for_json(request: &mut Request) {
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

/// A query that rules could not correct.
pub fn correct(dialect: &str, schema: &str, question: &str, sql: &str, faults: &str) -> Vec<Message> {
    let question = if question.is_empty() { String::new() } else { format!("Question: {question}\n\n") };
    conversation(
        include_str!("prompts/correct.md"),
        &[
            ("dialect", dialect),
            ("schema", schema),
            ("question", &question),
            ("sql", clipped(sql, MOST_CORRECTED)),
            ("faults", clipped(faults, MOST_FAULTS)),
        ],
    )
}

/// The longest query that a model is shown to correct, in bytes.
const MOST_CORRECTED: usize = 8_000;
/// The longest text about what is wrong with it, in bytes.
const MOST_FAULTS: usize = 1_000;

/// The rows in words.
pub fn summarise(question: &str, rows: &str) -> Vec<Message> {
    conversation(include_str!("prompts/summarise.md"), &[("question", question), ("rows", rows)])
}

/// Rows that are put into words: the first, with a word on how many there are.
const MOST_ROWS: usize = 50;

/// Rows as a model reads them: tabs between the cells, the first rows only.
pub(crate) fn rows(rows: &Rows) -> String {
    let cell = |cell: &Cell| match cell {
        Cell::Null => "NULL".to_string(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Number(value) => value.to_string(),
        Cell::Decimal(value) => value.clone(),
        Cell::Text(value) | Cell::Binary(value) => clipped(value, 200).replace(['\n', '\t'], " "),
    };
    let mut lines = vec![rows.columns.join("\t")];
    lines.extend(rows.rows.iter().take(MOST_ROWS).map(|row| row.iter().map(cell).collect::<Vec<_>>().join("\t")));
    if rows.rows.len() > MOST_ROWS || rows.truncated {
        let more = if rows.truncated { "more than " } else { "" };
        lines.push(format!("({more}{} rows in all)", rows.rows.len()));
    }
    lines.join("\n")
}

fn paragraph(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!("{text}\n\n") }
}

fn conversation(template: &str, values: &[(&str, &str)]) -> Vec<Message> {
    match template.split_once("\n---\n") {
        Some((system, user)) => {
            vec![Message::system(fill(system.trim(), values)), Message::user(fill(user.trim(), values))]
        }
        None => vec![Message::user(fill(template.trim(), values))],
    }
}

/// Puts values into the holes of a text. What a value holds is never looked at again: a question may say `{schema}`.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let hole = rest.find('}').and_then(|end| {
            let (_, value) = values.iter().find(|(name, _)| *name == &rest[1..end])?;
            Some((end + 1, *value))
        });
        match hole {
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

/// The beginning of a text, at most so many bytes long, cut between characters.
pub(crate) fn clipped(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_value_holds_is_not_filled_in_again() {
        assert_eq!(fill("a {x} b {y} c {z}", &[("x", "{y}"), ("y", "2")]), "a {y} b 2 c {z}");
    }

    #[test]
    fn q09_what_is_told_besides_the_engines_words_is_short() {
        let long = Feedback { kind: "x".into(), text: "an advice that goes on and on ".repeat(40) };
        let message = revise("no such column: id", &[long.clone(), long]);
        let told = message.text.len() - "no such column: id".len();
        // Four bytes are about one token of English and SQL.
        assert!(told / 4 < 100, "{told} bytes");
        assert!(message.text.ends_with("Answer with the corrected query only."));
    }
}
