#![doc = include_str!("trailing_semicolon.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "trailing-semicolon",
    group: "artefact",
    page: include_str!("trailing_semicolon.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "trailing-semicolon",
            "a semicolon ends the query",
            "one statement is sent, and it needs no end mark",
            out,
        )
    },
};
