#![doc = include_str!("wrong_argument_count.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `wrong-argument-count` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "wrong-argument-count",
    group: RuleGroup::Names,
    error_type: ErrorType::FunctionNotFound,
    page: include_str!("wrong_argument_count.md"),
    ..Rule::DEFAULTS
};
