#![doc = include_str!("foreign_comment.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "foreign-comment",
    group: "artefact",
    page: include_str!("foreign_comment.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "foreign-comment",
            "this is no comment in this dialect",
            "what stands behind the sign is said to people, and without it the text is a query",
            out,
        )
    },
};
