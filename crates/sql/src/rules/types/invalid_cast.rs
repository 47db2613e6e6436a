#![doc = include_str!("invalid_cast.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule =
    Rule { code: "invalid-cast", group: "types", page: include_str!("invalid_cast.md"), check: only_the_engine_knows };
