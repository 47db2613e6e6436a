#![doc = include_str!("flattened_comment.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "flattened-comment",
    group: "artefact",
    page: include_str!("flattened_comment.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "flattened-comment",
            "a line end was lost, so that a comment swallows the rest of the query",
            "the query parses when the comment ends before the next clause",
            out,
        )
    },
};
