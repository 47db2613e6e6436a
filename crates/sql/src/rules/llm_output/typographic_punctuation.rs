#![doc = include_str!("typographic_punctuation.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `typographic-punctuation` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "typographic-punctuation",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("typographic_punctuation.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "typographic-punctuation",
            "a character only looks like SQL punctuation",
            "with the character that it looks like, the query parses",
            out,
        )
    },
    ..Rule::DEFAULTS
};
