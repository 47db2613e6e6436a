#![doc = include_str!("trailing_semicolon.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `trailing-semicolon` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "trailing-semicolon",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("trailing_semicolon.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "trailing-semicolon",
            "a semicolon ends the query",
            "one statement is sent, and it needs no terminator",
            out,
        )
    },
    ..Rule::DEFAULTS
};
