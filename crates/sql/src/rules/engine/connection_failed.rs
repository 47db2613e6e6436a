#![doc = include_str!("connection_failed.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `connection-failed` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "connection-failed",
    group: RuleGroup::Engine,
    error_type: ErrorType::ConnectionError,
    page: include_str!("connection_failed.md"),
    ..Rule::DEFAULTS
};
