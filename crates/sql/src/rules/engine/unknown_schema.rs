#![doc = include_str!("unknown_schema.md")]

use crate::rule::{ErrorType, Rule};
use crate::rule_group::RuleGroup;

/// The `unknown-schema` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unknown-schema",
    group: RuleGroup::Engine,
    error_type: ErrorType::TableNotFound,
    page: include_str!("unknown_schema.md"),
    ..Rule::DEFAULTS
};
