//! Strategy for a reply without a query: discards the reply and prompts again.

use querymend_sql::rules::llm_output::no_sql;

use super::{Strategy, feedback};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "start_over",
    applies: |failure, _| failure.code == no_sql::RULE.code,
    feedback: |_, _| vec![feedback(no_sql::RULE.code, no_sql::ADVICE)],
    restart_conversation: true,
};
