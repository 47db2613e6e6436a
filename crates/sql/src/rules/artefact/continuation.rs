#![doc = include_str!("continuation.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "continuation",
    group: "artefact",
    page: include_str!("continuation.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "continuation",
            "text goes on behind the query",
            "the query is complete where it is cut, and what follows is no statement",
            out,
        )
    },
};
