#![doc = include_str!("too_large.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule =
    Rule { code: "too-large", group: "engine", page: include_str!("too_large.md"), check: only_the_engine_knows };
