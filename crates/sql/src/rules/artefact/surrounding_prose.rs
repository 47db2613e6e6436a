#![doc = include_str!("surrounding_prose.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "surrounding-prose",
    group: "artefact",
    page: include_str!("surrounding_prose.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "surrounding-prose",
            "there is prose before the SQL",
            "the query begins at its first SELECT or WITH that parses",
            out,
        )
    },
};
