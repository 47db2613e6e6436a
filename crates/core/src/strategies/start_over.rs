//! The model wrote no query at all: what it wrote is forgotten, and it is asked again.

use super::{Strategy, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "start_over",
    fits: |trouble, _| trouble.code == "no-sql",
    tell: |_, _| vec![told("no-sql", "Answer with one SQL query and nothing else.")],
    anew: true,
};
