#![doc = include_str!("escaped_characters.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `escaped-characters` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "escaped-characters",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("escaped_characters.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "escaped-characters",
            "characters are escaped as in Markdown or a string of code",
            "SQL has no such escapes outside of literals",
            out,
        )
    },
    ..Rule::DEFAULTS
};
