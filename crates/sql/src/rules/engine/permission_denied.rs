#![doc = include_str!("permission_denied.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule = Rule {
    code: "permission-denied",
    group: "engine",
    page: include_str!("permission_denied.md"),
    check: only_the_engine_knows,
};
