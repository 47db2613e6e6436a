//! The last attempt after several: a plainer query is likelier to run.

use super::{Strategy, advice, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "simplify",
    fits: |_, view| view.attempt == view.of && view.attempt > 2,
    tell: |trouble, _| {
        let mut all = advice(trouble);
        all.push(told("simplify", "Write it more simply: only the tables and columns that the question needs."));
        all
    },
    anew: false,
};
