#![doc = include_str!("locked.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule =
    Rule { code: "locked", group: "engine", page: include_str!("locked.md"), check: only_the_engine_knows };
