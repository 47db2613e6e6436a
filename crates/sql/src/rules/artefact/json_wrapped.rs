#![doc = include_str!("json_wrapped.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "json-wrapped",
    group: "artefact",
    page: include_str!("json_wrapped.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "json-wrapped",
            "the SQL is a string inside JSON",
            "the string is what was meant",
            out,
        )
    },
};
