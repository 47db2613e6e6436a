//! Strategy for a query that timed out or exceeded resources: asks for a cheaper query. A policy
//! may select it for other failures.

use querymend_sql::ErrorType;

use super::{Strategy, feedback};
use crate::retry::RetryStrategy;

pub(super) static STRATEGY: Strategy = Strategy {
    name: "timeout",
    applies: |failure, context| {
        matches!(failure.error_type, ErrorType::Timeout | ErrorType::ResourceLimit)
            || context.policy == RetryStrategy::RetryWithOptimization
    },
    feedback: |_, _| {
        let text = "Ask for less: filter earlier, join fewer tables, aggregate before joining, and limit the rows.";
        vec![feedback("timed-out", text)]
    },
    restart_conversation: false,
};
