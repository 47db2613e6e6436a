#![doc = include_str!("engine_error.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `engine-error` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "engine-error",
    group: RuleGroup::Engine,
    error_type: ErrorType::Unknown,
    page: include_str!("engine_error.md"),
    ..Rule::DEFAULTS
};
