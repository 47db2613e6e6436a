//! What models put around SQL, and text that is no SQL at all.

pub mod code_fence;
pub mod continuation;
pub mod escaped_characters;
pub mod flattened_comment;
pub mod foreign_comment;
pub mod json_wrapped;
pub mod no_sql;
pub mod surrounding_prose;
pub mod syntax_error;
pub mod trailing_semicolon;
pub mod typographic_signs;
pub mod unescaped_apostrophe;

use super::Subject;
use crate::finding::{Applicability, Finding, Fix, Severity};

/// Reports the steps of salvage that carry a code, with what they changed as a fix.
fn report(subject: &Subject<'_>, code: &'static str, message: &str, why: &str, out: &mut Vec<Finding>) {
    let mut edits: Vec<_> =
        subject.query.steps.iter().filter(|s| s.code == code).flat_map(|s| s.edits.iter().cloned()).collect();
    // What is around the SQL was found before what is inside of it, and edits stand in the order of the text.
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let Some(first) = edits.first() else { return };
    let span = first.span;
    let fix = Fix { applicability: Applicability::Safe, why: why.to_string(), edits, tied: false };
    out.push(
        Finding::new(
            code,
            Severity::Info,
            span,
            subject.query.text(span).trim().chars().take(60).collect::<String>(),
            message,
        )
        .advise("Answer with the SQL alone: no fence, no prose, no escapes.")
        .mend(fix),
    );
}
