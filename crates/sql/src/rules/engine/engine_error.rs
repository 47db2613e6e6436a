#![doc = include_str!("engine_error.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule =
    Rule { code: "engine-error", group: "engine", page: include_str!("engine_error.md"), check: only_the_engine_knows };
