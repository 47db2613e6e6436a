#![doc = include_str!("typographic_signs.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "typographic-signs",
    group: "artefact",
    page: include_str!("typographic_signs.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "typographic-signs",
            "a sign only looks like one of SQL",
            "written with the sign that it looks like, the text is a query",
            out,
        )
    },
};
