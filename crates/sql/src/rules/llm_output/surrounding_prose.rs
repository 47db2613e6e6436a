#![doc = include_str!("surrounding_prose.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `surrounding-prose` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "surrounding-prose",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("surrounding_prose.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "surrounding-prose",
            "there is prose before the SQL",
            "the query begins at its first SELECT or WITH that parses",
            out,
        )
    },
    ..Rule::DEFAULTS
};
