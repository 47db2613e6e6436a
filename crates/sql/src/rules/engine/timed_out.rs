#![doc = include_str!("timed_out.md")]

use crate::rules::{Rule, only_the_engine_knows};

/// See the page.
pub static RULE: Rule =
    Rule { code: "timed-out", group: "engine", page: include_str!("timed_out.md"), check: only_the_engine_knows };
