#![doc = include_str!("code_fence.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `code-fence` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "code-fence",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("code_fence.md"),
    check: |subject, out| {
        llm_output::report_extraction(
            subject,
            "code-fence",
            "the SQL is inside a code fence",
            "the fence and the text outside of it are not SQL",
            out,
        )
    },
    ..Rule::DEFAULTS
};
