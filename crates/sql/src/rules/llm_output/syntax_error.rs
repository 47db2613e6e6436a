#![doc = include_str!("syntax_error.md")]

use crate::finding::{Finding, Severity, Span};
use crate::parse::parsed_query::ParseFailure;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `syntax-error` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "syntax-error",
    // Not `Syntax`, whose rules name their error: this rule also reports text that is not SQL.
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("syntax_error.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    // Other rules recognize specific syntax errors; this one reports the rest.
    let Some(ParseFailure::Syntax { message, at }) = &ctx.query.failure else { return };
    if out.iter().any(|f| f.severity == Severity::Error) {
        return;
    }
    let dialect = ctx.context.dialect.name;
    if let Some(word) = leading_command(&ctx.query.sql) {
        let start = ctx.query.source.find(word).unwrap_or(at.start);
        let command = word.to_ascii_uppercase();
        out.push(
            Finding::new(
                "syntax-error",
                Severity::Error,
                Span::new(start, start + word.len()),
                command.as_str(),
                format!("`{command}` is a command, not a query; only read-only queries are run"),
            )
            .with_advice(format!("Write one SELECT query instead of `{command}`.")),
        );
        return;
    }
    let message = readable_parser_message(message);
    out.push(
        Finding::new(
            "syntax-error",
            Severity::Error,
            *at,
            ctx.query.text(*at),
            format!("this is not {dialect} SQL: {message}"),
        )
        .with_advice(format!(
            "The query does not parse as {dialect}: {message}. Write the whole query again in {dialect} syntax."
        )),
    );
}

/// Returns the command that a text begins with, as written, if the grammar lacks it: databases
/// support it, but it does not query rows.
fn leading_command(sql: &str) -> Option<&str> {
    const COMMANDS: &[&str] = &["ANALYZE", "ATTACH", "CHECKPOINT", "DETACH", "PRAGMA", "REINDEX", "VACUUM"];
    let word = sql.split_whitespace().next()?.trim_end_matches(';');
    COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(word)).then_some(word)
}

/// Returns the parser's message without its internals.
fn readable_parser_message(message: &str) -> String {
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
