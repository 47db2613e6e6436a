//! Every fault at once, with what the rules advise.

use super::{Strategy, advice};

pub(super) static STRATEGY: Strategy =
    Strategy { name: "explain_findings", fits: |_, _| true, tell: |trouble, _| advice(trouble), anew: false };
