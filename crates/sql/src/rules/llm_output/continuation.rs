#![doc = include_str!("continuation.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `continuation` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "continuation",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("continuation.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "continuation",
            "the query is followed by other text",
            "the query is complete at the cut, and the rest is not a statement",
            out,
        )
    },
    ..Rule::DEFAULTS
};
