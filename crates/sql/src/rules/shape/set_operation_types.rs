#![doc = include_str!("set_operation_types.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule = Rule {
    code: "set-operation-types",
    group: "shape",
    page: include_str!("set_operation_types.md"),
    check: only_the_engine_knows,
};
