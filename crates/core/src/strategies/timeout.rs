//! The query took too long, or asked for too much: it must ask for less. A policy may want the same for other failures.

use querymend_sql::ErrorType;

use super::{Strategy, told};
use crate::retry::RetryStrategy;

pub(super) static STRATEGY: Strategy = Strategy {
    name: "timeout",
    fits: |trouble, view| {
        matches!(trouble.error_type, ErrorType::Timeout | ErrorType::ResourceLimit)
            || view.policy == RetryStrategy::RetryWithOptimization
    },
    tell: |_, _| {
        let text = "Ask for less: filter earlier, join fewer tables, aggregate before joining, and limit the rows.";
        vec![told("timed-out", text)]
    },
    anew: false,
};
