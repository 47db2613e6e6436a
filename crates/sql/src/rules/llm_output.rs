//! Text that models write around SQL, and text that is not SQL at all.

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
pub mod typographic_punctuation;
pub mod unescaped_apostrophe;

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::rule::RuleContext;

/// Reports the extraction steps with a code, and offers their edits as a fix.
fn report_extraction(ctx: &RuleContext<'_>, code: &'static str, message: &str, why: &str, out: &mut Vec<Finding>) {
    let mut edits: Vec<_> =
        ctx.query.steps.iter().filter(|s| s.code == code).flat_map(|s| s.edits.iter().cloned()).collect();
    // Steps unwrap from the outside in, but edits must be in source order.
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let Some(first) = edits.first() else { return };
    let span = first.span;
    let fix = Fix { applicability: Applicability::Safe, why: why.to_string(), edits, is_tied_with_previous: false };
    out.push(
        Finding::new(
            code,
            Severity::Info,
            span,
            ctx.query.text(span).trim().chars().take(60).collect::<String>(),
            message,
        )
        .with_advice("Answer with the SQL alone: no fence, no prose, no escapes.")
        .with_fix(fix),
    );
}
