#![doc = include_str!("connection_failed.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule = Rule {
    code: "connection-failed",
    group: "engine",
    page: include_str!("connection_failed.md"),
    check: only_the_engine_knows,
};
