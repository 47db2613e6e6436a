//! The model wrote no query at all: what it wrote is forgotten, and it is asked again.

use querymend_sql::rules::artefact::no_sql;

use super::{Strategy, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "start_over",
    fits: |trouble, _| trouble.code == no_sql::RULE.code,
    tell: |_, _| vec![told(no_sql::RULE.code, no_sql::ADVICE)],
    anew: true,
};
