#![doc = include_str!("syntax_error.md")]

use crate::finding::{Finding, Severity, Span};
use crate::query::Failure;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "syntax-error", group: "artefact", page: include_str!("syntax_error.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    // Other rules recognise some syntax errors for what they are; this one speaks for the rest.
    let Some(Failure::Syntax { message, at }) = &subject.query.failure else { return };
    if out.iter().any(|f| f.severity == Severity::Error) {
        return;
    }
    let dialect = subject.context.dialect.name;
    if let Some(word) = command(&subject.query.sql) {
        let start = subject.query.source.find(word).unwrap_or(at.start);
        let command = word.to_ascii_uppercase();
        out.push(
            Finding::new(
                "syntax-error",
                Severity::Error,
                Span::new(start, start + word.len()),
                command.as_str(),
                format!("`{command}` is a command and not a query; only queries that read are run"),
            )
            .advise(format!("Write one SELECT query instead of `{command}`.")),
        );
        return;
    }
    let message = plain(message);
    out.push(
        Finding::new(
            "syntax-error",
            Severity::Error,
            *at,
            subject.query.text(*at),
            format!("this is not {dialect} SQL: {message}"),
        )
        .advise(format!(
            "The query does not parse as {dialect}: {message}. Write the whole query again in {dialect} syntax."
        )),
    );
}

/// The command that a text begins with, as it is written, if the grammar has no form for it: databases know it, but it asks for
/// no rows.
fn command(sql: &str) -> Option<&str> {
    const COMMANDS: &[&str] = &["ANALYZE", "ATTACH", "CHECKPOINT", "DETACH", "PRAGMA", "REINDEX", "VACUUM"];
    let word = sql.split_whitespace().next()?.trim_end_matches(';');
    COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(word)).then_some(word)
}

/// The parser's words without what only its makers understand.
fn plain(message: &str) -> String {
    let message = message.trim_start_matches("sql parser error: ");
    if message.contains("(Word {") || message.contains("No infix parser") {
        return "this word is not expected here".into();
    }
    let message = message
        .replace("found: EOF", "found: the end of the text")
        .replace("Expected: ", "expected ")
        .replace(", found: ", ", found ");
    let mut letters = message.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
