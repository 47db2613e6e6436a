#![doc = include_str!("timed_out.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `timed-out` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "timed-out",
    group: RuleGroup::Engine,
    error_type: ErrorType::Timeout,
    page: include_str!("timed_out.md"),
    ..Rule::DEFAULTS
};
