//! Default strategy: reports all errors at once, with the advice of their rules.

use super::{Strategy, advice};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "explain_findings",
    applies: |_, _| true,
    feedback: |failure, _| advice(failure),
    restart_conversation: false,
};
