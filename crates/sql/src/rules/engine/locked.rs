#![doc = include_str!("locked.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `locked` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "locked",
    group: RuleGroup::Engine,
    error_type: ErrorType::ConnectionError,
    page: include_str!("locked.md"),
    ..Rule::DEFAULTS
};
