#![doc = include_str!("escaped_characters.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "escaped-characters",
    group: "artefact",
    page: include_str!("escaped_characters.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "escaped-characters",
            "characters are escaped as in Markdown or a string of code",
            "SQL has no such escapes outside of literals",
            out,
        )
    },
};
