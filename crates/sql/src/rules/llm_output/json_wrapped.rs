#![doc = include_str!("json_wrapped.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `json-wrapped` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "json-wrapped",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("json_wrapped.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "json-wrapped",
            "the SQL is a string inside JSON",
            "the string is the query",
            out,
        )
    },
    ..Rule::DEFAULTS
};
