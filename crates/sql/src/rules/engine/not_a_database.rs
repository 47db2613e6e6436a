#![doc = include_str!("not_a_database.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule = Rule {
    code: "not-a-database",
    group: "engine",
    page: include_str!("not_a_database.md"),
    check: only_the_engine_knows,
};
