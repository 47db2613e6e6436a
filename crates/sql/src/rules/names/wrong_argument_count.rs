#![doc = include_str!("wrong_argument_count.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule = Rule {
    code: "wrong-argument-count",
    group: "names",
    page: include_str!("wrong_argument_count.md"),
    check: only_the_engine_knows,
};
