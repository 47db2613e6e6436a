#![doc = include_str!("unescaped_apostrophe.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `unescaped-apostrophe` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unescaped-apostrophe",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("unescaped_apostrophe.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "unescaped-apostrophe",
            "an apostrophe inside a literal is not doubled",
            "the quote is between letters, and the query parses when it is doubled",
            out,
        )
    },
    ..Rule::DEFAULTS
};
