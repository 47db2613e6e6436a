#![doc = include_str!("result_too_large.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `result-too-large` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "result-too-large",
    group: RuleGroup::Engine,
    error_type: ErrorType::ResourceLimit,
    page: include_str!("result_too_large.md"),
    ..Rule::DEFAULTS
};
