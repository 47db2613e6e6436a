#![doc = include_str!("code_fence.md")]

use crate::rules::{Rule, artefact};

/// See the page.
pub static RULE: Rule = Rule {
    code: "code-fence",
    group: "artefact",
    page: include_str!("code_fence.md"),
    check: |subject, out| {
        artefact::report(
            subject,
            "code-fence",
            "the SQL stands in a code fence",
            "the fence and what stands outside of it is not SQL",
            out,
        )
    },
};
