#![doc = include_str!("unknown_schema.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule = Rule {
    code: "unknown-schema",
    group: "engine",
    page: include_str!("unknown_schema.md"),
    check: only_the_engine_knows,
};
