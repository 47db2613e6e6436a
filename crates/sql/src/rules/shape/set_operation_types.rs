#![doc = include_str!("set_operation_types.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `set-operation-types` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "set-operation-types",
    group: RuleGroup::Shape,
    error_type: ErrorType::TypeMismatch,
    page: include_str!("set_operation_types.md"),
    ..Rule::DEFAULTS
};
