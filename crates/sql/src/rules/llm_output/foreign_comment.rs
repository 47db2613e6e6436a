#![doc = include_str!("foreign_comment.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `foreign-comment` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "foreign-comment",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("foreign_comment.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "foreign-comment",
            "this is not a comment in this dialect",
            "the text after the marker is prose, and the query parses without it",
            out,
        )
    },
    ..Rule::DEFAULTS
};
