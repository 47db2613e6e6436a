#![doc = include_str!("not_a_database.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `not-a-database` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "not-a-database",
    group: RuleGroup::Engine,
    error_type: ErrorType::ConnectionError,
    page: include_str!("not_a_database.md"),
    ..Rule::DEFAULTS
};
