#![doc = include_str!("invalid_cast.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `invalid-cast` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "invalid-cast",
    group: RuleGroup::Types,
    error_type: ErrorType::TypeMismatch,
    page: include_str!("invalid_cast.md"),
    ..Rule::DEFAULTS
};
