#![doc = include_str!("syntax_error.md")]

use crate::finding::{Finding, Severity};
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
    let message = message
        .replace("Expected: ", "expected ")
        .replace(", found: ", ", found ")
        .replace("EOF", "the end of the text");
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
