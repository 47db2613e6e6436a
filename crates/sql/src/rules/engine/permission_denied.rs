#![doc = include_str!("permission_denied.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `permission-denied` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "permission-denied",
    group: RuleGroup::Engine,
    error_type: ErrorType::PermissionDenied,
    page: include_str!("permission_denied.md"),
    ..Rule::DEFAULTS
};
