//! Strategy for the last of several attempts: a simpler query is more likely to run.

use super::{Strategy, advice, feedback};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "simplify",
    applies: |_, context| context.attempt == context.max_attempts && context.attempt > 2,
    feedback: |failure, _| {
        let mut all = advice(failure);
        all.push(feedback("simplify", "Write it more simply: only the tables and columns that the question needs."));
        all
    },
    restart_conversation: false,
};
