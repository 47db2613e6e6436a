#![doc = include_str!("unescaped_apostrophe.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "unescaped-apostrophe",
    group: "artefact",
    page: include_str!("unescaped_apostrophe.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "unescaped-apostrophe",
            "an apostrophe inside a literal is not doubled",
            "the quote stands between letters, and the query parses when it is doubled",
            out,
        )
    },
};
